"""Files that texts and comments name are there: a reader who follows a name finds something."""

import ast
import io
import re
import subprocess
import tokenize
from pathlib import PurePosixPath as Path

import pytest
from helpers import ROOT

FLOORS = "dtypes|runtime|arrays|kernels|simulator|lessons"
# From the project's folder on, or with an ending from cuda/ on or from where the text stands; and a
# file's bare name. A word in capitals stands for any, as "*" does.
PATH = re.compile(
    rf"(?<![\w/.~-])((?:cuda|pyvecgpu|tests|docs)/[\w*./-]*\w[/*]?"
    rf"|(?:{FLOORS})/[\w*/-]+\.(?:cuh?|cpp|[hc]|py|md)\b"
    rf"|[\w*-]+\.(?:cuh?|py|mk)\b)"
)
C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
MAKE_COMMENT = re.compile(r"^\s*#[^\n]*", re.MULTILINE)
# Names that stand for what a reader has.
INVENTED = {"kernel.cu"}


def files():
    """All files of the project, by git; without it (in an sdist) those of its folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode == 0 and listed.stdout:
        return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    folders = ("cuda", "docs", "pyvecgpu", "tests")
    found = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    return [path.relative_to(ROOT).as_posix() for path in [*found, *ROOT.glob("[A-Z]*")]]


def prose_of(name, text):
    """What of a file is for readers: Markdown, comments, docstrings."""
    kind = Path(name).suffix
    if kind == ".md":
        return text
    if kind in (".cu", ".cuh", ".c", ".h", ".cpp"):
        return "\n".join(C_COMMENT.findall(text))
    if kind == ".mk" or name == "Makefile":
        return "\n".join(MAKE_COMMENT.findall(text))
    if kind == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        found = [token.string for token in tokens if token.type == tokenize.COMMENT]
        nodes = (ast.Module, ast.ClassDef, ast.FunctionDef)
        found += [
            ast.get_docstring(n) or "" for n in ast.walk(ast.parse(text)) if isinstance(n, nodes)
        ]
        return "\n".join(found)
    return ""


def is_there(path, name, names):
    """Whether a path that the file `name` names is there."""
    pattern = re.sub(r"[A-Z]{2,}(?![a-z])", "*", path) if not (ROOT / path).exists() else path
    if "/" not in path:
        pattern = re.compile(re.escape(pattern).replace(r"\*", ".*") + "$")
        return any(pattern.match(one) for one in names)
    folders = (ROOT, ROOT / "cuda", (ROOT / name).parent)
    return any(any(folder.glob(pattern.rstrip("/"))) for folder in folders)


def test_named_files_are_there():
    every = files()
    names = {Path(name).name for name in every} | INVENTED
    seen, lost = 0, []
    for name in every:
        if Path(name).suffix in {".md", ".cu", ".cuh", ".c", ".h", ".cpp", ".mk", ".py", ""}:
            prose = prose_of(name, (ROOT / name).read_text(encoding="utf-8"))
            found = PATH.findall(prose)
            seen += len(found)
            lost += [f"{name}: {path}" for path in found if not is_there(path, name, names)]
    assert seen > 200
    assert not lost, "named, but not there:\n" + "\n".join(lost)


@pytest.mark.parametrize("name", [name for name in files() if name.endswith(".md")])
def test_links_lead_somewhere(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for link in re.findall(r"\]\((?!https?:)([^)#]+)[^)]*\)", text):
        assert ((ROOT / name).parent / link).exists(), link


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("cuda/runtime/storage.cuh", True),
        ("runtime/storage.cuh", True),
        ("cuda/lessons/01_first_kernel.cu", True),
        ("docs/measured/ladder-CARD.json", True),
        ("storage.cuh", True),
        ("cuda/arrays/storage.cuh", False),
        ("arrays/stream.cu", False),
        ("cuda/runtimes/", False),
        ("stores.cuh", False),
    ],
)
def test_what_is_there(path, there):
    assert PATH.findall(f"see {path}, which") == [path]
    assert is_there(path, "README.md", {Path(name).name for name in files()}) == there
