"""The pictures of these pages: `python docs/lessons/draw.py` writes NN.svg beside this file.

A function draws a picture and is named after its lesson. Nothing here is measured: widths of bars
and lengths of times are for the eye only. tests/test_lesson_pages.py compares the files with what
this writes.
"""

import math
import sys
from pathlib import Path

from draw_later import LATER
from svg import BLUE, GREEN, GREY, ORANGE, RED, WHITE, Picture


def lesson_01():
    """The loop and the threads above the same axis of time."""
    p = Picture(720, 350, "A loop takes one element after the other, threads take one each at once")
    p.heading(20, 30, "C loop: one element after the other")
    p.cells(20, 42, 62, 30, ["i = 0", "i = 1", "i = 2", "i = 3", "i = 4", "i = 5", "i = 6"], BLUE)
    p.text(487, 62, "...", 16)
    p.cells(520, 42, 62, 30, ["i = 998", "i = 999"], BLUE)
    p.heading(20, 116, "Kernel: a thread for each element, i = threadIdx.x, all at the same time")
    for row, words in enumerate(["thread 0", "thread 1", "thread 2", "...", "thread 999"]):
        y = 130 + row * 34
        if words == "...":
            p.text(95, y + 18, words, 16)
        else:
            p.box(20, y, 150, 28, words, GREEN, 13)
    p.note(190, 149, "each does the loop's body once; there is no loop")
    p.note(190, 183, "each is slower than the CPU's core,")
    p.note(190, 201, "and a launch has a price before it (not drawn)")
    p.arrow(20, 316, 690, 316)
    p.text(690, 336, "time", 12, "end")
    return p


def lesson_02():
    """Two memories and the copies between them."""
    p = Picture(720, 300, "Host and device have a memory each, and copies go between them")
    for x, words in ((20, "HOST: the CPU and its memory"), (440, "DEVICE: the GPU and its memory")):
        p.box(x, 40, 260, 240, fill=GREY)
        p.text(x + 130, 28, words, bold=True)
    for i, name in enumerate("abc"):
        p.box(50, 60 + i * 50, 130, 34, f"h_{name}", BLUE, mono=True)
        p.box(540, 60 + i * 50, 130, 34, f"d_{name}", ORANGE, mono=True)
    p.box(50, 222, 200, 40, "main()", WHITE, mono=True)
    p.box(470, 222, 200, 40, "vector_add", WHITE, mono=True)
    p.arrow(184, 77, 536, 77)
    p.arrow(184, 127, 536, 127)
    p.arrow(538, 177, 184, 177)
    p.arrow(254, 242, 466, 242)
    p.text(360, 70, "1  cudaMemcpy", 12)
    p.text(360, 120, "1  cudaMemcpy", 12)
    p.text(360, 235, "2  launch", 12)
    p.text(360, 170, "3  cudaMemcpy", 12)
    p.line((670, 77), (686, 77), (686, 242), (674, 242), head=True)
    p.line((670, 127), (686, 127))
    p.arrow(605, 222, 605, 198)
    return p


def lesson_03():
    """A block is on one multiprocessor."""
    p = Picture(720, 230, "One block is on one multiprocessor, the others have nothing to do")
    p.heading(20, 28, "A block runs on one multiprocessor, all of its threads together")
    for i in range(8):
        x = 20 + i * 86
        p.box(x, 45, 74, 96, fill=GREY)
        p.text(x + 37, 134, f"multipr. {i}", 11)
    p.box(28, 52, 58, 64, "block of\n1024\nthreads", GREEN, 12)
    for i in range(1, 8):
        p.text(57 + i * 86, 88, "idle", 12)
    p.box(20, 160, 590, 44, "block of 500,000 threads: no multiprocessor has room for it", RED)
    p.text(660, 187, "refused", 14, bold=True)
    return p


def lesson_04():
    """When the host hears of which error."""
    p = Picture(720, 260, "A launch's error is known at once, a kernel's error at the next wait")
    p.heading(20, 62, "host")
    p.heading(20, 152, "device")
    p.box(90, 40, 80, 36, "launch", BLUE, 12)
    p.box(170, 40, 130, 36, "cudaGetLastError", BLUE, 12)
    p.box(300, 40, 170, 36, "goes on with other work", BLUE, 12)
    p.box(470, 40, 190, 36, "cudaDeviceSynchronize", BLUE, 12)
    p.box(210, 130, 400, 36, "the kernel runs", GREEN, 13)
    p.line((130, 76), (130, 148), (206, 148), head=True)
    p.arrow(610, 128, 650, 80)
    p.text(235, 98, "was it accepted?", 12)
    p.text(235, 113, "a block too large: told here", 12)
    p.text(600, 98, "how did it end?", 12, "end")
    p.text(600, 113, "a wrong address: told here", 12, "end")
    p.arrow(20, 205, 690, 205)
    p.text(690, 223, "time", 12, "end")
    p.text(20, 245, "A call that does not wait tells nothing of what the kernel does.", 13, "start")
    return p


def lesson_05():
    """From block and thread to the element, and a grid of two dimensions."""
    p = Picture(720, 470, "Blocks of four threads over ten elements; a grid of two dimensions")
    p.heading(20, 26, "A grid of 3 blocks with 4 threads each, for 10 elements")
    size, left = 44, 128
    p.note(20, 83, "threads")
    for y, words in ((116, "blockIdx.x"), (138, "threadIdx.x"), (160, "i")):
        p.text(20, y, words, 13, "start", mono=True)
    p.note(20, 212, "elements")
    for block in range(3):
        x = left + block * (4 * size + 12)
        p.box(x - 4, 58, 4 * size + 8, 42, fill=GREY)
        p.text(x + 2 * size, 50, f"block {block}", 13, bold=True)
        for thread in range(4):
            i = block * 4 + thread
            middle = x + thread * size + size / 2
            p.box(x + thread * size, 64, size, 30, "", GREEN if i < 10 else WHITE, dashed=i >= 10)
            for y, value in ((116, block), (138, thread), (160, i)):
                p.text(middle, y, str(value), 14)
            if i < 10:
                p.arrow(middle, 168, middle, 190)
                p.box(x + thread * size, 192, size, 30, f"c[{i}]", ORANGE, 13)
    idle = left + 2 * (4 * size + 12) + 3 * size
    p.text(idle, 202, "idle:", 12)
    p.text(idle, 218, "i < n is false", 12)
    p.text(left, 252, "i = blockIdx.x * blockDim.x + threadIdx.x", 13, "start", mono=True)
    p.heading(20, 296, "Blocks and threads may be counted along x and y too (lesson 08)")
    for row in range(2):
        for col in range(3):
            words = f"block\n({col}, {row})"
            p.box(128 + col * 70, 312 + row * 64, 66, 60, words, GREY, 12)
    p.line((334, 376), (420, 318))
    p.line((334, 436), (420, 436))
    for row in range(3):
        p.cells(420, 318 + row * 40, 66, 38, [f"({col}, {row})" for col in range(4)], GREEN, 12)
    p.text(232, 456, "grid of 3 x 2 blocks: (blockIdx.x, blockIdx.y)", 12)
    p.text(552, 456, "block of 4 x 3 threads: (threadIdx.x, threadIdx.y)", 12)
    return p


def lesson_06():
    """Latency and throughput."""
    p = Picture(720, 316, "A core starts at once and goes one by one, a GPU starts late with all")
    p.heading(20, 28, "One CPU core: the first result is there at once")
    p.cells(20, 40, 20, 30, [""] * 32, BLUE)
    p.arrow(30, 92, 30, 74)
    p.note(38, 96, "latency: short")
    p.heading(20, 138, "GPU: nothing for a while, then very many results at a time")
    p.box(20, 152, 150, 90, "launch, wait for\nmemory, report\nthe end", GREY, 12)
    for row in range(6):
        p.cells(170, 152 + row * 15, 10, 15, [""] * 12, GREEN)
    p.arrow(180, 266, 180, 246)
    p.note(188, 270, "latency: long")
    p.note(310, 190, "throughput: high; a million elements")
    p.note(310, 206, "cost little more than one")
    p.line((20, 281), (20, 291))
    p.arrow(20, 286, 700, 286)
    p.text(20, 306, "start", 12, "start")
    p.text(700, 306, "time", 12, "end")
    return p


def lesson_07():
    """One go, and pieces on three streams."""
    p = Picture(720, 310, "Copies and kernels of several streams overlap")
    left, width, kernel = 90, 36, 8  # of a piece of eight
    p.heading(20, 28, "In one go: one stream")
    p.note(20, 59, "stream 0")
    p.box(left, 42, 8 * width, 26, "", BLUE)
    p.box(left + 8 * width, 42, 4 * kernel, 26, "", GREEN)
    p.box(left + 8 * width + 4 * kernel, 42, 8 * width, 26, "", ORANGE)
    p.heading(20, 108, "In pieces: a stream works in order, different streams overlap")
    for stream in range(3):
        p.note(20, 139 + stream * 34, f"stream {stream}")
    for piece in range(8):
        x, y = left + piece * width, 122 + piece % 3 * 34
        p.box(x, y, width, 26, piece, BLUE, 12)
        p.box(x + width, y, kernel, 26, "", GREEN)
        p.box(x + width + kernel, y, width, 26, piece, ORANGE, 12)
    p.arrow(left, 238, 702, 238)
    p.text(702, 256, "time", 12, "end")
    for x, words, colour in (
        (90, "copy down", BLUE),
        (250, "kernel", GREEN),
        (390, "copy up", ORANGE),
    ):
        p.box(x, 270, 24, 20, "", colour)
        p.note(x + 32, 285, words)
    return p


def lesson_08():
    """The 32-byte pieces that a warp fetches in either order."""
    p = Picture(720, 330, "A warp's 32 numbers lie in 4 pieces of memory or in 32")
    p.heading(20, 28, "column from x: 32 neighbours of one row, 4 pieces of 32 bytes")
    for piece in range(4):
        p.box(18 + piece * 170, 42, 164, 36, fill=GREY)
        p.cells(20 + piece * 170, 46, 20, 28, range(piece * 8, piece * 8 + 8), GREEN, 11)
    p.note(20, 96, "all that is fetched is used (5 pieces if number 0 is not the first of one)")
    p.heading(20, 138, "row from x: one number each from 32 rows, 32 pieces")
    for row in range(4):
        y = 152 + row * 38
        p.box(18, y, 164, 34, fill=GREY)
        p.cells(20, y + 4, 20, 26, [row, *[""] * 7], [GREEN, *[WHITE] * 7], 11)
        p.note(196, y + 22, f"row {row}")
    p.note(20, 318, "... and so on to thread 31, in row 31")
    p.text(270, 200, "of each piece, 4 bytes of 32 are used now", 13, "start")
    p.box(270, 222, 20, 20, "0", GREEN, 11)
    p.note(298, 237, "a number (4 bytes) and the thread that wants it")
    p.box(270, 252, 20, 20, "", WHITE, 11)
    p.note(298, 267, "a number fetched for nothing, unless a cache keeps it")
    return p


def lesson_09():
    """Which numbers the first warp of a block wants, for two shapes."""
    p = Picture(720, 290, "A warp has one row of 32 in a flat block, eight rows of 4 in a brick")
    p.heading(20, 28, "flat block of 32 x 4 x 2: the first warp has 32 neighbours")
    p.cells(20, 40, 20, 26, range(32), GREEN, 11)
    p.heading(20, 108, "brick of 4 x 8 x 8: the first warp has 8 rows of 4")
    for row in range(8):
        y = 120 + row * 19
        p.cells(20, y, 26, 19, range(4 * row, 4 * row + 4), GREEN, 11)
        p.cells(124, y, 26, 19, [""] * 4, WHITE)
        p.text(240, y + 14, f"row {row}", 11, "start")
    p.note(310, 170, "A piece of memory has 8 numbers (32 bytes).")
    p.note(310, 188, "The first warp uses half of each; the other half")
    p.note(310, 206, "is for another block, which fetches it again.")
    p.note(310, 224, "(Where a row does not begin with a piece, four")
    p.note(310, 242, "neighbours may even be in two.)")
    return p


def lesson_10():
    """The curve of the sigmoid."""
    p = Picture(720, 260, "The sigmoid goes from 0 to 1, and is 0.5 at 0")
    left, right, top, bottom = 60, 690, 30, 210
    p.line((left, bottom), (right, bottom))
    p.line((left, top), (right, top))
    xs = [i / 10 for i in range(-80, 81)]
    at = [(375 + x * 39, bottom - (bottom - top) / (1 + math.exp(-x))) for x in xs]
    p.line(*at, thick=True)
    for x in range(-8, 9, 2):
        p.line((375 + x * 39, bottom), (375 + x * 39, bottom + 5))
        p.text(375 + x * 39, bottom + 22, str(x), 12)
    for words, y in (("0", bottom), ("0.5", (top + bottom) / 2), ("1", top)):
        p.line((left - 5, y), (left, y))
        p.text(left - 10, y + 4, words, 12, "end")
    p.text(430, 130, "y = 1 / (1 + exp(-x))", 15, "start", mono=True)
    p.text(right, bottom + 42, "x", 13, "end", bold=True)
    return p


EARLIER = (
    *(lesson_01, lesson_02, lesson_03, lesson_04, lesson_05),
    *(lesson_06, lesson_07, lesson_08, lesson_09, lesson_10),
)


def main():
    """Write all pictures, beside this file or in the folder that is named."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for draw in EARLIER + LATER:
        name = f"{draw.__name__[-2:]}.svg"
        (folder / name).write_text(draw().svg(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
