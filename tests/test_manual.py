"""The manual: every public name has its place, links inside lead somewhere, tables are true."""

import html.parser
import os
import re
import subprocess
import sys
import urllib.parse
from pathlib import Path

import examples
import helpers
import numpy as np
import pytest

import pyvecgpu as vg
from pyvecgpu import names

TOGETHER = True  # of one manual
ANCHOR = re.compile(r"^#+ .*\{ #([^ ]+) \}$", re.MULTILINE)
MODULES = {file.stem for file in (helpers.ROOT / "pyvecgpu").iterdir()}
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    """The folder of the pages, as docs/reference/pages.py writes them."""
    folder = tmp_path_factory.mktemp("manual")
    script = helpers.ROOT / "docs" / "reference" / "pages.py"
    environment = {**os.environ, "PYTHONPATH": str(helpers.ROOT)}
    command = [sys.executable, str(script), str(folder / "pages")]
    result = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stderr
    return folder / "pages"


def test_every_public_name_has_its_place(manual):
    texts = [file.read_text() for file in (manual / "docs" / "reference").glob("*.md")]
    found = [place for text in texts for place in ANCHOR.findall(text)]
    assert len(found) == len(set(found))
    expected = {name.replace("vg.", "", 1) for name in examples.documented()}
    assert expected <= set(found)
    index = (manual / "docs" / "index.md").read_text()
    for name in expected:
        owner = name.rpartition(".")[0]
        is_method = owner and owner[owner.rfind(".") + 1].isupper()
        assert is_method or f"#{name})" in index, f"the first page has no {name}"


def test_examples_are_shown(manual):
    text = (manual / "docs" / "reference" / "sorting.md").read_text()
    part = text[text.index("## vg.sort {") :]
    assert "```python\nvg.sort(x, /, axis=-1" in part
    assert ">>> vg.sort(vg.asarray([[3, 1], [2, 4]])).tolist()\n[[1, 3], [2, 4]]" in part


def test_links_between_pages_resolve(manual):
    pages = manual / "docs"
    count = 0
    for file in pages.rglob("*.md"):
        for target in LINK.findall(
            re.sub(r"```.*?```|`[^`\n]*`", "", file.read_text(), flags=re.S)
        ):
            if target.startswith("http"):
                continue
            path, _, place = target.partition("#")
            page = (file.parent / path).resolve() if path else file
            assert page.is_file(), f"{file.name}: {target}"
            if place and page.parent.name == "reference":
                assert place in ANCHOR.findall(page.read_text()), f"{file.name}: {target}"
            count += 1
    assert count > 2000


class Page(html.parser.HTMLParser):
    """The links and the places of a page."""

    def __init__(self, file):
        super().__init__()
        self.links, self.places = [], set()
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.links += [attributes[key] for key in ("href", "src") if attributes.get(key)]
        self.places |= {attributes[key] for key in ("id", "name") if attributes.get(key)}


@pytest.mark.needs("mkdocs")
@pytest.mark.needs("material")
def test_links_of_the_site_resolve(manual):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(
        [*command, "--config-file", str(manual / "mkdocs.yml")],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    site = manual.parent / "site"
    pages = {file.resolve(): Page(file) for file in site.rglob("*.html")}
    assert len(pages) > 50
    for file, page in pages.items():
        for link in page.links:
            path, place = urllib.parse.urldefrag(link)
            if path.startswith(("http", "data:", "/", "javascript")) and file.name != "404.html":
                assert path.startswith("http"), f"{file.name}: {link}"
            if urllib.parse.urlsplit(path).scheme or file.name == "404.html":
                continue
            target = (file.parent / urllib.parse.unquote(path)).resolve() if path else file
            assert target.exists(), f"{file.name}: {link}"
            if place and target in pages:
                assert urllib.parse.unquote(place) in pages[target].places, f"{file.name}: {link}"


# Names that are not here --------------------------------------------------------------------------


def test_what_is_named_instead_is_there():
    for name, text in names.USE.items():
        assert name not in vg.__all__, f"{name} is there now"
        for full in re.findall(r"pyvecgpu\.(\w[\w.]*)", text):
            value = vg
            for part in full.split("."):
                value = getattr(value, part)
    assert not set(names.WITHOUT) & set(vg.__all__)
    assert not set(names.WITHOUT) & set(names.USE)


def test_names_of_numpys_that_are_given():
    for name in names.NUMPYS:
        assert getattr(vg, name) is getattr(np, name)
    assert not {*names.NUMPYS} & ({*names.WITHOUT} | {*names.USE} | {*vg.__all__})
    assert vg.issubdtype(vg.float32, vg.floating) and isinstance(vg.ones(2).dtype, vg.dtype)


NOT_HERE = set(np.__all__) - set(vg.__all__) - set(names.NUMPYS)


@pytest.mark.parametrize("name", sorted(NOT_HERE - MODULES))
def test_a_name_of_numpys_has_a_hint(name):
    if name.startswith("_"):
        return
    with pytest.raises(AttributeError) as caught:
        getattr(vg, name)
    text = str(caught.value)
    assert "; " in text and "did you mean" not in text
    takes_arrays = callable(getattr(np, name)) and not isinstance(getattr(np, name), type)
    assert takes_arrays or "on x.numpy()" not in text or name in names.WITHOUT


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("clamp", "use pyvecgpu.clip"),
        ("common_type", "numpy.common_type does, of arrays like these"),
        ("vectorize", "it runs Python for every element"),
        ("info", "it is about NumPy itself, as numpy.info"),
        ("datetime64", "arrays have no such dtype"),
        ("ndarray", "use pyvecgpu.Array"),
        ("srqt", "did you mean 'sqrt'"),
    ],
)
def test_hints(name, hint):
    with pytest.raises(AttributeError, match=re.escape(hint)):
        getattr(vg, name)


def test_hasattr_is_quiet():
    assert not hasattr(vg, "vectorize") and not hasattr(vg, "__array_finalize__")


def test_recorded_names_are_plain():
    text = (helpers.ROOT / "docs" / "reference" / "names.json").read_text()
    assert re.fullmatch(r'[\w\s.,:{}\[\]"]+', text)
    assert Path(names.__file__).name == "names.py"


@pytest.mark.parametrize("make", [vg.zeros, vg.ones, vg.empty, vg.asarray, vg.arange, vg.eye])
def test_a_device_of_a_with_is_a_device(device, make):
    chosen = vg.device(device)
    assert chosen is vg.Device(device)
    assert make(2, device=chosen).device is chosen
    with chosen as inside, vg.device("cpu"), chosen:
        assert inside is chosen and make(2).device is chosen
    assert vg.ones(2, device="cpu").to(chosen).device is chosen
    assert vg.random.default_rng(1, device=chosen).random(2).device is chosen
    assert vg.nn.Linear(2, 3, device=chosen).weight.device is chosen
    assert isinstance(vg.memory_info(chosen), vg.MemoryInfo) and vg.is_available(chosen)


def test_the_list_of_what_has_no_gradient_is_that_of_today():
    """As `PYTHONPATH=. python docs/reference/without_gradients.py` writes it, which renews it."""
    code = (
        "import json, runpy; found = runpy.run_path('docs/reference/without_gradients.py'); "
        "print(json.dumps(found['listed']()))"
    )
    page = (helpers.ROOT / "docs" / "autograd.md").read_text()
    listed = page.partition("<!-- without: begin -->\n")[2].partition("<!-- without: end -->")[0]
    assert listed == helpers.child_result(code)
    for name in ("`linalg.qr`", "`linalg.svd`", "`linspace` (a bound of linspace)"):
        assert name in listed, name
    for name in ("`linalg.cond`", "`linalg.eig`", "`fft.rfft`", "`matmul`"):
        assert name not in listed, name
