"""The tests' own tools: comparisons that fail when they should, and conftest.py's promises."""

import os
import subprocess
import sys
from collections import Counter

import helpers
import numpy as np
import parts
import pytest
from helpers import FLOATS

import pyvecgpu as vg
from pyvecgpu.native import library

NAN = np.nan


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_ulp_distance(dtype):
    one, zero = np.ones(1, dtype), np.zeros(1, dtype)
    up = np.nextafter(one, dtype.type(2)).astype(dtype)
    tiny = np.full(1, helpers.finfo(dtype).smallest_subnormal, dtype)
    assert helpers.ulp_distance(one, up) == helpers.ulp_distance(up, one) == 1
    assert helpers.ulp_distance(zero, -zero) == 0
    assert helpers.ulp_distance(tiny, -tiny) == 2
    assert helpers.ulp_distance(-one, -up) == 1
    largest = np.full(1, helpers.finfo(dtype).max, dtype)
    assert helpers.ulp_distance(largest, -largest) > 2 ** (8 * dtype.itemsize - 2)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ([1.0, 2.0], [1.0, 3.0]),
        ([1.0, NAN], [1.0, 2.0]),
        ([1.0, 2.0], [1.0, NAN]),
        ([0.0], [-0.0]),
        ([np.inf], [-np.inf]),
        ([1.0], [1.0, 1.0]),
        ([1.0], 1.0),
    ],
    ids=str,
)
def test_different_values_are_not_the_same(result, expected):
    with pytest.raises(AssertionError):
        helpers.assert_same(np.array(result), np.array(expected))
    helpers.assert_same(np.array(expected), np.array(expected))


def test_another_dtype_is_not_the_same():
    with pytest.raises(AssertionError, match="dtype"):
        helpers.assert_same(np.ones(2, np.int32), np.ones(2, np.int64))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_close_means_the_ulps_of_the_table(dtype):
    exact = np.array([1.0, 100.0, -3.0, np.inf, NAN], np.longdouble)
    near = exact.astype(dtype)
    for steps in range(1, 6):
        near[1] = np.nextafter(near[1], dtype.type(1e9))
        if steps <= (1 if dtype in helpers.HALVES else helpers.ULPS["exp"]["sim"]):
            helpers.assert_close(near, exact, "exp", "sim")
        else:
            with pytest.raises(AssertionError, match="ulp"):
                helpers.assert_close(near, exact, "exp", "sim")
        with pytest.raises(AssertionError):
            helpers.assert_close(near, exact, "sqrt", "sim")
    for place, wrong in ((0, NAN), (4, 1.0), (3, -np.inf), (3, 1.0), (0, np.inf)):
        spoiled = exact.astype(dtype)
        spoiled[place] = wrong
        with pytest.raises(AssertionError):
            helpers.assert_close(spoiled, exact, "exp", "sim")


def test_nan_is_within_no_tolerance():
    for result, reference in ((NAN, 1.0), (1.0, NAN), (np.inf, 1.0), (1.0, np.inf), (1.2, 1.0)):
        with pytest.raises(AssertionError):
            helpers.assert_within(np.array([result]), np.array([reference]), 0.1)
    with pytest.raises(AssertionError):
        helpers.assert_within(np.array([1.0]), np.array([1.0 + 1e-9]), NAN)
    helpers.assert_within(np.array([1.05, NAN]), np.array([1.0, NAN]), 0.1)


def test_refusals_that_do_not_come_or_do_harm():
    x = vg.ones(2, device="cpu")
    with pytest.raises(AssertionError, match="not raised"), helpers.refused("cpu", ValueError):
        pass
    with (
        pytest.raises(AssertionError, match="ZeroDivisionError"),
        helpers.refused("cpu", ArithmeticError),
    ):
        1 / 0  # noqa: B018
    with pytest.raises(AssertionError, match="changed"), helpers.refused("cpu", ValueError, x):
        x[0] = 5.0
        raise ValueError


# ---- conftest.py ---------------------------------------------------------------------------------

SUITE = """
import sys
import threading
import pytest
import pyvecgpu as vg
from pyvecgpu.native import library
kept = []
def test_leaks(device):
    kept.append(vg.zeros(3, device=device))
@pytest.mark.parametrize("what", ["pvg_stream_create", "pvg_event_create"])
def test_leaks_from_c(device, what):
    assert getattr(library.load(device), what)(0)
def test_leaks_a_file(device):
    kept.append(open("/dev/null"))
def test_leaks_a_thread(device):
    kept.append(threading.Event())
    threading.Thread(target=kept[-1].wait, daemon=True).start()
def test_does_not(device):
    vg.zeros(3, device=device)
def test_imports_what_keeps_a_file(device):
    sys.path.append("site-packages")
    import another
    del sys.path[-1]
@pytest.mark.devices("sim")
def test_changes_a_setting(device, simulator):
    assert simulator.pvg_sim_set(b"deferred", 1) == 0
@pytest.mark.devices("sim")
def test_leaves_a_setting(device):
    assert library.load(device).pvg_sim_get(b"deferred") == 0
    assert library.load(device).pvg_sim_set(b"deferred", 1) == 0
@pytest.mark.needs("no_such_package")
def test_needs_a_package(device):
    assert False
"""


def run_suite(tmp_path, *options, **variables):
    """Run the little suite in a process of its own; return its status and output."""
    path = tmp_path / "test_little.py"
    path.write_text(SUITE)
    (tmp_path / "site-packages").mkdir(exist_ok=True)
    (tmp_path / "site-packages" / "another.py").write_text("kept = open('/dev/null')")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "conftest",
            "-p",
            "no:cacheprovider",
            *options,
            path,
        ],
        cwd=tmp_path,
        env=helpers.child_environment(**variables),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_leaks_are_errors_and_missing_packages_are_named(tmp_path):
    status, output = run_suite(tmp_path, "--device", "sim")
    assert status == 1
    assert "left by the test: {'arrays': 1, 'bytes': 512, 'blocks': 1}" in output
    for what in ("streams", "events", "descriptors", "threads", "setting 'deferred'"):
        assert f"left by the test: {{{what!r}: 1}}" in output
    assert "9 passed, 1 deselected, 6 errors" in output
    assert "deselected: needs no_such_package: test_little.py::test_needs_a_package[sim]" in output
    assert "seed 20240607" in output


@pytest.mark.skipif(
    not os.path.exists(os.path.join(library.PACKAGE, library.FILES["cuda"])),
    reason="the GPU library is not built",
)
def test_a_missing_gpu_is_skipped_or_fails(tmp_path):
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    status, output = run_suite(tmp_path, "--device", "cuda", **hidden)
    assert status == 0
    assert "7 skipped" in output and "no GPU" in output
    status, output = run_suite(tmp_path, "--device", "cuda", "--require-gpu", **hidden)
    assert status == 1
    assert "--require-gpu" in output


def test_a_library_that_does_not_load_ends_the_run(tmp_path):
    absent = {"PYVECGPU_SIM_LIBRARY": tmp_path / "absent.so"}
    status, output = run_suite(tmp_path, "--device", "sim", **absent)
    assert status == 1
    assert "does not load" in output and "skipped" not in output


def test_threads_of_blas_are_there_again_after_a_fork():
    before = helpers.in_use(None)
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert helpers.in_use(None) == before
    x = np.ones((1000, 1000), np.float32)
    assert (x @ x)[0, 0] == 1000
    assert helpers.in_use(None) == before


# ---- parts.py ------------------------------------------------------------------------------------


def run_parts(folder, count, *options):
    """Run the modules of a folder; return the status, the output and what each test wrote."""
    command = [sys.executable, parts.__file__, str(count), folder, "-p", "conftest", *options]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", "--device", "cpu"],
        cwd=folder,
        env=helpers.child_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    ran = sorted(path.name for path in folder.glob("ran.*"))
    for name in ran:
        (folder / name).unlink()
    return done.returncode, done.stdout + done.stderr, ran


def test_each_test_runs_once_in_one_of_several_processes(tmp_path):
    count = 2
    text = "import os, pathlib, pytest\n"
    for name in ("first", "second"):
        text += f"def test_{name}(request):\n"
        text += "    name = f'ran.{request.module.__name__}.{request.node.name}'\n"
        text += "    pathlib.Path(name).touch(exist_ok=False)\n"
        text += "    pathlib.Path('by').open('a').write(f'{os.getpid()}\\n')\n"
    for n in range(12):
        wait = "    import time; time.sleep(0.6)\n" if n == 5 else ""
        (tmp_path / f"test_module{n}.py").write_text(text + wait)
    names = sorted(f"ran.test_module{n}.test_{x}" for n in range(12) for x in ("first", "second"))
    status, output, ran = run_parts(tmp_path, count)
    assert status == 0 and ran == names, output
    assert "== 24 passed in" in output.splitlines()[-1]
    assert "slowest modules, in seconds: test_module5 1, " in output.splitlines()[-2]
    assert len({*(tmp_path / "by").read_text().split()}) <= count

    (tmp_path / "test_module7.py").write_text(text + "    pytest.fail('as asked for')\n")
    (tmp_path / "test_module8.py").write_text(text + "    pytest.skip('as asked for')\n")
    status, output, ran = run_parts(tmp_path, count)
    assert status == 1 and ran == names
    assert "== 1 failed, 22 passed, 1 skipped in" in output.splitlines()[-1]
    # Whichever process ran it, and however long its own output: the last lines name it.
    told = output.splitlines()[-parts.LINES - 2 : -1]
    assert "FAILED test_module7.py::test_second" in told, output
    assert "    E       Failed: as asked for" in told, output
    status, output, ran = run_parts(tmp_path, count, "-k", "first and module3")
    assert status == 0 and ran == ["ran.test_module3.test_first"]
    assert "== 1 passed, 23 deselected in" in output.splitlines()[-1]
    assert run_parts(tmp_path, count, "-k", "third")[0] == 5
    assert run_parts(tmp_path, count, "--no-such-option")[0] == 4
    (tmp_path / "test_module0.py").write_text("import no_such_module\n")
    status, output, _ = run_parts(tmp_path, count)
    assert status == 2 and "error" in output.splitlines()[-1]
    assert "ERROR test_module0.py" in output.splitlines()[-parts.LINES - 1 :], output


def test_several_processes_share_a_module(tmp_path):
    """By functions, each with its parameters; unless its tests are to stay together."""
    text = """
import os, pathlib, time, pytest
{more}
@pytest.fixture(scope="module", autouse=True)
def whole():
    yield
    pathlib.Path("ended").open("a").write(f"{{__name__}} {{os.getpid()}}\\n")

def ran(request):
    line = f"{{__name__}} {{request.node.originalname}} {{os.getpid()}}\\n"
    pathlib.Path("by").open("a").write(line)
    end = time.monotonic() + 30
    while {waits} and time.monotonic() < end:  # for the other process
        lines = pathlib.Path("by").read_text().splitlines()
        if len({{line.split()[2] for line in lines if line.startswith(__name__)}}) == 2:
            break
        time.sleep(0.05)
"""
    for name in ("one", "two", "three", "four"):
        text += '@pytest.mark.parametrize("x", (1, 2))\n'
        text += f"def test_{name}(request, x):\n    ran(request)\n"
    (tmp_path / "test_shared.py").write_text(text.format(more="", waits=True))
    (tmp_path / "test_whole.py").write_text(text.format(more="TOGETHER = True", waits=False))
    status, output, _ = run_parts(tmp_path, 2)
    assert status == 0 and "== 16 passed in" in output.splitlines()[-1], output
    ran = [tuple(line.split()) for line in (tmp_path / "by").read_text().splitlines()]
    assert sorted(Counter(ran).values()) == [2] * 8  # a function's tests have one process
    processes = {(module, process) for module, _, process in ran}
    assert Counter(module for module, _ in processes) == {"test_shared": 2, "test_whole": 1}
    ended = [tuple(line.split()) for line in (tmp_path / "ended").read_text().splitlines()]
    assert sorted(ended) == sorted(processes)  # once each, after the last test

    text = text[: text.index("@pytest.mark.parametrize")]
    text += '@pytest.mark.parametrize("x", (1, 2, 3, 4))\n'
    text += "def test_one(request, x):\n    ran(request)\n"
    apart = tmp_path / "apart"
    apart.mkdir()
    (apart / "test_apart.py").write_text(text.format(more="APART = True", waits=True))
    status, output, _ = run_parts(apart, 2)
    assert status == 0 and "== 4 passed in" in output.splitlines()[-1], output
    assert len({line.split()[2] for line in (apart / "by").read_text().splitlines()}) == 2


def test_what_has_to_be_alone_runs_when_the_others_have_ended(tmp_path):
    text = """
import pathlib, time, pytest

@pytest.mark.alone("sim")
def test_of_a_device(device):
    time.sleep(1)
    pathlib.Path(f"ran.{device}").touch(exist_ok=False)

@pytest.mark.alone
def test_of_the_machine():
    pathlib.Path("ran.alone").touch(exist_ok=False)
    assert pathlib.Path("ran.cpu").exists()
"""
    (tmp_path / "test_module.py").write_text(text)
    status, output, ran = run_parts(tmp_path, 2)
    assert status == 0 and ran == ["ran.alone", "ran.cpu"], output
    assert "== 2 passed in" in output.splitlines()[-1]
    status, output, ran = run_parts(tmp_path, 2, "-k", "of_a_device")
    assert status == 0 and ran == ["ran.cpu"] and "1 passed, 1 deselected" in output
    (tmp_path / "test_module.py").write_text(text.replace('"ran.cpu").exists', '"none").exists'))
    status, output, ran = run_parts(tmp_path, 2)
    assert status == 1 and ran == ["ran.alone", "ran.cpu"]
    assert "== 1 failed, 1 passed in" in output.splitlines()[-1] and "FAILED test_module" in output


def test_processes_share_the_cores(tmp_path, monkeypatch):
    name = "OPENBLAS_NUM_THREADS"
    text = f"import os, pathlib\ndef test_it():\n    told = os.environ['{name}']\n"
    text += "    pathlib.Path(f'ran.{told}').touch()\n"
    (tmp_path / "test_module.py").write_text(text)
    monkeypatch.delenv(name, raising=False)
    cores = os.cpu_count() or 1
    assert run_parts(tmp_path, 1)[2] == [f"ran.{cores}"]
    assert run_parts(tmp_path, 2)[2] == [f"ran.{max(1, cores // 2)}"]
    monkeypatch.setenv(name, "7")
    assert run_parts(tmp_path, 2)[2] == ["ran.7"]


def test_a_process_that_ends_before_its_tests_is_an_error(tmp_path):
    (tmp_path / "test_module.py").write_text("import os\ndef test_ends():\n    os._exit(3)\n")
    status, output, _ = run_parts(tmp_path, 2)
    assert status == 3 and "ended before its tests did" in output
    assert "== 1 error in" in output.splitlines()[-1], output
