"""The bundled handwritten digits: 1,797 images of 8x8 pixels (data/README.md says whose they are).

    images, labels = digits.load()            (1797, 64) float32 from 0 to 1, and (1797,) int64
    split = digits.split(images, labels, 0)   shuffled by a seed, a fifth of them held out

All of it is NumPy: a program brings to its device what it needs.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

FILE = Path(__file__).parent / "data" / "digits.npz"
CLASSES = 10


class Split(NamedTuple):
    """Images to learn from and images held out, with their labels."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray


def load():
    """Return images, (1797, 64) float32 from 0 (paper) to 1 (ink), and labels, (1797,) int64."""
    with np.load(FILE, allow_pickle=False) as file:
        images, labels = file["images"], file["labels"]
    return images.reshape(len(images), -1).astype(np.float32) / 16, labels.astype(np.int64)


def split(images, labels, seed):
    """Return a Split: the images in an order drawn from `seed`, the last fifth of them held out."""
    order = np.random.default_rng(seed).permutation(len(images))
    train, test = np.split(order, [len(order) - len(order) // 5])
    return Split(images[train], labels[train], images[test], labels[test])


def one_hot(labels):
    """Return (n, 10) float32 rows with a 1 at each label, 0 elsewhere."""
    return np.eye(CLASSES, dtype=np.float32)[labels]
