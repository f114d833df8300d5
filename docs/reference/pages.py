"""Writes the manual's pages: `make docs`, or `python docs/reference/pages.py FOLDER`.

The reference is made of docstrings, a page for each topic; the tables for those who come from
NumPy, torch and CuPy of the names that both have. What stands in docs/ is taken along. mkdocs makes
the site of it.
"""

import inspect
import re
import shutil
import sys
from pathlib import Path

import coming

import pyvecgpu as vg

ROOT = Path(__file__).resolve().parents[2]

# Pages of the reference: title, what it is about, modules whose public names it has.
TOPICS = {
    "creation": (
        "Making arrays",
        ["creation", "ranges", "matrices", "windows", "exchange", "makers"],
    ),
    "elementwise": (
        "Arithmetic and comparisons",
        [
            "elementwise",
            "arithmetic",
            "mathematics",
            "combined",
            "exponentials",
            "aliases",
            "special",
            "bits",
        ],
    ),
    "rounding": ("Floats, complex numbers, NaN", ["comparing", "complexes", "nans", "neighbours"]),
    "reductions": (
        "Sums, means, statistics",
        [
            "reductions",
            "scans",
            "accumulating",
            "statistics",
            "quantiles",
            "binning",
            "histograms",
            "applying",
        ],
    ),
    "shapes": ("Shapes, joining, splitting", ["layout", "joining", "padding", "grids"]),
    "indexing": ("Choosing elements", ["gathering", "assigning", "searching"]),
    "sorting": ("Sorting and sets", ["sorting", "sets"]),
    "products": ("Products, differences", ["linalg", "contractions", "differences", "polynomials"]),
    "layers": ("Layers", ["layers"]),
    "files": ("Files and printing", ["files", "texts", "states", "printing"]),
    "queries": ("Questions", ["queries"]),
}
PARTS = {
    "linalg": "Linear algebra",
    "fft": "Fourier transforms",
    "random": "Random numbers",
    "autograd": "Gradients",
    "nn": "Networks",
    "nn.functional": "Networks: functions",
    "nn.init": "Networks: first values",
    "nn.utils": "Networks: gradients' norms",
    "amp": "Mixed precision",
    "optim": "Optimisers",
    "optim.lr_scheduler": "Learning rates",
    "data": "Data sets and files",
}
NARRATIVE = {
    "nn.md": "Networks and losses",
    "training.md": "Training",
    "porting.md": "Port a torch model",
    "autograd.md": "Gradients, inside",
    "cpu.md": "The CPU device",
    "accuracy.md": "Accuracy",
    "reliability.md": "Reliability",
    "benchmarks.md": "Measured",
    "lessons/README.md": "The ladder: twenty kernels",
}
GITHUB_ANCHOR = re.compile(r"[^\w\- ]")


# One name -----------------------------------------------------------------------------------------


def anchor(full):
    return full.replace("vg.", "", 1)


def linked(text, homes, here):
    """Return a docstring's text with links where it says "see NAME"."""

    def link(match):
        name = match[2].rstrip(".")
        full = name if name.startswith("vg.") else f"vg.{name}"
        if full not in homes:
            return match[0]
        rest = "." if match[2].endswith(".") else ""
        place = homes[full] if homes[full] != here else ""
        return f"{match[1]}[{name}]({place}#{anchor(full)}){rest}"

    return re.sub(r"\b([Ss]ee )((?:vg\.)?[a-zA-Z_][\w.]*)", link, text)


def body(doc, signature, homes, here):
    """Return a docstring as Markdown: sentences, a list of parameters and errors, the example."""
    lines, example = [], []
    for line in doc.splitlines():
        (example if example or line.startswith(">>>") else lines).append(line)
    names = [re.escape(name) for name in signature.parameters] if signature else []
    known = "|".join([*names, r"[A-Z]\w*(?:Error|Warning)"])
    text = re.sub(r"([<>*_])", r"\\\1", "\n".join(lines).strip())
    term = rf"(?:(?<=^)|(?<=[.;] )|(?<=\n))((?:{known})(?:, (?:{known}))*): "
    text = re.sub(term, lambda m: f"\n\n- **{m[1]}**: ", text, flags=re.MULTILINE)
    text = re.sub(r"(?m)^(- \*\*.*(?:\n(?!\n|- ).+)*)\n\n(?=- )", r"\1\n", text)
    text = linked(text, homes, here)
    shown = "\n".join(example).strip()
    return text + (f"\n\n```pycon\n{shown}\n```" if shown else "")


def signature_of(value):
    try:
        return inspect.signature(value)
    except (TypeError, ValueError):
        return None


def item(full, value, homes, here, level="##"):
    """Return the Markdown of one public name."""
    signature = None if isinstance(value, property) else signature_of(value)
    shown = re.sub(
        r"\bself, /, |\bself, |\(self\)", lambda m: "()" * (m[0] == "(self)"), str(signature)
    )
    shown = re.sub(r"dtype\('(\w+)'\)", r"\1", shown).replace("(self)", "()")
    has_own = not shown.startswith("(/, *args, **kwargs)")
    parts = [f"{level} {full} {{ #{anchor(full)} }}"]
    if signature and has_own:
        parts.append(f"```python\n{full}{shown}\n```")
    parts.append(body(inspect.getdoc(value) or "", signature, homes, here))
    if inspect.isclass(value):
        parts += methods(full, value, homes, here, level)
    return "\n\n".join(parts)


def methods(full, cls, homes, here, level):
    """Return the Markdown of the documented methods of a class and of private ones below it."""
    found = []
    private = [base for base in cls.__mro__[1:] if base.__name__[0] == "_"]
    members = {name: one for base in (*private[::-1], cls) for name, one in vars(base).items()}
    for name, member in members.items():
        is_public = name[0] != "_" and (isinstance(member, property) or inspect.isfunction(member))
        if is_public and ">>>" in (member.__doc__ or ""):
            found.append(item(f"{full}.{name}", member, homes, here, f"{level}#"))
    return found


# Pages --------------------------------------------------------------------------------------------


def reference():
    """{page: (title, introduction, {full name: value})} of the whole reference."""
    pages, top = {}, {}
    for topic, (title, modules) in TOPICS.items():
        names = {}
        for module in modules:
            module = getattr(vg.functions, module)
            names |= {f"vg.{name}": getattr(vg, name) for name in module.__all__}
        pages[f"reference/{topic}.md"] = (title, "", dict(sorted(names.items())))
        top |= names
    pages["reference/array.md"] = ("Array", "", {"vg.Array": vg.Array})
    for part, title in PARTS.items():
        module = vg
        for name in part.split("."):
            module = getattr(module, name)
        own = vars(module)
        names = getattr(module, "__all__", None) or [
            n for n, v in own.items() if n[0] != "_" and v.__module__ == module.__name__
        ]
        values = {f"vg.{part}.{name}": getattr(module, name) for name in sorted(names)}
        values = {n: v for n, v in values.items() if not inspect.ismodule(v)}
        first = (module.__doc__ or "").strip().split("\n\n")[0]
        pages[f"reference/{part}.md"] = (title, first, values)
    rest = {f"vg.{n}": getattr(vg, n) for n in sorted(vg.__all__)}
    others = {n: v for n, v in rest.items() if n not in top and n != "vg.Array"}
    gradients = {
        n: v
        for n, v in others.items()
        if getattr(v, "__module__", "").startswith("pyvecgpu.autograd")
    }
    pages["reference/autograd.md"][2].update(gradients)
    fitting = {n: v for n, v in others.items() if getattr(v, "__module__", "").endswith("fitting")}
    pages["reference/products.md"][2].update(fitting)
    gradients |= fitting
    parts = {n: v for n, v in others.items() if callable(v) and n not in gradients}
    pages["reference/devices.md"] = ("Devices, dtypes, errors", _values(others), parts)
    return pages


def _values(names):
    """Return a sentence about dtypes, and one about numbers and the like."""
    dtypes = [n for n, v in names.items() if hasattr(v, "itemsize")]
    plain = [f"`{n}` is {v!r}" for n, v in names.items() if v is None or type(v) is float]
    return f"Dtypes are {', '.join(f'`{n}`' for n in dtypes)}. {', '.join(plain)}."


def table(values, homes, here):
    """Return a table of names with what their docstrings begin with."""
    rows = ["| Name | What it does |", "|-|-|"]
    for full, value in values.items():
        first = (inspect.getdoc(value) or "").partition("\n")[0].replace("|", "\\|")
        place = "" if homes[full] == here else homes[full]
        rows.append(
            f"| [{full}]({place}#{anchor(full)}) | {re.sub('([<>*_])', chr(92) + '1', first)} |"
        )
    return "\n".join(rows)


def write(folder, path, text):
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.rstrip() + "\n", encoding="utf-8")


def write_reference(folder):
    """Write the pages of the reference; return ({full name: its page}, {page: title})."""
    pages = reference()
    homes = {}
    for page, (_, _, values) in pages.items():
        for full in values:
            homes.setdefault(full, Path(page).name)
    for page, (title, first, values) in pages.items():
        here = Path(page).name
        own = {n: v for n, v in values.items() if homes[n] == here}
        text = [f"# {title}", first, table(values, homes, here)]
        text += [item(full, value, homes, here) for full, value in own.items()]
        write(folder, page, "\n\n".join(filter(None, text)))
    return homes, {page: title for page, (title, _, _) in pages.items()}


# What stands in docs/ -----------------------------------------------------------------------------


def brought(text, source, known):
    """Return the text of a page of the repository: links that leave the manual become names."""

    def link(match):
        label, target = match[1], match[2]
        if target.startswith(("http", "#")):
            return match[0]
        file = target.partition("#")[0]
        path = (source.parent / file).resolve().relative_to(ROOT).as_posix()
        if path in known:
            return f"[{label}]({target})"
        return label if "`" in label or "/" in label else f"{label} (`{path}`)"

    return re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]*)\)", link, text)


def write_narrative(folder):
    """Write the pages of docs/, with their pictures."""
    lessons = sorted((ROOT / "docs" / "lessons").glob("[0-9][0-9].md"))
    files = [ROOT / "docs" / name for name in NARRATIVE] + lessons
    known = {file.relative_to(ROOT).as_posix() for file in files}
    for file in files:
        text = brought(file.read_text(encoding="utf-8"), file, known)
        write(folder, file.relative_to(ROOT / "docs").as_posix(), text)
    for picture in (ROOT / "docs" / "lessons").glob("*.svg"):
        shutil.copy(picture, folder / "lessons" / picture.name)
    return lessons


FRONT = """\
# pyvecgpu

Arrays and networks on NVIDIA GPUs for NumPy users, in plain CUDA C.

```python
import pyvecgpu as vg

x = vg.asarray([[1.0, 2.0], [3.0, 4.0]])  # to the GPU, if there is one
y = vg.sigmoid(x @ x.T).sum(axis=0)       # stays there
y.tolist()                                # and comes back
```

{counts} Each has an example, which is run as a test on the CPU device and on the simulated card.
Numbers in the examples are those of the CPU device: others agree with them but for the last digits.

**You know another library?** [NumPy](coming/numpy.md), [torch](coming/torch.md) and
[CuPy](coming/cupy.md) have tables of what is here, what has another name and what there is not.

| Where | What is there |
|-|-|
{topics}
"""


def front(homes, titles):
    """Return the first page: every name there is, by topics."""
    rows = []
    for page, title in titles.items():
        names = [n for n, home in homes.items() if home == Path(page).name]
        links = [f"[{n.rpartition('.')[2]}]({page}#{anchor(n)})" for n in names]
        rows.append(f"| **[{title}]({page})** | {', '.join(links)} |")
    functions = sum(n.count(".") == 1 for n in homes)
    counts = f"There are {functions} names in `vg` and {len(homes) - functions} in its parts."
    return FRONT.format(counts=counts, topics="\n".join(rows))


CONFIG = """\
site_name: pyvecgpu {version}
docs_dir: docs
site_dir: {site}
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.indexes, navigation.top, toc.follow, content.code.copy]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
      primary: teal
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      primary: teal
markdown_extensions: [attr_list, tables, toc, pymdownx.highlight, pymdownx.superfences]
plugins: [search]
validation:
  links:
    anchors: warn
    not_found: warn
nav:
{nav}
"""


def nav(titles, lessons):
    lines = ["- Home: index.md", "- Coming from:"]
    lines += [f"  - {library}: coming/{library.lower()}.md" for library in coming.LIBRARIES]
    lines += ["- Reference:"] + [f'  - "{title}": {page}' for page, title in titles.items()]
    lines += ["- Guides:"] + [f'  - "{title}": {page}' for page, title in NARRATIVE.items()]
    lines += ["- Lessons:"]
    for file in lessons:
        title = file.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        lines.append(f'  - "{title}": lessons/{file.name}')
    return "\n".join(f"  {line}" for line in lines)


def main(folder):
    """Write everything that mkdocs takes into a folder."""
    folder = Path(folder).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    docs = folder / "docs"
    homes, titles = write_reference(docs)
    for library in coming.LIBRARIES:
        write(docs, f"coming/{library.lower()}.md", coming.page(library, homes))
    lessons = write_narrative(docs)
    write(docs, "index.md", front(homes, titles))
    site = folder.parent / "site"
    config = CONFIG.format(version=vg.__version__, site=site, nav=nav(titles, lessons))
    write(folder, "mkdocs.yml", config)


if __name__ == "__main__":
    main(sys.argv[1])
