"""The images that the demo learns to read: the bundled digits, or those of a file or a folder.

    data = images.load(None, seed=0)       the bundled digits, a shuffled fifth of them held out
    data = images.load("mnist", seed=0)    a folder with the four IDX files of MNIST
    data = images.load("x.npz", seed=0)    x_train, y_train, x_test, y_test; or images, labels

Where the files hold images out, those are held out, else a shuffled fifth.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pyvecgpu.data import load_idx, load_npz

from .. import digits

NAMES = ("x_train", "y_train", "x_test", "y_test")
PAIRS = (("images", "labels"), ("x", "y"), ("X", "y"))
PARTS = ("train", "t10k")
KINDS = (("images", 3), ("labels", 1))


class Split(NamedTuple):
    """Images (n, rows, columns), float32 from 0 to 1, and labels (n,), int64."""

    train_images: np.ndarray
    train_labels: np.ndarray
    test_images: np.ndarray
    test_labels: np.ndarray
    classes: int


def load(path, seed, shuffle_labels=False):
    """Return a Split. ValueError: no images and labels in it. OSError: it cannot be read."""
    if path is None:
        arrays = digits.load()
    elif os.path.isdir(path):
        arrays = of_folder(Path(path))
    else:
        arrays = of_npz(path)
    whole = [squares(path, x) for x in arrays[::2]]
    labels = [numbered(path, y, len(x)) for x, y in zip(whole, arrays[1::2], strict=True)]
    if shuffle_labels:
        labels = [np.random.default_rng(seed).permutation(y) for y in labels]
    if len(whole) == 1:
        parts = digits.split(whole[0], labels[0], seed)
    elif whole[0].shape[1:] != whole[1].shape[1:]:
        raise ValueError(f"{path}: images of {whole[0].shape[1:]} and of {whole[1].shape[1:]}")
    else:
        parts = (whole[0], labels[0], whole[1], labels[1])
    if not len(parts[0]) or not len(parts[2]):
        raise ValueError(f"{path}: too few images to hold some out")
    scale = parts[0].max() or 1.0  # of the images to learn from: 255 in MNIST
    train, test = (np.asarray(x / scale, np.float32) for x in parts[::2])
    classes = max(int(y.max()) for y in labels) + 1
    return Split(train, parts[1], test, parts[3], classes)


def of_folder(folder):
    """Return the arrays of IDX files: of two, or of four with the test set's."""
    found = []
    for part in PARTS:
        for kind, axes in KINDS:
            stems = [f"{part}-{kind}{mark}idx{axes}-ubyte" for mark in "-."]
            names = [folder / f"{stem}{ending}" for stem in stems for ending in ("", ".gz")]
            name = next((name for name in names if name.is_file()), None)
            if name is None and part == PARTS[0]:
                raise ValueError(f"{folder}: there is no {stems[0]}, with or without .gz")
            if name is not None:
                found.append(load_idx(name, device="cpu").numpy())
    return found[: len(found) // 2 * 2]


def of_npz(path):
    """Return the arrays of an .npz file: images and labels, or four with the test set's."""
    arrays = load_npz(path, device="cpu")
    for names in (NAMES, *PAIRS):
        if arrays.keys() >= set(names):
            return [arrays[name].numpy() for name in names]
    wanted = "; ".join([", ".join(names) for names in (NAMES, *PAIRS)])
    raise ValueError(f"{path} has {', '.join(sorted(arrays))}; wanted is one of: {wanted}")


def squares(path, images):
    """Return images (n, rows, columns) of such, or of rows of pixels whose image is a square."""
    side = round(images.shape[1] ** 0.5) if images.ndim == 2 else 0
    if images.ndim == 2 and side * side == images.shape[1]:
        images = images.reshape(-1, side, side)
    if images.ndim != 3 or min(images.shape[1:]) < 4:
        what = "(n, rows, columns) of 4 or more pixels"
        raise ValueError(f"{path}: images are {what}, not of shape {images.shape}")
    return images


def numbered(path, labels, count):
    """Return labels as int64. ValueError: they are none."""
    if labels.shape != (count,) or labels.dtype.kind not in "iu" or (count and labels.min() < 0):
        raise ValueError(
            f"{path}: labels are {count} integers from 0 on, not {labels.dtype} {labels.shape}"
        )
    return labels.astype(np.int64)
