"""docs/why.md: its pictures, its quoted instructions, and the figures that its command measures."""

import json
import re
import runpy
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from itertools import pairwise

import numpy as np
import pytest
from helpers import ROOT
from test_lesson_pages import BLOCK, CLOSED, LINK, MEASUREMENT

import pyvecgpu as vg
from pyvecgpu.bench import why_page
from pyvecgpu.bench.article.progress import Progress
from pyvecgpu.demo import by_hand
from pyvecgpu.learn import command, networks, why

FOLDER = ROOT / "docs/why"
TEXT = (ROOT / "docs/why.md").read_text(encoding="utf-8")
PICTURES = sorted(path.name for path in FOLDER.glob("*.svg"))


# The page -----------------------------------------------------------------------------------------


def test_links_lead_somewhere():
    links = LINK.findall(TEXT)
    assert len(links) > 10
    for link in links:
        assert link.startswith("https://") or (ROOT / "docs" / link).exists(), link
    for page in ("README.md", "docs/lessons/01.md"):
        assert "why.md)" in (ROOT / page).read_text(encoding="utf-8"), page


def test_no_figure_is_typed_by_hand():
    prose = CLOSED.sub("", BLOCK.sub("", TEXT))
    assert not MEASUREMENT.search(prose), MEASUREMENT.search(prose)


def test_pictures_are_those_of_the_script(tmp_path):
    command = [sys.executable, "-B", str(FOLDER / "draw.py"), str(tmp_path)]
    subprocess.run(command, check=True, timeout=60)
    drawn = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert drawn == {name: (FOLDER / name).read_bytes() for name in PICTURES}
    assert sorted(re.findall(r"\(why/(\w+\.svg)\)", TEXT)) == PICTURES


@pytest.mark.parametrize("name", PICTURES)
def test_words_are_inside_of_the_picture(name):
    svg = ElementTree.parse(FOLDER / name).getroot()
    width, height = float(svg.get("width")), float(svg.get("height"))
    for text in (element for element in svg if element.tag.endswith("}text")):
        x, y, size = (float(text.get(key)) for key in ("x", "y", "font-size"))
        length = 0.56 * size * len(text.text)
        left = x - length * {"start": 0, "middle": 0.5, "end": 1}[text.get("text-anchor")]
        assert left >= 0 and left + length <= width and size <= y <= height, text.text


def test_instructions_are_those_of_the_lesson():
    tools = [shutil.which(name) for name in ("nvcc", "cuobjdump")]
    if None in tools:
        pytest.skip("needs nvcc and cuobjdump")
    release = subprocess.run([tools[0], "--version"], capture_output=True, text=True).stdout
    if "release 13.0" not in release:
        pytest.skip("the page has the instructions of CUDA 13.0")
    page = runpy.run_path(str(FOLDER / "instructions.py"))["page"]
    assert page() == TEXT


# Networks -----------------------------------------------------------------------------------------


def test_networks_have_as_many_parameters_as_is_known():
    lesson, digits, lenet, alexnet = networks.NETWORKS
    source = (ROOT / "cuda/lessons/17_network.cu").read_text(encoding="utf-8")
    assert f"each of the {lesson.parameters} numbers" in source
    sizes = by_hand.SIZES
    assert digits.parameters == sum(m * (n + 1) for n, m in pairwise(sizes))
    assert (lenet.parameters, alexnet.parameters) == (61_706, 60_965_224)
    # 2 * 16 + 16 * 16 + 16 products forward; for the inputs of the first layer none come back.
    assert lesson.products == 3 * (32 + 256 + 16) - 32
    assert lesson.bytes == 32 * 337


def test_a_convolution_is_a_product_of_windows(rng):
    """By the shapes of a Layer: the product of all windows is what a loop over the image gives."""
    layer = networks.LENET.layers[1]
    image = rng.standard_normal((6, 14, 14))
    weights = rng.standard_normal((layer.inputs, layer.outputs))
    windows = np.lib.stride_tricks.sliding_window_view(image, (5, 5), (1, 2))
    rows = windows.transpose(1, 2, 0, 3, 4).reshape(layer.positions, layer.inputs)
    filters = weights.T.reshape(layer.outputs, 6, 5, 5)
    expected = [
        (image[:, y : y + 5, x : x + 5] * one).sum()
        for y in range(10)
        for x in range(10)
        for one in filters
    ]
    np.testing.assert_allclose((rows @ weights).ravel(), expected, rtol=1e-9, atol=1e-9)


def test_a_step_multiplies_what_is_counted(device, monkeypatch):
    """Every product of every layer is run, in the shapes that the counts are of."""
    done = []
    right = vg.Array.__matmul__

    def counted(a, b):
        done.append(np.prod(a.shape[:-1], dtype=int) * a.shape[-1] * b.shape[-1])
        return right(a, b)

    monkeypatch.setattr(vg.Array, "__matmul__", counted)
    monkeypatch.setattr(why, "ENOUGH", -1.0)  # each once
    network = networks.Network(
        "small", (networks.Layer("c", 9, 4, 3, 2), networks.Layer("d", 1, 6, 2))
    )
    for layer in network.layers:
        assert why.products(layer, 5, vg.Device("cpu"), layer is network.layers[0]) > 0
    assert sum(done) == 5 * network.products
    if vg.Device(device).type == "sim":
        assert why.products(network.layers[0], 5, vg.Device(device)) > 0


# Measuring ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def threads_of_the_loops():
    """OpenMP's threads, which stay, are there before a test begins."""
    why.latency(why.setting(quick=True)._replace(device=None))


def small(**more):
    on = why.setting(quick=True)
    return on._replace(network=networks.LENET, **more)


def test_one_worker_and_many():
    on = small(device=None)
    assert on.loops is not None, on.no_loops
    lines, figures = why.latency(on)
    assert list(figures) == ["one core", f"all {on.cores} cores"]
    assert all(0 < times["one"] < times["many"] for times in [figures["one core"]])
    assert "There is no GPU here" in lines[-1]


def test_the_serial_share():
    lines, figures = why.amdahl(small(device=None))
    one = [times["one"] for times in figures["parts"].values()]
    assert len(one) == 3 and figures["serial_share"] == one[0] / sum(one)
    limit = re.search(r"more than (\S+) times", " ".join(lines))[1]
    assert abs(float(limit) * figures["serial_share"] - 1) < 0.01


@pytest.mark.devices("sim", "cuda")
def test_with_a_card(device):
    on = small(device=vg.Device(device))
    lines, figures = why.latency(on)
    assert on.device.name in figures and "no GPU" not in lines[-1]
    lines, figures = why.amdahl(on)
    assert all("gpu" in times for times in figures["parts"].values())
    lines, figures = why.step(on)
    assert figures["moved"] > 0 and list(figures["gpu"]) == list(figures["cpu"])
    assert any(line.startswith('.to("cuda") of its 61,706 parameters') for line in lines)
    gain = sum(figures["cpu"].values()) - sum(figures["gpu"].values())
    assert lines[-1] == why._pays(figures["moved"], gain)


def test_when_a_move_pays():
    assert why._pays(1.0, 0.3) == "which pays off after 4 of such steps."
    assert "never" in why._pays(1.0, -0.1)


def test_without_a_compiler():
    on = small(loops=None, no_loops="there is no C compiler", device=None)
    for part in (why.latency, why.amdahl):
        assert part(on) == (["The C loops were not built: there is no C compiler"], {})


def test_loops_that_do_not_compile(monkeypatch):
    """The reason is kept, and what needs no loops goes on."""

    def fails(cores):
        raise OSError("cc: not found")

    monkeypatch.setattr(why, "Loops", fails)
    on = why.setting(quick=True)
    assert on.loops is None and on.no_loops == "cc: not found"
    said = []
    kept = why.report(on._replace(network=networks.LENET, device=None), said.append, Progress(4))
    assert said.count("The C loops were not built: cc: not found") == 2
    assert kept["parts"][2]["figures"] and kept["parts"][3]["figures"]["batch"] == on.batch


def test_the_command_keeps_what_it_said(tmp_path, capsys, monkeypatch):
    setting = why.setting
    monkeypatch.setattr(
        why, "setting", lambda quick: setting(quick)._replace(network=networks.LENET)
    )
    path = tmp_path / "why.json"
    assert command.main(["why", "--run", "--quick", "--json", str(path)]) == 0
    said = capsys.readouterr().out
    kept = json.loads(path.read_text())
    assert kept["benchmark"] == "why" and [part["title"] for part in kept["parts"]] == [
        title for title, _ in why.PARTS
    ]
    for part in kept["parts"]:
        assert "\n".join([part["title"], "-" * len(part["title"]), *part["lines"]]) in said
    page = why_page.render([kept])
    assert kept["cpu"]["name"] in page and page.endswith("```")
    assert command.main(["why", "--run", "--json", str(tmp_path / "no" / "x")]) == 1
    assert "No such file" in capsys.readouterr().err


def test_progress_tells_without_counting(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)  # which keeps a thread

    class Stream:
        text = ""

        def isatty(self):
            return True

        def write(self, text):
            self.text += text

        def flush(self):
            pass

    progress = Progress(4, stream=Stream())
    progress.bar = None
    progress.advance("first")
    progress.tell("inside")
    assert progress.done == 1 and progress.stream.text.endswith("1/4 inside")


def test_durations_and_numbers_in_words():
    assert [why.duration(x) for x in (2.5, 0.00125, 3e-7)] == ["2.5 s", "1.25 ms", "0.3 us"]
    assert [why.number(x) for x in (999, 60_965_224, 2.1e9)] == [
        "999",
        "61.0 million",
        "2.1 billion",
    ]
