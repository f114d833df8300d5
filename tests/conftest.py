"""Devices, seeds and checks around every test.

`device` runs a test on "cpu", "sim" and "cuda". Without a GPU its cuda parameter is skipped with
the driver's reason; with --require-gpu that is a failure. A library that does not load ends the
run: it never looks like a skip. After each test nothing of what it made may be left.
"""

import gc
import importlib.util
import itertools
import os
import sys
import time
import traceback

import forced
import helpers
import numpy as np
import pytest
from parts import Part

import pyvecgpu as vg
from pyvecgpu import streams
from pyvecgpu.native import library
from pyvecgpu.native.abi import Option

DEVICES = ("cpu", "sim", "cuda")
NO_DEVICE = "none"  # stands for a device that --device leaves out

no_gpu = pytest.StashKey[str]()  # why "cuda" cannot be used; "" if it can
deselected = pytest.StashKey[dict]()  # package: tests that need it
lacking_kernel = pytest.StashKey[list]()  # tests of kernels of products that the card has not got
failed = pytest.StashKey[bool]()  # of a test: so far
part = pytest.StashKey[Part]()  # of the tests that this process runs; None: all


def pytest_addoption(parser):
    group = parser.getgroup("pyvecgpu")
    group.addoption("--device", choices=DEVICES, help="run device tests on this device only")
    group.addoption(
        "--require-gpu", action="store_true", help="a GPU that is not there is a failure"
    )
    group.addoption("--seed", type=int, default=20240607, help="of all random data and programs")
    group.addoption("--programs", type=int, help="random programs on each device",
                    default=os.environ.get("PVG_TEST_PROGRAMS", "20_000"))  # fmt: skip
    group.addoption("--part", type=Part, help="given by parts.py: this process's tests")


def pytest_configure(config):
    config.addinivalue_line("markers", "devices(*names): the devices a test with `device` runs on")
    config.addinivalue_line("markers", "needs(package): a package that the machine may lack")
    config.addinivalue_line("markers", "alone(*devices): not beside other processes of parts.py")
    config.addinivalue_line("markers", "big: more elements than 32 bits can count; alone on a card")
    config.addinivalue_line("markers", "checkers: needs the builds of make test-checkers")
    config.addinivalue_line("markers", "programs: as many as --programs says")
    chosen = config.getoption("--device")
    config.stash[part] = config.getoption("--part")
    config.stash[no_gpu] = ""
    for name in (chosen,) if chosen else DEVICES:
        if name != "cpu":
            load_or_exit(config, name)
    if chosen not in (None, "sim") and vg.is_available("sim"):
        helpers.warm_up("sim")  # some tests use it on their own


def load_or_exit(config, name):
    """Load a library and start its launch log; keep why "cuda" has no device."""
    try:
        loaded = library.load(name)
    except vg.DeviceUnavailableError as error:
        pytest.exit(f"the library for {name!r} does not load: {error}", returncode=1)
    loaded.set_option(Option.OPTION_LAUNCH_LOG, 1)
    if name == "sim":
        forced.simulate_cards()
    try:
        vg.Device(name)
    except vg.DeviceUnavailableError as error:
        if name == "sim":
            pytest.exit(f"the simulated card does not start: {error}", returncode=1)
        config.stash[no_gpu] = str(error)
    else:
        helpers.warm_up(name)


def pytest_report_header(config):
    reason = config.stash[no_gpu]
    chosen = config.getoption("--device")
    lines = [f"pyvecgpu: seed {config.getoption('--seed')} (--seed)"]
    if helpers.BFLOAT16 is None:
        lines.append("pyvecgpu: no ml_dtypes: bfloat16 is not tested")
    if reason and chosen in (None, "cuda"):
        lines.append(f"pyvecgpu: no GPU: {reason}")
    return lines


def pytest_generate_tests(metafunc):
    if "device" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--device")
        marker = metafunc.definition.get_closest_marker("devices")
        names = [n for n in (marker.args if marker else DEVICES) if chosen in (None, n)]
        metafunc.parametrize("device", names or [NO_DEVICE], indirect=True, scope="function")


def device_of(item):
    """The name of the device that a test is parametrised with; None without one."""
    return item.callspec.params.get("device") if hasattr(item, "callspec") else None


def forces_a_kernel(item):
    """Whether a test forces a kernel of products, on a card that there is."""
    kernel, device = item.callspec.params.get("kernel"), device_of(item)
    is_there = device == "sim" or (device == "cuda" and not item.config.stash[no_gpu])
    return is_there and any(kernel == case[0] for case in forced.CASES)


def card_of(item):
    """The name of the card that a test runs on: of "sim" the first that has the test's kernel."""
    device = device_of(item)
    if device in ("sim", "cuda") and forces_a_kernel(item):
        return forced.card_for(device, item.callspec.params["kernel"]) or device
    return device


def lacks_its_kernel(item):
    """Whether a test forces a kernel of products that its card has not got.

    The card is asked. That none is missing that should be there says test_what_the_card_has.
    """
    if device_of(item) not in ("sim", "cuda") or not forces_a_kernel(item):
        return False
    return forced.card_for(device_of(item), item.callspec.params["kernel"]) is None


def has_to_be_alone(item):
    """Whether a test measures what other processes use as well: of its device, or of all.

    Or takes more of a card's memory than they leave.
    """
    return item.get_closest_marker("big") is not None or any(
        not marker.args or device_of(item) in marker.args for marker in item.iter_markers("alone")
    )


@pytest.hookimpl(trylast=True)  # after -k and -m
def pytest_collection_modifyitems(config, items):
    lacking, other, by_time = {}, [], ([], [], [])
    mine = config.stash[part]
    config.stash[lacking_kernel] = kernelless = []
    for item in items:
        if device_of(item) == NO_DEVICE:
            other.append(item)
            continue
        if lacks_its_kernel(item):
            kernelless.append(item)
            continue
        if mine and mine.count > 1 and has_to_be_alone(item):
            mine.alone.append(item.nodeid)
            continue
        packages = [marker.args[0] for marker in item.iter_markers("needs")]
        absent = [name for name in packages if importlib.util.find_spec(name) is None]
        if absent:
            lacking.setdefault(absent[0], []).append(item)
        else:
            # What launches kernels, what counts them, what waits for work beside the tests.
            is_coverage = item.path.name == "test_coverage.py"
            by_time[2 if hasattr(item.module, "WORK") else is_coverage].append(item)
    items[:] = itertools.chain(*[mine.order(group) if mine else group for group in by_time])
    config.stash[deselected] = lacking
    other += [item for group in (*lacking.values(), kernelless) for item in group]
    config.hook.pytest_deselected(items=other)


def is_skipped(item):
    """Whether a test is for a GPU that is not there."""
    return bool(item.config.stash[no_gpu]) and device_of(item) == "cuda"


def pytest_collection_finish(session):
    gc.collect()
    gc.freeze()  # ten thousand tests, at which no later gc.collect() has to look
    if session.config.option.collectonly:
        return
    for module in dict.fromkeys(item.module for item in session.items):
        mine = session.config.stash[part]
        items = [item for item in session.items if item.module is module]
        if hasattr(module, "WORK") and (mine is None or mine.takes(items[0])):
            module.WORK.begin([item for item in items if not is_skipped(item)])
            session.config.add_cleanup(module.WORK.end)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session):
    """As pytest's own loop, without what another process has taken.

    What comes next is known when a test ends, as fixtures of modules end with their last test.
    """
    mine = session.config.stash[part]
    if mine is None or session.config.option.collectonly or session.testsfailed:
        return None
    ours = filter(mine.takes, session.items)
    item = next(ours, None)
    while item is not None:
        following = next(ours, None)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        item = following
    return True


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """After a module: what pytest keeps of its tests is not looked at by later gc.collect()s.

    After ten thousand tests each would take a fifth of a second, and some tests make many.
    """
    result = yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()
    return result


def pytest_terminal_summary(terminalreporter, config):
    mine = config.stash[part]
    if mine:
        mine.leave(terminalreporter.stats)
        if mine.number:
            return  # the first process tells what follows
    for package, items in config.stash.get(deselected, {}).items():
        tests = {}  # a test of several parameters is named once
        for item in items:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item.nodeid)
        names = [x[0] if len(x) == 1 else f"{name} ({len(x)})" for name, x in tests.items()]
        terminalreporter.write_line(f"deselected: needs {package}: {', '.join(names)}")
    pairs = [
        (device_of(i), i.callspec.params["kernel"]) for i in config.stash.get(lacking_kernel, [])
    ]
    for device in dict.fromkeys(device for device, _ in pairs):
        names = ", ".join(sorted({kernel for one, kernel in pairs if one == device}))
        terminalreporter.write_line(f"deselected: {device} has no {names}")


def pytest_runtest_setup(item):
    # Here and not in the fixture, so that the summary counts all these skips in one line.
    if is_skipped(item):
        reason = item.config.stash[no_gpu]
        if item.config.getoption("--require-gpu"):
            pytest.fail(f"--require-gpu: {reason}", pytrace=False)
        pytest.skip(reason)


@pytest.fixture
def device(request):
    """The name of the device that the test runs on."""
    return card_of(request.node)


@pytest.fixture(scope="module")
def simulated_cards():
    """Makes the default streams of all simulated cards, which stay, before tests count theirs."""
    for name in (f"sim:{n}" for n in range(len(forced.SIMULATED_CARDS))):
        if vg.is_available(name):
            vg.zeros(1, device=name).numpy()


@pytest.fixture
def rng(request):
    """A random generator of the test's own: the run's seed and the test's name."""
    words = np.frombuffer(request.node.nodeid.encode(), np.uint8)
    return np.random.default_rng([request.config.getoption("--seed"), *words])


@pytest.fixture(autouse=True)
def no_numpy_warnings():
    """Infinities and NaN are ordinary results here; only the CPU device would warn of them."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(autouse=True)
def nothing_left(request):
    """Whatever a test made is gone when it ends: arrays, memory, streams, threads, files ..."""
    name = card_of(request.node)
    before, modules = helpers.in_use(name), set(sys.modules)
    yield
    if request.node.stash.get(failed, False):
        return
    if name is not None and name != NO_DEVICE:
        streams.release(vg.Device(name))  # which are kept for others that ask for one
    for attempt in range(20):
        now = helpers.in_use(name)
        grown = {what: now[what] - n for what, n in before.items() if now[what] > n}
        if grown and helpers.imported_since(modules):  # other packages keep threads and files
            grown = {what: n for what, n in grown.items() if what not in ("threads", "descriptors")}
        if not grown:
            return
        gc.collect()
        if attempt:
            time.sleep(0.05)  # a thread that has been joined may take a while to be gone
    raise AssertionError(f"left by the test: {grown}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.failed:
        item.stash[failed] = True
    error = call.excinfo and call.excinfo.value
    while error is not None:  # its frames would keep arrays alive during other tests
        traceback.clear_frames(error.__traceback__)
        error = error.__context__
    return report


@pytest.fixture
def simulator():
    """The simulated card's own controls; injected faults and settings are undone afterwards."""
    loaded = library.load("sim")
    loaded.pvg_sim_reset()
    before = helpers.simulator_settings(loaded)
    yield loaded
    for name, value in before.items():
        assert loaded.pvg_sim_set(name.encode(), value) == 0
    loaded.pvg_sim_reset()
