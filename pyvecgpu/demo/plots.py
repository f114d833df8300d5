"""The picture of a training: loss curve, confusion matrix, and digits that were misread.

matplotlib is needed here alone. The figure is made without pyplot, so no window and no backend.
"""

import importlib.util

import numpy as np

SHOWN = 20  # of the misread digits
COLUMNS = 5
SIZE = (13, 4.6)  # inches
DPI = 110
NO_PICTURE = "No picture: it needs matplotlib, which is not installed here: pip install matplotlib"


def is_possible():
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def formats():
    """Return the endings of names that draw takes, without dots."""
    from matplotlib.figure import Figure

    return sorted(Figure().canvas.get_supported_filetypes())


def confusion(labels, read, classes):
    """Return counts (classes, classes): of which digit (row) was read as which (column)."""
    counts = np.zeros((classes, classes), np.int64)
    np.add.at(counts, (labels, read), 1)
    return counts


def draw(path, title, run, data):
    """Write the picture of a Run on an images.Split to a file, in the format of its name.

    ValueError: matplotlib has no such format. OSError: it cannot be written.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    figure.suptitle(f"{title}: {run.accuracy:.3f} of the images held out are read right")
    parts = figure.subfigures(1, 3)
    curve(parts[0].add_subplot(), run.losses)
    matrix(parts[1].add_subplot(), confusion(data.test_labels, run.read, data.classes))
    misread(parts[2], data, run.read)
    figure.savefig(path, dpi=DPI)


def curve(axes, losses):
    axes.plot(range(1, len(losses) + 1), losses, color="#0072b2", linewidth=2)
    axes.set(title="loss while learning", xlabel="epoch", yscale="log")
    axes.grid(True, color="#dddddd", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def matrix(axes, counts):
    """Shade errors, which would be too pale beside what is right; the numbers are all there."""
    errors = np.where(np.eye(len(counts), dtype=bool), 0, counts)
    axes.imshow(errors, cmap="Oranges", vmax=max(4, 2 * errors.max()))
    for (row, column), count in np.ndenumerate(counts):
        if count:
            axes.text(column, row, str(count), ha="center", va="center", fontsize=8)
    every = range(len(counts))
    axes.set(title="what was read as what", xlabel="read", ylabel="is", xticks=every, yticks=every)


def misread(part, data, read):
    wrong = np.flatnonzero(read != data.test_labels)
    shown = wrong[:SHOWN]
    part.suptitle(f"{len(shown)} of {len(wrong)} misread" if len(wrong) else "none is misread")
    rows = -(-SHOWN // COLUMNS)
    for place, number in enumerate(shown):
        axes = part.add_subplot(rows, COLUMNS, place + 1)
        axes.imshow(data.test_images[number], cmap="Greys", vmin=0, vmax=1)
        axes.set_axis_off()
        axes.set_title(f"{data.test_labels[number]} as {read[number]}", fontsize=8)
