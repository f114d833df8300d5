"""Data to learn from: data sets, batches of them, and files that hold them.

    images = vg.data.load_idx("train-images-idx3-ubyte.gz")
    labels = vg.data.load_idx("train-labels-idx1-ubyte.gz")
    loader = vg.data.DataLoader(vg.data.TensorDataset(images, labels), 128, shuffle=True)

digits.npz beside this file is the handwritten digits that pyvecgpu.digits reads.
"""

from .datasets import Dataset, Subset, TensorDataset, Windows, random_split
from .files import Characters, load_csv, load_idx, load_npz, load_text
from .loader import DataLoader, collate

__all__ = [
    "Characters",
    "DataLoader",
    "Dataset",
    "Subset",
    "TensorDataset",
    "Windows",
    "collate",
    "load_csv",
    "load_idx",
    "load_npz",
    "load_text",
    "random_split",
]
