"""Finding and loading the libraries, and the environment: every case in a process of its own.

No driver, no device, libraries planted beside the program, overrides, broken files, garbage in
PYVECGPU_* variables. Importing never fails, and the CPU device always works.
"""

import ctypes
import json
import os
import shutil
import struct
import subprocess
import sys

import helpers
import pytest

import pyvecgpu as vg
from pyvecgpu.native import elf, library, settings
from pyvecgpu.native.abi import ABI_VERSION, FUNCTIONS, SIMULATOR_FUNCTIONS
from pyvecgpu.native.owners import KINDS

SIM = os.path.join(library.PACKAGE, library.FILES["sim"])
CUDA = os.path.join(library.PACKAGE, library.FILES["cuda"])

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")

# Prints what a device does: its first values, or the exception.
USE = """
import json, sys, warnings
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as caught:
    import pyvecgpu as vg
    report = []
    for device in {devices!r}:
        try:
            report.append(vg.ones(2, device=device).tolist())
        except Exception as error:
            report.append([type(error).__name__, str(error)])
    report.append([str(w.message) for w in caught if "pyvecgpu" in str(w.message).lower()])
print(json.dumps(report))
"""


def use(*devices, flags=(), **options):
    return helpers.child_result(USE.format(devices=devices), *flags, **options)


# ---- Import and the default device ---------------------------------------------------------------


# What is imported when it is first asked for: parts of the package, and what only they, or reading
# and writing files, need of the standard library.
LATER = {
    *(f"pyvecgpu.{name}" for name in vg._PARTS),
    *("copy", "dataclasses", "gzip", "json", "random", "secrets", "urllib.parse", "zipfile"),
    "numpy.ma",
}


def test_import_makes_no_cuda_call_and_is_quick(tmp_path):
    """It takes less than twice the processor's time of NumPy's, which is first, or 0.1 s.

    The modules are compiled already, as they are once a package is installed: the first run leaves
    their byte code in a folder of this test's, whatever the environment says about writing it.
    Compiling anew takes three times as long. On a machine that is busy with other things NumPy
    takes several times as long too. What it must not load is listed above.
    """
    code = f"""
import sys, time
starts = [time.process_time()]
import numpy
starts.append(time.process_time())
before = set(sys.modules)  # NumPy's, and what a .pth file of this machine imports
import pyvecgpu
starts.append(time.process_time())
maps = open("/proc/self/maps").read()
loaded = ["libpyvecgpu" in maps, "libcuda" in maps, *({LATER!r} & (set(sys.modules) - before))]
import json
print(json.dumps([starts[2] - starts[1], starts[1] - starts[0], loaded]))
"""
    compiled = {"PYTHONPYCACHEPREFIX": tmp_path, "PYTHONDONTWRITEBYTECODE": ""}
    runs = [helpers.child_result(code, **compiled) for _ in range(6)]
    assert any(tmp_path.rglob("pyvecgpu/__init__.*.pyc"))
    assert [loaded for *_, loaded in runs] == 6 * [[False, False]]
    assert any(ours < max(2 * numpys, 0.1) for ours, numpys, _ in runs[1:]), runs


def test_parts_come_when_they_are_asked_for():
    for name in vg._OF_PARTS:
        code = f"""
import json, sys
import pyvecgpu as vg
before = {name!r} in vars(vg)
print(json.dumps([before, {name!r} in dir(vg), callable(vg.{name}), {name!r} in vars(vg)]))
"""
        assert helpers.child_result(code) == [False, True, True, True]
    for part in vg._PARTS:
        code = f"""
import json, sys
import pyvecgpu as vg
from pyvecgpu import {part}
print(json.dumps([vg.{part} is {part}, {part}.__name__, {part!r} in dir(vg)]))
"""
        assert helpers.child_result(code) == [True, f"pyvecgpu.{part}", True]


def test_importing_twice_gives_one_state():
    code = """
import importlib, json, sys
import pyvecgpu as first
a = first.ones(2, device="sim")
again = importlib.reload(first)
same = [again is first, again.Device("sim") is a.device, (a + 1.0).tolist()]
for name in [name for name in sys.modules if name.startswith("pyvecgpu")]:
    del sys.modules[name]
import pyvecgpu as second
b = second.ones(3, device="sim")
same += [second is first, *[vg.counters("sim")["live_arrays"] for vg in (second, first)]]
maps = {line.split()[-1] for line in open("/proc/self/maps") if "libpyvecgpu" in line}
print(json.dumps([*same, (a + a).tolist(), b.tolist(), len(maps)]))
"""
    reloaded = [True, True, [2, 2]]
    imported_anew = [False, 2, 2, [2, 2], [1, 1, 1], 1]
    assert helpers.child_result(code) == reloaded + imported_anew


SUB_INTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:  # before Python 3.13
    import _xxsubinterpreters as interpreters
import pyvecgpu as vg
x = vg.ones(2, device="sim")
other = interpreters.create()
interpreters.run_string(other, {inside!r})
interpreters.destroy(other)
print((x + 1.0).tolist())
"""
INSIDE = """
try:
    import pyvecgpu as vg
    print((vg.ones(2, device="sim") + 1.0).tolist(), flush=True)
except ImportError:
    print("ImportError", flush=True)
"""


def test_sub_interpreters():
    """There it works, or it is an ImportError as NumPy's is; the main interpreter goes on."""
    done = helpers.run_child(SUB_INTERPRETER.format(inside=INSIDE))
    assert done.returncode == 0, done.stderr
    inside, outside = done.stdout.splitlines()
    assert inside in ("ImportError", "[2.0, 2.0]")
    assert outside == "[2.0, 2.0]"


def test_cpu_is_the_default_without_a_gpu():
    code = """
import json, pyvecgpu as vg
print(json.dumps([str(vg.zeros(1).device), vg.is_available(), [str(d) for d in vg.devices()][0]]))
"""
    for visible in ("", "-1", "99"):
        assert helpers.child_result(code, CUDA_VISIBLE_DEVICES=visible) == ["cpu", False, "cpu"]


@pytest.mark.skipif(not os.path.exists(CUDA), reason="the GPU library is not built")
@pytest.mark.parametrize("visible", ["", "-1", "99", "nonsense"])
def test_no_visible_device(visible):
    unavailable, on_cpu, _ = use("cuda", "cpu", CUDA_VISIBLE_DEVICES=visible)
    assert unavailable[0] == "DeviceUnavailableError"
    assert "driver" in unavailable[1]
    assert on_cpu == [1, 1]


def test_the_reason_is_the_same_each_time():
    first, second, on_cpu, _ = use("cuda", "cuda:0", "cpu", CUDA_VISIBLE_DEVICES="")
    assert first == second
    assert issubclass(vg.DeviceUnavailableError, RuntimeError)
    assert on_cpu == [1, 1]


def test_a_device_chosen_by_the_environment():
    code = "import json, pyvecgpu as vg; print(json.dumps(str(vg.zeros(1).device)))"
    for name, chosen in (("sim", "sim:0"), ("cpu", "cpu"), ("sim:0", "sim:0")):
        assert helpers.child_result(code, PYVECGPU_DEVICE=name) == chosen
    done = helpers.run_child(code, PYVECGPU_DEVICE="cuda", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 1
    assert "DeviceUnavailableError" in done.stderr, "a device that was asked for is never replaced"


# ---- Planted libraries ---------------------------------------------------------------------------


@pytest.fixture
def planted(tmp_path):
    """A folder with libraries of our names that end the process when they are loaded."""
    source = tmp_path / "evil.c"
    source.write_text(
        "#include <unistd.h>\n__attribute__((constructor)) static void run(void) { _exit(66); }\n"
    )
    for name in library.FILES.values():
        subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / name, source], check=True)
    return tmp_path


@needs_compiler
def test_planted_libraries_are_not_loaded(planted):
    code = """
import json, pyvecgpu as vg
print(json.dumps([vg.ones(2, device="sim").tolist(), isinstance(vg.is_available("cuda"), bool),
                  [line.split()[-1] for line in open("/proc/self/maps") if "libpyvecgpu" in line]]))
"""
    paths = os.pathsep.join([str(planted), str(helpers.ROOT)])
    for options in (
        {"cwd": planted},
        {"LD_LIBRARY_PATH": planted},
        {"PYTHONPATH": paths},
        {
            "cwd": planted,
            "LD_LIBRARY_PATH": planted,
            "PYTHONPATH": paths,
            "PATH": f"{planted}:{os.environ['PATH']}",
        },
    ):
        values, _, mapped = helpers.child_result(code, **options)
        assert values == [1, 1]
        assert set(mapped) <= {SIM, CUDA}


@needs_compiler
def test_the_planted_library_would_have_been_noticed(planted):
    code = f"import ctypes; ctypes.CDLL({str(planted / 'libpyvecgpu_sim.so')!r})"
    assert helpers.run_child(code).returncode == 66


# ---- Overrides -----------------------------------------------------------------------------------


@pytest.fixture
def copied(tmp_path):
    """A copy of the simulated card's library that only its owner may write."""
    path = tmp_path / "copy of a library.so"
    shutil.copyfile(SIM, path)
    path.chmod(0o644)
    return path


def test_an_override_is_loaded_and_said_so(copied):
    values, messages = use("sim", PYVECGPU_SIM_LIBRARY=copied)
    assert values == [1, 1]
    assert len(messages) == 1
    assert "PYVECGPU_SIM_LIBRARY" in messages[0] and str(copied) in messages[0]


def test_an_override_may_replace_the_gpu_library(copied):
    """The simulated card's build has the same functions: it answers as "cuda"."""
    values, messages = use("cuda", PYVECGPU_LIBRARY=copied)
    assert values == [1, 1]
    assert "PYVECGPU_LIBRARY" in messages[0]


@pytest.mark.parametrize("flag", ["-I", "-E"])
def test_overrides_are_ignored_in_isolated_mode(tmp_path, flag):
    code = f"import sys; sys.path.insert(0, {str(helpers.ROOT)!r})\n" + USE.format(devices=["sim"])
    values, messages = helpers.child_result(code, flag, PYVECGPU_SIM_LIBRARY=tmp_path / "absent.so")
    assert values == [1, 1]
    assert messages == []


def test_overrides_that_are_refused(copied, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for path, reason in (
        ("libpyvecgpu_sim.so", "absolute"),
        ("./libpyvecgpu_sim.so", "absolute"),
        (tmp_path / "absent.so", "No such file"),
        (folder, "regular file"),
        (fifo, "regular file"),
        ("/dev/zero", "regular file"),
    ):
        refused, on_cpu, _ = use("sim", "cpu", PYVECGPU_SIM_LIBRARY=path, cwd=tmp_path)
        assert refused[0] == "DeviceUnavailableError"
        assert reason in refused[1] and "PYVECGPU_SIM_LIBRARY" in refused[1]
        assert on_cpu == [1, 1]
    for mode in (0o664, 0o646, 0o666):
        copied.chmod(mode)
        refused, on_cpu, _ = use("sim", "cpu", PYVECGPU_SIM_LIBRARY=copied)
        assert refused[0] == "DeviceUnavailableError"
        assert "write" in refused[1]
        assert on_cpu == [1, 1]


def test_a_refused_override_does_not_fall_back_silently(tmp_path):
    code = "import pyvecgpu as vg; vg.zeros(1)"
    done = helpers.run_child(code, PYVECGPU_LIBRARY=tmp_path / "absent.so")
    assert done.returncode == 1
    assert "PYVECGPU_LIBRARY" in done.stderr


# ---- Broken libraries ----------------------------------------------------------------------------


def broken(copied, kind):
    """Spoil a copy of the library; return what the reason has to contain."""
    content = bytearray(copied.read_bytes())
    if kind == "empty":
        content = b""
    elif kind == "text":
        content = b"not a library\n" * 100
    elif kind == "half":
        content = content[: len(content) // 2]
    elif kind == "without its last byte":
        content = content[:-1]
    elif kind == "header alone":
        content = content[:64]
    elif kind == "another machine":
        content[18:20] = struct.pack("<H", 183 if content[18] == 62 else 62)  # aarch64, x86-64
    elif kind == "32 bits":
        content[4] = 1
    elif kind == "big-endian":
        content[5] = 2
    elif kind == "garbage after the header":
        content[64:2000] = os.urandom(1936)
    copied.write_bytes(content)


@pytest.mark.parametrize(
    "kind",
    ["empty", "text", "half", "without its last byte", "header alone", "another machine", "32 bits",
     "big-endian", "garbage after the header"],
)  # fmt: skip
def test_broken_libraries(copied, kind):
    broken(copied, kind)
    refused, again, on_cpu, _ = use("sim", "sim:0", "cpu", PYVECGPU_SIM_LIBRARY=copied)
    assert refused[0] == again[0] == "DeviceUnavailableError"
    assert str(copied) in refused[1]
    assert on_cpu == [1, 1]


FLIPS = """
import ctypes, json, os, random
from pyvecgpu.native import elf
path = {path!r}
content, ends = open(path, "rb").read(), []
size = 64 + 56 * int.from_bytes(content[56:58], "little")
for bit in random.Random(20240607).sample(range(8 * size), 60):
    flipped = content[bit // 8] ^ 1 << bit % 8
    with open(path, "r+b") as file:
        file.seek(bit // 8)
        file.write(bytes([flipped]))
    child = os.fork()
    if child == 0:
        try:
            elf.check_library(path)
            ctypes.CDLL(path).pvg_abi_version()
            os._exit(0)
        except OSError:
            os._exit(1)
    ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    with open(path, "r+b") as file:
        file.seek(bit // 8)
        file.write(content[bit // 8 : bit // 8 + 1])
print(json.dumps(ends))
"""


def test_flipped_bits_of_headers(copied):
    """A library with any one is refused, or loads: the loader ends no process."""
    ends = helpers.child_result(FLIPS.format(path=str(copied)))
    assert set(ends) <= {0, 1}
    assert ends.count(1) > len(ends) // 2


STRANGERS = {
    "no symbols": "int unrelated;",
    "no functions but the version": f"int pvg_abi_version(void) {{ return {ABI_VERSION}; }}",
    "another ABI version": f"int pvg_abi_version(void) {{ return {ABI_VERSION + 1}; }}",
    "ABI version 0": "int pvg_abi_version(void) { return 0; }",
}


@needs_compiler
@pytest.mark.parametrize("kind", STRANGERS)
def test_libraries_that_do_not_belong_here(tmp_path, kind):
    source, path = tmp_path / "stranger.c", tmp_path / "stranger.so"
    source.write_text(STRANGERS[kind])
    subprocess.run(["cc", "-shared", "-fPIC", "-o", path, source], check=True)
    path.chmod(0o755)
    refused, on_cpu, _ = use("sim", "cpu", PYVECGPU_SIM_LIBRARY=path)
    assert refused[0] == "DeviceUnavailableError"
    assert str(path) in refused[1]
    if "version" in kind and "no functions" not in kind:
        assert "ABI version" in refused[1]
    assert on_cpu == [1, 1]


def test_without_any_library(tmp_path):
    """A checkout that is not built: the message says what to type."""
    package = tmp_path / "pyvecgpu"
    shutil.copytree(library.PACKAGE, package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    sim, cuda, on_cpu, _ = use("sim", "cuda", "cpu", cwd=tmp_path, PYTHONPATH=tmp_path)
    assert sim[0] == cuda[0] == "DeviceUnavailableError"
    assert "make sim" in sim[1] and str(package) in sim[1]
    assert "make" in cuda[1]
    assert on_cpu == [1, 1]
    done = subprocess.run(
        [sys.executable, "-m", "pyvecgpu", "info"], cwd=tmp_path, capture_output=True, text=True,
        env=helpers.child_environment(PYTHONPATH=tmp_path), timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "not built" in done.stdout


# ---- Environment variables -----------------------------------------------------------------------

GARBAGE = {
    "PYVECGPU_DEVICE": [
        "gpu",
        "cuda:-1",
        "cuda:",
        "sim:99999999999",
        "cpu:0",
        " cpu",
        "CUDA",
        "\u0663",
        "x" * 5000,
    ],
    "PYVECGPU_SYNC": ["2", "yes", "-1", "1 ", "\u0661"],
    "PYVECGPU_ALLOCATOR": ["slow", "POOL", "1", "debug "],
    "PYVECGPU_MEMORY_LIMIT": ["abc", "-1", "0", "1.5G", "9" * 30, "1X", "10 M", "\u0665", "1e9"],
    "PYVECGPU_MATMUL": ["fast", "TILED", "1", "tiled ", "matmul_tiled", "\u0661"],
    "PYVECGPU_LAUNCH_LOG": ["/", "/nonexistent/folder/log", "/proc/self/nothing"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(n, v) for n, vs in GARBAGE.items() for v in vs], ids=lambda v: v[:30]
)
def test_garbage_in_variables(name, value):
    """A ValueError that names the variable, at first use and each time; importing still works."""
    sim, on_cpu, _ = use("sim", "cpu", **{name: value})
    for kind, message in (sim, on_cpu):
        assert kind == "ValueError", message
        assert name in message


def test_garbage_in_a_mapping():
    """What no environment holds, too: a NUL."""
    nul = {f"PYVECGPU_{name}LIBRARY": ["/lib\0"] for name in ("", "SIM_")}
    for name, values in {**GARBAGE, **nul}.items():
        for value in values:
            with pytest.raises(ValueError, match=f"^{name} is .*; it can be "):
                settings.read({name: value})


def test_several_variables_in_one_process():
    """What a table of all mistakes would say; and garbage that is not text."""
    code = USE.format(devices=["sim"])
    environment = {os.fsencode(k): os.fsencode(v) for k, v in helpers.child_environment().items()}
    for name in GARBAGE:
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment | {os.fsencode(name): b"\xff\xfe\x80"},
            capture_output=True, cwd=helpers.ROOT, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        report = json.loads(done.stdout.splitlines()[-1])
        if name == "PYVECGPU_LAUNCH_LOG":  # any bytes make a file name
            assert report[0] == [1, 1]
            os.unlink(os.path.join(os.fsencode(helpers.ROOT), b"\xff\xfe\x80"))
        else:
            assert report[0][0] == "ValueError" and name in report[0][1]


@pytest.mark.parametrize("content", [b"\x7fELF", b"\x7fELF" + bytes(59), b"x" * 64, b"x" * 4096])
def test_files_that_are_no_library(tmp_path, content):
    """Too short or without the mark, each by itself."""
    path = tmp_path / "library.so"
    path.write_bytes(content)
    with pytest.raises(OSError, match="not a shared library"):
        elf.check_library(path)


def test_a_limit_above_the_cards_memory():
    """It is meant for a GPU; the simulated card has less memory and takes all of it."""
    sim, _ = use("sim", PYVECGPU_MEMORY_LIMIT="900T")
    assert sim == [1, 1]


def test_a_limit_that_the_card_refuses(monkeypatch):
    """The message names the variable and its value, and says what the library says."""
    loaded, card = library.load("sim"), vg.Device("sim")
    limits = settings.current()._replace(memory_limit=-5)
    monkeypatch.setattr(settings, "current", lambda: limits)
    module = sys.modules["pyvecgpu.device"]
    monkeypatch.setattr(module, "_devices", {})
    assert card.backend.library is loaded
    with pytest.raises(ValueError, match=r"^PYVECGPU_MEMORY_LIMIT is -5 bytes; .*limit"):
        vg.Device("sim")


def test_variables_do_what_they_say(tmp_path):
    code = """
import json, pyvecgpu as vg
x = vg.ones(1000, device="sim") + 1.0
try:
    vg.zeros(3 << 20, dtype="uint8", device="sim")
    error = ""
except vg.OutOfMemoryError as caught:
    error = "out of memory"
print(json.dumps([vg.memory_info("sim").limit, error]))
"""
    log = tmp_path / "launches"
    limit, error = helpers.child_result(
        code, PYVECGPU_MEMORY_LIMIT="2M", PYVECGPU_LAUNCH_LOG=log, PYVECGPU_SYNC=1
    )
    assert limit == 2 << 20
    assert error == "out of memory"
    lines = log.read_text().splitlines()
    assert lines and all(line.startswith("sim ") and "_kernel" in line for line in lines)


MULTIPLY = """
import json, pyvecgpu as vg
report = []
for shape in ((3, 3), (3, 0)):
    x = vg.ones(shape, device="sim")
    try:
        report.append((x @ x.T).tolist())
    except Exception as error:
        report.append([type(error).__name__, str(error)])
report.append((vg.ones((2, 2), device="cpu") @ vg.ones(2, device="cpu")).tolist())
print(json.dumps(report))
"""


def test_a_kernel_of_products_that_is_forced():
    """All products are computed by it, or fail; the simulated card has the portable one."""
    three, zeros, two = [[3, 3, 3]] * 3, [[0, 0, 0]] * 3, [2, 2]
    for name in ("tiled", "auto"):
        result = helpers.child_result(MULTIPLY, PYVECGPU_MATMUL=name)
        assert result == [three, zeros, two], name
    for name in ("tensor", "ffma_64x64", "bf16x6", "dmma"):
        for error in helpers.child_result(MULTIPLY, PYVECGPU_MATMUL=name)[:2]:
            assert error[0] == "ValueError"
            assert "matmul" in error[1] and "forced" in error[1] and "(3," in error[1]


def test_empty_variables_count_as_unset():
    values, messages = use(
        "sim", **dict.fromkeys(GARBAGE, ""), PYVECGPU_SIM_LIBRARY="", PYVECGPU_LIBRARY=""
    )
    assert values == [1, 1]
    assert messages == []


def test_an_unknown_variable_gives_a_warning():
    values, messages = use("sim", PYVECGPU_SINC="1")
    assert values == [1, 1]
    assert len(messages) == 1
    assert "PYVECGPU_SINC" in messages[0] and "PYVECGPU_SYNC" in messages[0]


# ---- Symbols -------------------------------------------------------------------------------------


@pytest.mark.devices("sim", "cuda")
def test_every_symbol_is_declared(device):
    """restype and argtypes of every function; what is not in the table is not there."""
    loaded = library.load(device)
    table = FUNCTIONS | (SIMULATOR_FUNCTIONS if device == "sim" else {})
    for name, (restype, argtypes) in table.items():
        function = getattr(loaded, name)
        assert function.restype is (ctypes.c_void_p if restype in KINDS else restype)
        assert list(function.argtypes) == argtypes
    for name in (
        "pvg_not_there",
        "malloc",
        "cudaMalloc",
        "pvg_sim_set" if device == "cuda" else "pvg_no",
    ):
        with pytest.raises(AttributeError, match=name):
            getattr(loaded, name)


@pytest.mark.devices("sim", "cuda")
def test_arguments_are_checked(device):
    """Numbers that do not fit, and things that are none, do not reach C."""
    loaded = library.load(device)
    for arguments in (
        (0, 11, 1),
        (0, 11, 1, 5),
        (0, 11, 1, "shape"),
        ("0", 11, 1, None),
        (0, 11.0, 1, None),
    ):
        with pytest.raises((TypeError, ctypes.ArgumentError)):
            loaded.pvg_array_empty(*arguments)
