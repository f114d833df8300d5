"""A transformer that learns to write from a text, beside a trigram model of the same text.

`python -m pyvecgpu demo --model characters --data FILE`: the last tenth of the text is held out.
Both models say how likely the same characters of it are, of which the loss is the mean of -log(p);
then the network writes some lines of its own.
"""

import time

import numpy as np

import pyvecgpu as vg
from pyvecgpu import nn

from .networks import Block
from .runs import check_no_copies
from .training import step, warm_cosine
from .trigram import Trigram

WIDTH, DEPTH, HEADS = 64, 2, 4
NEAR = 4  # characters that a convolution sees together
LENGTH = 64  # characters that the network sees before the one that it guesses, at most
BATCH = 32
STEPS = 1500  # at least, for which short texts are read several times
RATE = 4e-3
DECAY = 0.05
HELD_OUT = 10  # one part of so many
LEAST = 20 * LENGTH  # characters of a text
LINES, LONGEST = 4, 100
WARMTH = 0.8  # below 1: likely characters become likelier


class Writer(nn.Module):
    """Scores (n, length, size) of the character after each of numbers (n, length).

    Which NEAR characters come right before, in their order, a convolution sees at once; attention
    alone would have to learn to look there.
    """

    def __init__(self, size, width=WIDTH):
        super().__init__()
        self.letters = nn.Embedding(size, width)
        self.places = nn.Embedding(LENGTH, width)
        self.near = nn.Conv1d(width, width, NEAR)
        self.blocks = nn.ModuleList([Block(width, HEADS) for _ in range(DEPTH)])
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(width, size)

    def forward(self, numbers):
        places = vg.arange(numbers.shape[1], device=numbers.device)
        x = self.letters(numbers)
        before = vg.pad(x, ((0, 0), (NEAR - 1, 0), (0, 0)))
        near = self.near(vg.swapaxes(before, 1, 2))
        x = x + vg.swapaxes(near, 1, 2) + self.places(places)
        for block in self.blocks:
            x = block(x, causal=True)
        return self.scores(self.norm(x))


class Flat(nn.Module):
    """A writer whose scores are (n * length, size), as the loss wants them."""

    def __init__(self, writer):
        super().__init__()
        self.writer = writer

    def forward(self, numbers):
        scores = self.writer(numbers)
        return vg.reshape(scores, (-1, scores.shape[-1]))


def load(path):
    """Return the numbers of a text, its Characters, and how many of them are learned from.

    ValueError: the text is too short. OSError: it cannot be read.
    """
    numbers, letters = vg.data.load_text(path, device="cpu")
    numbers = numbers.numpy()
    if len(numbers) < LEAST:
        raise ValueError(f"{path} has {len(numbers)} characters; {LEAST} or more are needed")
    return numbers, letters, len(numbers) - len(numbers) // HELD_OUT


def train(device, numbers, size, epochs, seed, report, width=WIDTH):
    """Return (writer, losses of the epochs, steps, seconds); epochs: None for STEPS steps."""
    vg.random.seed(seed)
    net = Flat(Writer(size, width)).to(device)
    rng = vg.random.default_rng(seed, device=device)
    windows = vg.data.Windows(vg.asarray(numbers, device=device), LENGTH)
    each = max(1, len(numbers) // (BATCH * LENGTH))  # steps of an epoch
    steps = max(STEPS, each) if epochs is None else epochs * each
    optimiser = vg.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY)
    rates = vg.optim.lr_scheduler.LambdaLR(optimiser, lambda i: warm_cosine(i, steps))
    kept, began = [], time.perf_counter()
    shown = max(1, steps // 10)
    losses, before = [], vg.counters(device)
    for number in range(1, steps + 1):
        begins = vg.astype(rng.random(BATCH) * len(windows), "int64")
        x, y = windows.batch(begins)
        losses.append(step(net, optimiser, x, vg.reshape(y, (-1,)), clip=1.0))
        rates.step()
        if number % shown == 0 or number == steps:
            check_no_copies(before, vg.counters(device), len(losses))
            kept.append(vg.mean(vg.stack(losses)).item())
            report(number, kept[-1])
            losses, before = [], vg.counters(device)
    vg.synchronize(device)
    return net.writer, kept, steps, time.perf_counter() - began


def held_out_loss(writer, numbers, first):
    """Return the mean of -log(p) of numbers[first:], each after half of LENGTH or more before it.

    Only the last of them, fewer than half of LENGTH, are left out; how many were scored is returned
    as well.
    """
    half = LENGTH // 2
    begins = np.arange(first - half, len(numbers) - LENGTH, half)
    device = next(writer.parameters()).device
    windows = vg.data.Windows(numbers, LENGTH)
    writer.eval()
    total = 0.0
    with vg.no_grad():
        for part in np.array_split(begins, -(-len(begins) // 256)):
            x, y = (vg.asarray(one, device=device) for one in windows.batch(part))
            chances = vg.log_softmax(writer(x), axis=-1)[:, half - 1 : -1]
            wanted = y[:, half - 1 : -1]
            total -= vg.sum(vg.take_along_axis(chances, wanted[..., None], axis=-1)).item()
    return total / (len(begins) * half), len(begins) * half


def write(writer, letters, rng, lines=LINES):
    """Return lines that a writer makes up, character by character, each at most LONGEST long."""
    end = "\n" if "\n" in letters.characters else " "
    text = end if end in letters.characters else letters.characters[0]
    done, line = [], ""
    writer.eval()
    with vg.no_grad():
        while len(done) < lines:
            letter = letters.decode(next_number(writer, letters.encode(text[-LENGTH:]), rng))
            text += letter
            line += "" if letter == end else letter
            if len(line) >= LONGEST or (letter == end and line.strip()):
                done, line = [*done, line], ""
    return done


def next_number(writer, numbers, rng):
    """Return the number of a character that is drawn by a writer's scores, an Array of no axes.

    The largest of scores that have such noise added is drawn with softmax's probabilities.
    """
    device = next(writer.parameters()).device
    scores = writer(numbers.to(device)[None])[0, -1] / WARMTH
    noise = rng.random(scores.shape, device=device)
    return vg.argmax(scores - vg.log(-vg.log(noise + 1e-12)))


def demo(device, arguments):
    """Train, compare with the trigram model, write, and return (facts, exit code)."""
    numbers, letters, first = load(arguments.data)
    say = lambda text: print(text, flush=True)  # noqa: E731
    say(f"device: {device}, {device.name}")
    say(
        f"text: {first:,} characters to learn from, {len(numbers) - first:,} held out, "
        f"{len(letters)} different ones"
    )
    width = arguments.width or WIDTH
    learned = numbers[:first]
    writer, losses, steps, seconds = train(
        device,
        learned,
        len(letters),
        arguments.epochs,
        arguments.seed,
        lambda number, loss: say(f"step {number:5}: loss {loss:.4f}"),
        width,
    )
    loss, count = held_out_loss(writer, numbers, first)
    trigram = Trigram(learned, len(letters)).loss(numbers[first - 2 : first + count])
    say(f"training: {steps} steps, {seconds:.2f} s")
    say(f"loss on the held-out text: {loss:.4f}; of a trigram model: {trigram:.4f}")
    if arguments.save:
        vg.save_state(arguments.save, writer.state_dict())
        say(f"The weights are in {arguments.save}.")
    say("It writes:")
    for line in write(writer, letters, vg.random.default_rng(arguments.seed, device=device)):
        say(f"  {line}")
    facts = {"device": str(device), "model": "characters", "steps": steps}
    facts |= {"train_seconds": seconds, "test_loss": loss, "trigram_loss": trigram}
    if not loss < trigram:
        say("The network is not better than the trigram model: let it learn for longer (--epochs).")
    return facts | {"losses": losses}, 0
