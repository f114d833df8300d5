"""The notebooks of docs/notebooks run on every device, check what they compute, and are kept clean.

Each is executed in a Jupyter kernel of its own, as a reader's editor does it. Where no error comes
from a cell the results were right, for the cells compare them with NumPy; that they would see a
wrong one is shown with functions that have been spoiled.
"""

import importlib.util
import json
import os
import re
import runpy
import sys

import pytest
from helpers import ROOT, child_environment

FOLDER = ROOT / "docs/notebooks"
clean = runpy.run_path(str(FOLDER / "clean.py"))["clean"]
NOTEBOOKS = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
CELL_SECONDS = 120  # a cell that takes longer hangs
PACKAGES = ("nbclient", "nbformat", "ipykernel")
LIBRARIES = ("PYVECGPU_LIBRARY", "PYVECGPU_SIM_LIBRARY")
NO_CARD = "the cells that launch the lessons' kernels do nothing here"
NO_PICTURES = "pictures need matplotlib"

# What a reader has to find in the output wherever the lessons' kernels run.
SHOWN = {
    "1_vectors": (
        "covered 500,000 of 500,000 elements",
        "covered 1,024 of 500,000 elements: the launch is too small",
        "LaunchError: 500000 threads per block exceed the limit of 1024",
    ),
    "2_matrices": ("matrix_add_slow<<<", "covered 16,800 of 21,000 elements", "registers "),
    "3_layers": ("sigmoid<<<", "layer<<<"),
    "4_training": (),
    "5_gradients": (),
}


@pytest.fixture(scope="module", autouse=True)
def loop_of_jupyter():
    """The event loop that its clients keep, with its files, is there before a test begins."""
    if importlib.util.find_spec("jupyter_core"):
        importlib.import_module("jupyter_core.utils").ensure_event_loop()


# A notebook, and a function that returns something wrong in it.
SPOILED = [
    ("1_vectors", "learn.vector_add"),
    ("1_vectors", "vg.Array.__add__"),
    ("2_matrices", "learn.matrix_add"),
    ("2_matrices", "learn.tensor_add"),
    ("2_matrices", "learn.matmul"),
    ("2_matrices", "vg.Array.__matmul__"),
    ("3_layers", "learn.sigmoid"),
    ("3_layers", "learn.layer"),
    ("3_layers", "vg.dense"),
    ("4_training", "vg.sum"),
    ("5_gradients", "vg.dense"),
    ("5_gradients", "vg.Array.__matmul__"),
    ("5_gradients", "vg.log_softmax"),
]
SPOIL = """
import pyvecgpu as vg
from pyvecgpu import learn
def spoil(right):
    def wrong(*arguments, **options):
        result = right(*arguments, **options)
        return (result[0] * 1.01, result[1]) if isinstance(result, tuple) else result * 1.01
    return wrong
{name} = spoil({name})
"""


# The text of a notebook ---------------------------------------------------------------------------


def text_of(name):
    return (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")


def test_there_is_a_notebook_for_each_chapter():
    assert list(SHOWN) == NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_kept_clean(name):
    text = text_of(name)
    assert clean(text) == text, "run `python docs/notebooks/clean.py`"
    assert not re.search(r"/(home|tmp|Users|root|mnt)/|[A-Z]:\\\\", text), "a machine's path"


def test_cleaning_takes_out_what_a_run_leaves():
    name = NOTEBOOKS[0]
    text = text_of(name)
    used = text.replace('"execution_count": null', '"execution_count": 7')
    output = '[{"name": "stdout", "output_type": "stream", "text": ["in /home"]}]'
    used = used.replace('"outputs": []', f'"outputs": {output}')
    used = used.replace('"metadata": {}', '"metadata": {"scrolled": true}')
    assert used.count("/home") > 5 and clean(used) == text


@pytest.mark.needs("nbformat")
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_valid(name):
    import nbformat

    notebook = nbformat.reads(text_of(name), as_version=nbformat.NO_CONVERT)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    nbformat.validate(notebook)
    identifiers = [cell.id for cell in notebook.cells]
    assert len(set(identifiers)) == len(identifiers)


@pytest.mark.parametrize("name", [*(f"{name}.ipynb" for name in NOTEBOOKS), "README.md"])
def test_links_lead_somewhere(name):
    text = (FOLDER / name).read_text(encoding="utf-8")
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", text)
    assert links
    for link in links:
        assert (FOLDER / link).exists(), link


def test_the_quoted_kernel_is_the_lesson_s():
    lesson = (ROOT / "cuda/lessons/05_blocks_and_grids.cu").read_text(encoding="utf-8")
    cells = ["".join(cell["source"]) for cell in json.loads(text_of("1_vectors"))["cells"]]
    (quoted,) = re.findall(r"^```c\n(.*?)```$", "\n".join(cells), re.MULTILINE | re.DOTALL)
    assert "vector_add" in quoted and quoted in lesson


# Running ------------------------------------------------------------------------------------------


def need_packages(device):
    """Skip on a GPU machine without the packages. Elsewhere they are part of the tests."""
    absent = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if absent and device == "cuda":
        pytest.skip(f"not installed here: {', '.join(absent)}")
    assert not absent, f"{sys.executable} lacks {', '.join(absent)}, which the tests need"


def execute(notebook, device, **variables):
    """Run all cells; return what they printed and the kinds of output they showed.

    AssertionError: a cell failed or hangs; with the cell and its traceback.
    """
    from nbclient import NotebookClient
    from nbclient.exceptions import CellControlSignal

    kept = {name: os.environ[name] for name in LIBRARIES if name in os.environ}
    variables = kept | {"PYVECGPU_DEVICE": device} | variables
    client = NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(FOLDER)}},
    )
    failed = None
    try:
        client.execute(env=child_environment(MPLBACKEND="", **variables))
    except CellControlSignal as error:
        failed = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    assert failed is None, failed
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    printed = "".join(output.text for output in outputs if output.output_type == "stream")
    return printed, {kind for output in outputs for kind in output.get("data", {})}


def read(name):
    import nbformat

    return nbformat.reads(text_of(name), as_version=4)


@pytest.mark.filterwarnings("default")  # those of Jupyter's packages, not ours
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_run(device, name):
    need_packages(device)
    printed, kinds = execute(read(name), device)
    for text in SHOWN[name]:
        assert text in printed, f"{text!r} is not in\n{printed}"
    assert NO_CARD not in printed
    assert f"on {device}" in printed
    if importlib.util.find_spec("matplotlib"):
        assert "image/png" in kinds and NO_PICTURES not in printed
    else:
        assert NO_PICTURES in printed and "image/png" not in kinds


@pytest.mark.devices("cpu")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if SHOWN[name]])
def test_notebooks_run_without_any_card(device, name, tmp_path):
    need_packages(device)
    absent = tmp_path / "absent.so"
    printed, _ = execute(read(name), device, PYVECGPU_SIM_LIBRARY=absent)
    assert printed.count(NO_CARD) == 1
    for text in SHOWN[name]:
        assert text not in printed


@pytest.mark.devices("cpu")
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("name", "function"), SPOILED)
def test_notebooks_see_wrong_results(device, name, function):
    need_packages(device)
    from nbformat.v4 import new_code_cell

    notebook = read(name)
    notebook.cells.insert(0, new_code_cell(SPOIL.format(name=function)))
    with pytest.raises(AssertionError, match=r"(?s)executing the following cell.*AssertionError"):
        execute(notebook, device)


@pytest.mark.devices("cpu")
@pytest.mark.filterwarnings("default")
def test_a_broken_cell_is_shown_with_its_error(device):
    need_packages(device)
    from nbformat.v4 import new_code_cell, new_notebook

    cells = [new_code_cell("x = 1"), new_code_cell("assert x == 2, f'x is {x}'")]
    with pytest.raises(AssertionError, match=r"(?s)assert x == 2.*AssertionError: x is 1"):
        execute(new_notebook(cells=cells), device)
