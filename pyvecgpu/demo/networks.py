"""The networks that the demo trains by the tape, and how each of them is trained.

Every network takes images (n, rows, columns) and returns scores (n, classes). What a Recipe says
was chosen on a part of the images to learn from, never on those held out.
"""

from typing import NamedTuple

import pyvecgpu as vg
from pyvecgpu import nn


class Recipe(NamedTuple):
    """How a network is trained: AdamW, whose rate warms up and then falls as a cosine."""

    epochs: int
    rate: float
    target: float  # of the accuracy on images held out, in the mean of seeds 0 to 9
    batch: int = 64
    decay: float = 0.05  # of the weights, AdamW's
    shift: float = 0.6  # pixels by which an image is moved at most, in each step anew
    stretch: float = 0.12  # the part by which it is made wider or narrower at most
    clip: float = 1.0  # what the norm of all gradients is at most


class Perceptron(nn.Module):
    """Every pixel to every unit, in two hidden layers."""

    def __init__(self, rows, columns, classes, width=128):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Flatten(),
            nn.Linear(rows * columns, width, activation="relu"),
            nn.Linear(width, width, activation="relu"),
            nn.Linear(width, classes),
        )

    def forward(self, images):
        return self.layers(images)


class Cnn(nn.Module):
    """Three convolutions that see strokes, then parts of digits; one layer for what was seen."""

    def __init__(self, rows, columns, classes, width=64):
        super().__init__()
        layers, channels = [], 1
        for wider, pool in ((width // 4, False), (width // 2, True), (width, True)):
            layers.append(nn.Conv2d(channels, wider, 3, padding=1, bias=False))
            layers += [nn.BatchNorm2d(wider), nn.ReLU()]
            layers += [nn.MaxPool2d(2)] if pool else []
            channels = wider
        self.seen = nn.Sequential(*layers, nn.Flatten(), nn.Dropout(0.3))
        self.scores = nn.Linear(width * (rows // 4) * (columns // 4), classes)

    def forward(self, images):
        return self.scores(self.seen(images[:, None]))


class Rnn(nn.Module):
    """An LSTM that reads an image row by row, from both ends."""

    def __init__(self, rows, columns, classes, width=64):
        super().__init__()
        self.reader = nn.LSTM(columns, width, batch_first=True, bidirectional=True)
        self.scores = nn.Linear(2 * width, classes)

    def forward(self, images):
        _, (states, _) = self.reader(images)
        return self.scores(vg.concat([states[0], states[1]], axis=1))


class Block(nn.Module):
    """Attention, then a perceptron for each place; both are added to what came in."""

    def __init__(self, width, heads, dropout=0.1):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.inner = nn.Linear(width, 4 * width, activation="relu")
        self.outer = nn.Linear(4 * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, causal=False):
        seen = self.norm1(x)
        x = x + self.dropout(self.attention(seen, seen, seen, is_causal=causal)[0])
        return x + self.dropout(self.outer(self.inner(self.norm2(x))))


class Transformer(nn.Module):
    """A transformer whose words are the rows of an image."""

    def __init__(self, rows, columns, classes, width=64):
        super().__init__()
        self.words = nn.Linear(columns, width)
        self.places = nn.Parameter(vg.zeros((rows, width)))
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4))
        self.norm = nn.LayerNorm(width)
        self.scores = nn.Linear(rows * width, classes)

    def forward(self, images):
        x = self.blocks(self.words(images) + self.places)
        return self.scores(vg.reshape(self.norm(x), (len(images), -1)))


NETWORKS = {"perceptron": Perceptron, "cnn": Cnn, "rnn": Rnn, "transformer": Transformer}
RECIPES = {
    "perceptron": Recipe(epochs=60, rate=3e-3, target=0.975),
    "cnn": Recipe(epochs=20, rate=4e-3, target=0.985),
    "rnn": Recipe(epochs=25, rate=1e-2, target=0.96, batch=32),
    "transformer": Recipe(epochs=25, rate=2e-3, target=0.96),
}
