"""Brings notebooks into the form in which they are kept: `python docs/notebooks/clean.py`.

Without outputs, execution counts and what an editor notes about itself, so that a change of a
notebook shows in a diff as a change of its text, and nobody's machine or figures are in it.
"""

import json
from pathlib import Path

FOLDER = Path(__file__).parent
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def clean(text):
    """Return the text of an .ipynb file in the form in which it is kept."""
    cells = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"]).rstrip()
        kept = {"cell_type": cell["cell_type"], "id": cell["id"], "metadata": {}}
        if cell["cell_type"] == "code":
            kept |= {"execution_count": None, "outputs": []}
        cells.append(kept | {"source": source.splitlines(keepends=True)})
    notebook = {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main():
    for path in sorted(FOLDER.glob("*.ipynb")):
        before = path.read_text(encoding="utf-8")
        after = clean(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"cleaned {path.name}")


if __name__ == "__main__":
    main()
