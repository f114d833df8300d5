"""The pictures of ../why.md: `python docs/why/draw.py` writes NAME.svg beside this file.

Nothing here is measured: widths and lengths of times are for the eye only, but for AlexNet's bars,
which are counts. tests/test_why.py compares the files with what this writes.
"""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
sys.path[:0] = [str(FOLDER.parent / "lessons"), str(FOLDER.parents[1])]

from svg import BLUE, GREEN, GREY, ORANGE, RED, WHITE, Picture  # noqa: E402

from pyvecgpu.learn.networks import ALEXNET  # noqa: E402


def workers():
    """Eight tasks: by one fast worker, and by eight slow ones."""
    p = Picture(720, 345, "One fast worker has the first result earlier, eight slow ones the last")
    p.heading(20, 28, "One fast worker (a core of a CPU): short latency")
    for i in range(8):
        p.box(90 + i * 66, 42, 66, 32, f"task {i + 1}", BLUE, 12)
    p.arrow(156, 102, 156, 78)
    p.text(164, 100, "first result", 12, "start")
    p.arrow(618, 102, 618, 78)
    p.text(610, 100, "last result", 12, "end")
    p.heading(20, 136, "Eight slow workers (threads of a GPU): high throughput")
    for i in range(8):
        p.box(90, 148 + i * 19, 230, 17, f"task {i + 1}", GREEN, 11)
    p.line((320, 144), (320, 306))
    p.text(328, 228, "first result and last", 12, "start")
    p.arrow(90, 312, 700, 312)
    p.text(700, 330, "time", 12, "end")
    return p


def chips():
    """What a CPU and a GPU spend their area on."""
    p = Picture(720, 368, "A CPU is mostly control and cache, a GPU mostly arithmetic")
    p.heading(20, 28, "CPU: few cores, each made to finish soon")
    p.box(20, 42, 320, 290, fill=GREY)
    for i in range(4):
        x, y = 30 + i % 2 * 155, 52 + i // 2 * 88
        p.box(x, y, 145, 80, fill=WHITE)
        p.box(x + 5, y + 5, 62, 70, "control:\nguess,\nreorder", RED, 11)
        p.box(x + 72, y + 5, 68, 30, "arithmetic", GREEN, 11)
        p.box(x + 72, y + 40, 68, 35, "cache", ORANGE, 11)
    p.box(30, 230, 300, 60, "cache for all cores", ORANGE, 13)
    p.text(180, 318, "memory: large, slower", 12)
    p.heading(380, 28, "GPU: many units, made to finish much")
    p.box(380, 42, 320, 290, fill=GREY)
    for row in range(6):
        y = 52 + row * 33
        for column in range(2):
            x = 390 + column * 155
            p.box(x, y, 14, 27, fill=RED)
            p.box(x + 16, y, 14, 27, fill=ORANGE)
            p.cells(x + 32, y, 14, 27, [""] * 8, GREEN)
    p.box(390, 254, 300, 36, "cache for all multiprocessors", ORANGE, 13)
    p.text(540, 318, "memory: smaller, fast", 12)
    p.note(20, 356, "green: arithmetic; red: control; orange: memory on the chip")
    return p


def translation():
    """From the source to the instructions of a card."""
    p = Picture(720, 250, "CUDA C becomes PTX, and PTX the instructions of a card")
    boxes = (("vector_add\nCUDA C", BLUE), ("PTX\nfor a virtual\ncard", ORANGE))
    for i, (words, colour) in enumerate(boxes):
        p.box(20 + i * 235, 90, 150, 70, words, colour, 14)
    p.box(530, 40, 170, 56, "SASS\nfor the card named", GREEN, 13)
    p.box(530, 154, 170, 56, "SASS\nfor a later card", GREEN, 13)
    p.arrow(174, 125, 250, 125)
    p.text(212, 115, "nvcc", 12)
    p.arrow(409, 110, 526, 72)
    p.text(455, 76, "ptxas", 12)
    p.arrow(409, 140, 526, 178)
    p.text(452, 186, "the driver", 12)
    p.note(20, 228, "What is built today keeps its PTX, so a card that comes later can run it too.")
    return p


def amdahl():
    """A program whose serial part stays."""
    p = Picture(720, 250, "However many workers there are, the serial part takes its time")
    p.heading(20, 28, "A fifth of the work cannot be shared out")
    for row, (words, parallel) in enumerate(
        (("1 worker", 400), ("4 workers", 100), ("100 workers", 4), ("any number", 0))
    ):
        y = 48 + row * 42
        p.text(20, y + 21, words, 13, "start")
        p.box(130, y, 100, 30, "serial", ORANGE, 12)
        if parallel:
            words = "parallel: each element by itself" if row == 0 else ""
            p.box(230, y, parallel, 30, words, GREEN, 12)
        if row:
            faster = ("2.5 times", "4.8 times", "5 times")[row - 1]
            p.text(240 + parallel, y + 20, f"{faster} as fast", 12, "start")
    p.arrow(130, 222, 660, 222)
    p.text(660, 240, "time", 12, "end")
    return p


def waiting():
    """More warps than can compute at once: one computes while others wait for memory."""
    p = Picture(720, 270, "While one warp waits for memory another one computes")
    p.heading(20, 28, "One part of a multiprocessor computes for one warp at a time")
    for row in range(5):
        y, x = 44 + row * 34, 90 + row * 46
        p.text(20, y + 18, f"warp {row}", 13, "start")
        p.box(x, y, 46, 26, "add", GREEN, 12)
        p.box(x + 46, y, 184, 26, "waits for memory", WHITE, 12, dashed=True)
        p.box(x + 230, y, 46, 26, "add", GREEN, 12)
    p.arrow(90, 226, 700, 226)
    p.text(700, 244, "time", 12, "end")
    p.note(20, 258, "Some warp computes at every moment, though each of them mostly waits.")
    return p


def alexnet():
    """Where AlexNet has its parameters, and where its products are."""
    p = Picture(720, 330, "AlexNet's parameters are in its dense layers, its products before them")
    parameters, products = ALEXNET.parameters, sum(layer.products for layer in ALEXNET.layers)
    p.text(270, 30, "parameters", bold=True)
    p.text(530, 30, "products, for one photograph", bold=True)
    for row, layer in enumerate(ALEXNET.layers):
        y = 44 + row * 32
        p.text(20, y + 17, layer.name, 13, "start")
        for x, share, colour in (
            (150, layer.parameters / parameters, ORANGE),
            (430, layer.products / products, GREEN),
        ):
            p.box(x, y, max(1, 200 * share), 24, fill=colour)
            p.text(x + 200 * share + 8, y + 17, f"{share:.1%}", 12, "start")
    p.note(20, 318, f"In all {parameters:,} parameters, and {products:,} multiplications.")
    return p


PICTURES = (workers, chips, translation, amdahl, waiting, alexnet)


def main(folder):
    for picture in PICTURES:
        path = Path(folder) / f"{picture.__name__}.svg"
        path.write_text(picture().svg(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else FOLDER)
