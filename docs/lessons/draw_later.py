"""The pictures of lessons 11 to 20, for draw.py."""

from svg import BLUE, GREEN, GREY, ORANGE, WHITE, Picture


def grid(p, x, y, rows, cols, size, marked=(), colour=GREEN):
    """Draw a matrix as squares; `marked` are (row, column) pairs."""
    for row in range(rows):
        fills = [colour if (row, col) in marked else WHITE for col in range(cols)]
        p.cells(x, y + row * size, size, size, [""] * cols, fills)


def lesson_11():
    """Tiles of a and b for a block of c; a thread's numbers with register tiles."""
    p = Picture(720, 420, "A block fetches tiles of a and b once and uses them many times")
    p.heading(20, 28, "tiled: a block makes a square of c from tiles in shared memory")
    for x, y, name in ((30, 200, "a"), (230, 45, "b"), (230, 200, "c")):
        grid(p, x, y, 4, 4, 35)
        p.text(x - 14, y + 78, name, 15, bold=True)
    for step in range(4):
        p.box(30 + step * 35, 235, 35, 35, step + 1, BLUE)
        p.box(265, 45 + step * 35, 35, 35, step + 1, ORANGE)
    p.box(265, 235, 35, 35, "", GREEN)
    p.note(30, 366, "Steps 1, 2, 3, 4: fetch both tiles, wait, multiply,")
    p.note(30, 382, "wait. Each number of a tile is fetched from device")
    p.note(30, 398, "memory once and read by 32 threads.")
    p.line((400, 45), (400, 400))
    p.heading(420, 60, "registers: a thread makes 4 x 4")
    p.heading(420, 78, "numbers of c")
    for i in range(4):
        p.box(440, 165 + i * 40, 40, 40, f"a{i}", BLUE, 12)
        p.box(500 + i * 40, 105, 40, 40, f"b{i}", ORANGE, 12)
        p.cells(500, 165 + i * 40, 40, 40, [f"a{i} b{j}" for j in range(4)], GREEN, 11)
    p.note(420, 350, "For each p: 4 + 4 numbers read from")
    p.note(420, 366, "shared memory serve 16 multiplications,")
    p.note(420, 382, "half a number each instead of two.")
    return p


def lesson_12():
    """A tree over eight numbers."""
    p = Picture(720, 330, "Eight numbers become one in three steps")
    size, left = 64, 150
    colours = [BLUE, ORANGE, GREEN, GREY]
    names = ["one sum a thread", "step 1: 4 on", "step 2: 2 on", "step 3: 1 on"]
    for level, (count, words) in enumerate(zip((8, 4, 2, 1), names, strict=True)):
        y = 30 + level * 78
        p.note(20, y + 22, words)
        for i in range(count):
            members = "+".join(str(m) for m in range(i, 8, count))
            label = members if len(members) <= 7 else "sum of all"
            p.box(left + i * size, y, size, 34, label, colours[level], 10 if count < 4 else 12)
            if level:
                for source in (i, i + count):
                    x = left + source * size + size / 2
                    p.arrow(x, y - 43, left + i * size + size / 2 + (source > i) * 12, y - 2)
    p.note(
        left + 1.3 * size,
        30 + 3 * 78 + 22,
        "who adds what to what is fixed by the numbers of the threads",
    )
    return p


def lesson_13():
    """A tile, its halo, and the filter at its corner."""
    p = Picture(720, 370, "A block's tile of the result needs a border of two pixels more")
    size, left, top = 16, 24, 24
    halo = {(r, c) for r in range(20) for c in range(20)} - {
        (r, c) for r in range(2, 18) for c in range(2, 18)
    }
    grid(p, left, top, 20, 20, size, halo, ORANGE)
    for row in range(5):
        p.cells(left, top + row * size, size, size, [""] * 5, BLUE)
    p.box(left + 2 * size, top + 2 * size, size, size, "", GREEN)
    notes = [
        (WHITE, "16 x 16 pixels of the result, a thread each"),
        (ORANGE, "the halo, 2 pixels wide, fetched as well"),
        (BLUE, "the filter, 5 x 5, on the block's first pixel"),
        (GREEN, "that pixel: the sum of the 25 products"),
    ]
    for i, (colour, words) in enumerate(notes):
        p.box(370, 50 + i * 36, size, size, "", colour)
        p.note(396, 63 + i * 36, words)
    p.note(370, 230, "20 x 20 = 400 pixels are fetched once into shared")
    p.note(370, 248, "memory by 256 threads, then read 256 x 25 times.")
    return p


def lesson_14():
    """Eight lanes exchange their sums."""
    p = Picture(720, 350, "Lanes exchange with the lane whose number differs in one bit")
    size, left, gap = 60, 130, 80
    for level in range(4):
        y = 40 + level * gap
        words = ["at first", "distance 4", "distance 2", "distance 1"][level]
        p.note(20, y + 20, words)
        labels = ["own", "sum of 2", "sum of 4", "sum of 8"][level]
        for lane in range(8):
            p.box(
                left + lane * (size + 10),
                y,
                size,
                30,
                labels,
                [GREY, BLUE, ORANGE, GREEN][level],
                11,
            )
            if level == 0:
                p.text(left + lane * (size + 10) + size / 2, y - 8, f"lane {lane}", 11)
            else:
                x = left + lane * (size + 10) + size / 2
                other = lane ^ (8 >> level)
                p.arrow(x, y - gap + 30, x, y - 2)
                p.arrow(left + other * (size + 10) + size / 2, y - gap + 30, x, y - 2)
    p.note(20, 338, "A real warp has 32 lanes and begins with distance 16: five steps.")
    return p


def lesson_15():
    """Neurons and weights of a layer; three kernels and their traffic, and one."""
    p = Picture(720, 560, "A layer's neurons and weights, computed by three kernels or by one")
    neurons(p)
    p.heading(20, 268, "Three kernels: 3 launches, y goes to memory and back twice")
    for x, words in ((110, "W x"), (310, "+ b"), (510, "sigmoid")):
        p.box(x, 283, 120, 36, words, GREEN)
    p.box(20, 358, 680, 34, "device memory", GREY)
    for x, words in ((130, "W, x"), (330, "y, b"), (530, "y")):
        p.arrow(x, 356, x, 322)
        p.text(x - 8, 343, words, 12, "end")
        p.arrow(x + 80, 321, x + 80, 355)
        p.note(x + 88, 343, "y")
    p.heading(20, 432, "Fused: 1 launch, y is written once, finished")
    p.box(210, 447, 320, 36, "W x, + b, sigmoid (in registers)", GREEN)
    p.box(20, 516, 680, 34, "device memory", GREY)
    p.arrow(260, 514, 260, 486)
    p.text(252, 504, "W, x, b", 12, "end")
    p.arrow(480, 485, 480, 513)
    p.note(488, 504, "y")
    return p


def neurons(p):
    """Draw a layer of three inputs and two outputs, with the lines of its weights."""
    p.heading(20, 28, "A layer: each line is a weight, each circle on the right a neuron")
    inputs = [(110, 70 + i * 70) for i in range(3)]
    outputs = [(330, 105 + o * 70) for o in range(2)]
    for o, end in enumerate(outputs):
        for start in inputs:
            p.line(start, end, thick=o == 1)
    for o, (x_out, y_out) in enumerate(outputs):
        at, colour = (0.36, ORANGE) if o == 1 else (0.66, WHITE)
        for i, (x_in, y_in) in enumerate(inputs):
            x, y = x_in + at * (x_out - x_in), y_in + at * (y_out - y_in)
            p.box(x - 22, y - 9, 44, 18, f"W[{o}][{i}]", colour, 10)
    for i, (x, y) in enumerate(inputs):
        p.circle(x, y, 20, f"x[{i}]", BLUE)
    for o, (x, y) in enumerate(outputs):
        p.circle(x, y, 24, f"+ b[{o}]", GREEN, 12)
        p.arrow(x + 25, y, x + 58, y)
        p.text(x + 64, y + 5, f"y[{o}]", 13, "start")
    p.text(110, 242, "inputs", 12)
    p.text(330, 242, "outputs", 12)
    p.note(450, 90, "A neuron adds its inputs, each times the")
    p.note(450, 108, "weight on its line, and its bias b, and")
    p.note(450, 126, "puts the sum through the sigmoid:")
    p.note(450, 154, "y[1] = sigmoid(W[1][0] x[0]")
    p.note(450, 172, "+ W[1][1] x[1] + W[1][2] x[2] + b[1])")
    p.note(450, 206, "The lines into a neuron are a row of W.")


def lesson_16():
    """A batch in memory, and the grid over it."""
    p = Picture(720, 280, "blockIdx.z says which product of the batch, x and y which tile of it")
    p.heading(20, 28, "Memory: the matrices lie one after the other, a_stride numbers apart")
    for item in range(5):
        words = "..." if item == 3 else f"a[{'items-1' if item == 4 else item}]"
        p.box(20 + item * 130, 42, 110, 32, words, BLUE, 13)
    p.line((20, 82), (20, 92), (150, 92), (150, 82))
    p.text(85, 108, "a_stride", 12, mono=True)
    p.heading(20, 146, "Grid: a layer of blocks for each product, all in one launch")
    for item in range(5):
        x = 20 + item * 130
        if item == 3:
            p.text(x + 45, 202, "...", 16)
            continue
        for row in range(2):
            for col in range(3):
                p.box(x + col * 30, 160 + row * 30, 30, 30, f"{col},{row}", GREEN, 11)
        p.text(x + 45, 240, f"z = {'items-1' if item == 4 else item}", 12)
    p.note(20, 268, "In the squares: blockIdx.x, blockIdx.y")
    return p


def lesson_17():
    """The ten kernels of a step: forward, backward, update."""
    p = Picture(720, 372, "Values go forward, deltas come back, each layer gets a gradient")
    p.heading(20, 30, "forward")
    p.box(20, 45, 60, 50, "points", GREY, 13)
    p.box(636, 45, 74, 50, "answer", GREY, 13)
    names = ["2 to 16", "16 to 16", "16 to 1"]
    for i, words in enumerate(names):
        x = 110 + i * 180
        p.box(x, 45, 80, 50, f"forward\n{words}", BLUE, 13)
        p.box(x, 152, 80, 42, f"delta of\nlayer {i + 1}", GREY, 12)
        p.box(x - 22, 228, 124, 34, "gradient_of_params", ORANGE, 11, mono=True)
        p.arrow(x + 40, 196, x + 40, 226)
        p.arrow(x + 40, 264, x + 40, 294)
        p.arrow(x + 40, 122, x + 40, 98)
    p.arrow(82, 70, 108, 70)
    for x in (190, 370):
        p.arrow(x + 2, 70, x + 98, 70)
        p.box(x + 16, 158, 68, 30, "backward", ORANGE, 11, mono=True)
        p.arrow(x + 98, 173, x + 86, 173)
        p.arrow(x + 14, 173, x + 2, 173)
    p.arrow(552, 70, 634, 70)
    p.box(632, 158, 82, 30, "last_delta", ORANGE, 11, mono=True)
    p.arrow(673, 97, 673, 156)
    p.arrow(630, 173, 552, 173)
    p.heading(20, 176, "backward")
    p.box(88, 296, 484, 34, "update", GREEN, 13, mono=True)
    p.heading(20, 317, "update")
    p.line((572, 313), (600, 313), (600, 122), (150, 122))
    p.note(440, 137, "new weights and biases")
    kernels = "3 forward, last_delta, 3 gradient_of_params, 2 backward, update"
    p.note(88, 356, f"10 kernels a step: {kernels}")
    return p


def lesson_18():
    """One multiplication a thread, and one matrix product a warp."""
    p = Picture(720, 270, "A thread multiplies two numbers, a tensor core two matrices")
    p.heading(20, 28, "CUDA core: two numbers")
    for x, words in ((20, "d"), (80, "a"), (140, "b"), (200, "c")):
        p.box(x, 110, 24, 24, words, GREEN, 13)
    for x, sign in ((62, "="), (122, "x"), (182, "+")):
        p.text(x, 127, sign, 16)
    p.note(20, 160, "1 multiplication, by 1 thread")
    p.line((270, 20), (270, 250))
    p.heading(290, 28, "Tensor core: two matrices of 16 x 16")
    for x, words in ((290, "d (float)"), (400, "a (half)"), (510, "b (half)"), (620, "c (float)")):
        colour = BLUE if "half" in words else GREEN
        grid(p, x, 80, 16, 16, 5, {(r, c) for r in range(16) for c in range(16)}, colour)
        p.text(x + 40, 178, words, 12)
    for x, sign in ((385, "="), (495, "x"), (605, "+")):
        p.text(x, 126, sign, 16)
    p.note(290, 210, "16 x 16 x 16 = 4096 multiplications, by the 32 threads of")
    p.note(290, 228, "a warp together; the matrices are spread over their registers")
    return p


def lesson_19():
    """Launches that the device waits for, and one graph."""
    p = Picture(
        720, 300, "Launch by launch the device waits for the host, with a graph it does not"
    )
    p.heading(20, 28, "Launch by launch: the device waits for the host")
    p.note(20, 59, "host")
    p.note(20, 99, "device")
    for i in range(8):
        x = 80 + i * 76
        p.box(x, 42, 72, 26, "launch", BLUE, 11)
        p.box(x + 70, 82, 22, 26, "", GREEN)
    p.heading(20, 158, "A graph: one launch, the kernels follow one another")
    p.note(20, 189, "host")
    p.note(20, 229, "device")
    p.box(80, 172, 110, 26, "graph launch", BLUE, 11)
    for i in range(8):
        p.box(188 + i * 28, 212, 22, 26, "", GREEN)
    p.note(440, 189, "the host is free")
    p.arrow(80, 262, 702, 262)
    p.text(702, 280, "time", 12, "end")
    p.box(80, 270, 22, 20, "", GREEN)
    p.note(110, 285, "a kernel")
    return p


def lesson_20():
    """A product split by rows: who computes what, and where the halves meet."""
    p = Picture(720, 350, "Each GPU makes half of the rows of c and needs all of b")
    p.heading(20, 28, "No row of c depends on another one")
    for gpu, (y, half, colour) in enumerate(((44, "upper", BLUE), (208, "lower", GREEN))):
        p.box(20, y, 680, 128, fill=GREY)
        p.text(54, y + 68, f"GPU {gpu}", 13, bold=True)
        p.box(100, y + 38, 130, 50, f"{half} half of a", colour, 13)
        p.text(255, y + 70, "x", 20)
        p.box(280, y + 14, 110, 100, "b, all of it", ORANGE, 13)
        p.text(415, y + 70, "=", 20)
    p.box(440, 56, 130, 50, "upper half of c", BLUE, 13)
    p.box(440, 108, 130, 50, "room for the\nlower half of c", WHITE, 12, dashed=True)
    p.box(440, 246, 130, 50, "lower half of c", GREEN, 13)
    p.arrow(505, 244, 505, 162)
    p.text(494, 195, "gather: GPU 1 writes into GPU 0's memory", 12, "end")
    return p


LATER = (
    *(lesson_11, lesson_12, lesson_13, lesson_14, lesson_15),
    *(lesson_16, lesson_17, lesson_18, lesson_19, lesson_20),
)
