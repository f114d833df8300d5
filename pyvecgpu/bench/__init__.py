"""Measurements, `python -m pyvecgpu bench streaming|rows|matmul|ladder|...`.

    streaming   memory-bound operations, in bytes a second
    rows        softmax, normalisations and cross-entropy, both ways, in bytes a second
    matmul      matrix products and the dense layer, in floating-point operations a second
    windows     pooling and convolution, forward and backward
    shapes      products of shapes drawn at random
    ladder      one product by every kernel, from the lessons' naive one on
    steps       optimisers, clipping by norm and dropout, in bytes a second
    transfers   from NumPy to the device and back, by the host's clock
    overhead    what a call costs the host, and the import
    sequences   attention and recurrent layers, forward and with their backward pass
    training    a step of a network: forward, backward and update, beside torch's three ways
    sweep       random cases of many classes, beside torch or what the card can do
    cpu         every function on the CPU device beside NumPy, over dtypes and sizes
    model       the kernel that is chosen for a product, beside each that could be
    accuracy    the largest errors of elementwise functions, over all inputs of float32
    article     C loops, NumPy and the GPU from small to large: where a GPU pays off

All but cpu, model, accuracy and article measure pyvecgpu beside its peers, and with `--against DIR`
beside the build in another checkout; article makes pictures and a page.

timing.py says how: device events, warm-up, the median of interleaved rounds, checked results. Every
figure that is printed was measured in that run; `--json` keeps them all, docs/measured has some.
"""

import argparse
import contextlib
import dataclasses
import importlib.util
import json
import math
import os
import sys

import pyvecgpu as vg

from ..errors import DeviceUnavailableError, PyVecGPUError
from . import (
    accuracy,
    article,
    cpu,
    ladder,
    machine,
    matmul,
    model,
    overhead,
    rows,
    sequences,
    shapes,
    steps,
    streaming,
    sweep,
    timing,
    training,
    transfers,
    windows,
)
from .libraries import AGAINST, PEERS, open_libraries

BENCHMARKS = {
    "streaming": streaming,
    "rows": rows,
    "matmul": matmul,
    "windows": windows,
    "shapes": shapes,
    "ladder": ladder,
    "steps": steps,
    "transfers": transfers,
    "overhead": overhead,
    "sequences": sequences,
    "training": training,
}
# Products heat the card, so it rests between rows and before each turn.
REST = {"matmul": 0.3, "windows": 0.3, "shapes": 0.3, "ladder": 0.3}  # seconds
PAUSE = {"matmul": 0.02, "windows": 0.02, "shapes": 0.02, "ladder": 0.02}
ROUNDS = {"matmul": 15, "shapes": 9, "ladder": 15}
GRAPHS = ("matmul", "shapes")  # recorded as CUDA graphs


def say(text=""):
    print(text, flush=True)


def main(argv=None):
    """Run the command and return its exit code.

    1, after a sentence, if a result is wrong or something failed; 2 for a device without sense.
    """
    arguments = parse(argv)
    if arguments.source:
        return redraw(arguments)
    try:
        device = vg.zeros(0, device=arguments.device).device
    except (PyVecGPUError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1 if isinstance(error, PyVecGPUError) else 2
    try:
        if arguments.benchmark == "article":
            return run_article(device, arguments)
        if arguments.benchmark == "sweep":
            return run_sweep(device, arguments)
        if arguments.benchmark == "cpu":
            return run_cpu(arguments)
        if arguments.benchmark == "model":
            return run_model(device, arguments)
        if arguments.benchmark == "accuracy":
            return run_accuracy(device, arguments)
        with replacement(arguments.json) as file:
            return run(device, arguments, file)
    except BrokenPipeError:
        raise
    except (PyVecGPUError, OSError, ImportError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1


@contextlib.contextmanager
def replacement(path):
    """Give a new file that takes the place of `path` once it is whole; None without a path."""
    if path is None:
        yield None
        return
    unfinished = f"{path}.unfinished"
    try:
        with open(unfinished, "w", encoding="utf-8") as file:
            yield file
        os.replace(unfinished, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.remove(unfinished)


def parse(argv):
    parser = argparse.ArgumentParser(
        prog="python -m pyvecgpu bench",
        description="Measure pyvecgpu beside torch, CuPy and another build, or (article) C loops.",
    )
    others = ["sweep", "cpu", "model", "accuracy", "article"]
    parser.add_argument("benchmark", choices=[*BENCHMARKS, *others])
    parser.add_argument("--peers", default="", help="torch, cupy or torch,cupy; default: none")
    parser.add_argument(
        "--against", metavar="DIR", help="another checkout of pyvecgpu, built: one more library"
    )
    parser.add_argument("--json", metavar="FILE", help="write all figures to this file")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: shows that it works")
    parser.add_argument("--device", help="cuda, cuda:1, cpu, sim; default: cuda, else cpu")
    own = parser.add_argument_group("article only")
    own.add_argument("--plot", metavar="DIR", help="draw the pictures in this folder (matplotlib)")
    own.add_argument("--report", metavar="FILE.html", help="write tables and pictures as one page")
    own.add_argument(
        "--from", dest="source", metavar="FILE", help="measure nothing: read what --json wrote"
    )
    sweep.add_options(parser)
    arguments = parser.parse_args(argv)
    check_article(parser, arguments)
    arguments.peers = [name for name in arguments.peers.split(",") if name]
    for name in arguments.peers:
        if name not in PEERS:
            parser.error(f"--peers: {name!r} is not one of {', '.join(PEERS)}")
    sweep.check_options(parser, arguments)
    return arguments


def check_article(parser, arguments):
    """End with a sentence if options of the article's benchmark and of the others are mixed."""
    if arguments.against and arguments.benchmark in ("cpu", "model", "accuracy", "article"):
        parser.error(f"{arguments.benchmark} has no --against")
    if arguments.benchmark != "article":
        for name, value in (("plot", arguments.plot), ("report", arguments.report)):
            if value:
                parser.error(f"--{name} belongs to article")
        if arguments.source:
            parser.error("--from belongs to article")
    elif arguments.peers:
        parser.error("article has no --peers")
    elif arguments.source and arguments.json:
        parser.error("--from measures nothing, so there is nothing for --json")


def run(device, arguments, file):
    """Measure, print, write the figures to the file, and return the exit code."""
    peers = available_peers(device, arguments.peers)
    about = machine.describe(device, peers)
    say_heading(device, arguments, about)
    quick = arguments.quick or device.type == "sim"
    libraries = open_libraries(device, peers, quick, arguments.against)
    measured = {"overhead": run_overhead, "training": run_training}
    table = measured.get(arguments.benchmark, run_rows)(
        arguments.benchmark, device, libraries, quick
    )
    verdicts = [goal.judge(results_of(table)) for goal in BENCHMARKS[arguments.benchmark].GOALS]
    say()
    if arguments.against:
        say_against(table)
    for verdict in verdicts:
        say(f"goal: {verdict.sentence()}")
    write_report(file, report_of(arguments.benchmark, quick, about, table, verdicts))
    return tell_wrong(table)


def say_against(table):
    """Say how our times and those of the other build compare, of all rows together."""
    ratios = {
        row["name"]: row["results"][AGAINST].seconds / row["results"]["pyvecgpu"].seconds
        for row in table
        if AGAINST in row["results"]
    }
    least = min(ratios, key=ratios.get)
    mean = sweep.geometric_mean(ratios.values())
    say(f"against the other build: geometric mean {mean:.3f}x, least {ratios[least]:.3f}x, {least}")


def say_heading(device, arguments, about):
    say(f"{arguments.benchmark} on {device}, {device.name}, {about['date']}")
    if device.type == "cpu":
        say("There is no GPU in this: NumPy on the CPU, in small sizes, by the host's clock.")
    elif device.type == "sim":
        say("The simulated card's times say nothing about a GPU; they show that the command works.")


def run_sweep(device, arguments):
    """Measure random cases, print, write, and return the exit code."""
    peers = available_peers(device, arguments.peers)
    with replacement(arguments.json) as file:
        about = machine.describe(device, peers)
        say_heading(device, arguments, about)
        report, code = sweep.run(device, peers, arguments, say)
        quick = arguments.quick or device.type == "sim"
        write_report(file, {"benchmark": "sweep", "quick": quick, **about, **report})
    return code


def available_peers(device, peers):
    """Return the peers to measure. ModuleNotFoundError: one is not installed."""
    if peers and device.type != "cuda":
        say(f"{' and '.join(peers)} left out: they are measured beside pyvecgpu on a GPU.")
        return []
    for name in peers:
        if importlib.util.find_spec(name) is None:
            raise ModuleNotFoundError(f"{name} is not installed here; leave it out of --peers")
    return peers


# The article --------------------------------------------------------------------------------------


def run_article(device, arguments):
    """Measure, print, write, draw, and return the exit code."""
    article.check_places(arguments.plot, arguments.report)
    with replacement(arguments.json) as file:
        about = machine.describe(device, [])
        say(f"article on {device}, {device.name}, {about['date']}")
        beside, table = article.run(device, arguments.quick)
        quick = arguments.quick or device.type == "sim"
        report = report_of("article", quick, about | beside, table, [])
        report = article.summary.with_crossovers(report)
        write_report(file, report)
    article.conclude(report, arguments.plot, arguments.report)
    return tell_wrong(table)


def redraw(arguments):
    """Draw pictures and write the page from a file of figures; return the exit code."""
    try:
        article.check_places(arguments.plot, arguments.report)
        with open(arguments.source, encoding="utf-8") as file:
            report = json.load(file)
        if not isinstance(report, dict) or report.get("benchmark") != "article":
            raise ValueError(f"{arguments.source} holds no figures of bench article")
        article.conclude(report, arguments.plot, arguments.report)
    except (OSError, ImportError, ValueError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    return 0


# The CPU device -----------------------------------------------------------------------------------


def run_cpu(arguments):
    """Measure, print, write, and return the exit code."""
    device = vg.Device("cpu")
    with replacement(arguments.json) as file:
        about = machine.describe(device, []) | {"cpu": machine.describe_cpu()}
        say(f"cpu on {about['cpu']['name']}, {about['date']}; a process like it alone is best")
        report, verdicts = cpu.run(arguments, say)
        say()
        for verdict in verdicts:
            say(f"goal: {verdict.sentence()}")
        write_report(file, {"benchmark": "cpu", "quick": arguments.quick, **about, **report})
    return 0


# The planner's model ------------------------------------------------------------------------------


def run_model(device, arguments):
    """Measure, print, write, and return the exit code."""
    if device.type == "cpu":
        raise DeviceUnavailableError("model needs a GPU, or the simulated card")
    with replacement(arguments.json) as file:
        about = machine.describe(device, [])
        say(f"model on {device}, {device.name}, {about['date']}")
        quick = arguments.quick or device.type == "sim"
        (library,) = open_libraries(device, [], quick)
        seed = sweep.seed_of(arguments)
        table, scales, verdict = model.run(library, "quick" if quick else "full", seed, say)
        say(f"goal: {verdict.sentence()}")
        report = {"benchmark": "model", "quick": quick, **about, "seed": seed}
        report |= {"rows": table, "scales": scales}
        write_report(file, report | {"goals": [dataclasses.asdict(verdict)]})
    return 0


# Errors -------------------------------------------------------------------------------------------


def run_accuracy(device, arguments):
    """Measure, print, write, and return the exit code."""
    with replacement(arguments.json) as file:
        about = machine.describe(device, [])
        say(f"accuracy on {device}, {device.name}, {about['date']}")
        quick = arguments.quick or device.type == "sim"
        size = "quick" if quick else "cpu" if device.type == "cpu" else "full"
        findings, verdicts = accuracy.run(device, size, arguments.only, say)
        for verdict in verdicts:
            say(f"goal: {verdict.sentence()}")
        goals = [dataclasses.asdict(verdict) for verdict in verdicts]
        report = {"benchmark": "accuracy", "quick": quick, **about}
        write_report(file, report | {"rows": list(map(finite, findings)), "goals": goals})
    return 0


# Rates: streaming, matmul and transfers -----------------------------------------------------------


def run_rows(benchmark, device, libraries, quick):
    """Measure and print the rows of a benchmark of rates; return them as a list of dicts."""
    on_gpu = device.type == "cuda" and not quick
    size = "quick" if quick else "cpu" if device.type == "cpu" else "full"
    rows = [row for row in BENCHMARKS[benchmark].rows(size) if row.able(device)]
    if not rows:
        raise DeviceUnavailableError(f"{benchmark} needs a GPU, or the simulated card")
    pool = timing.pool_for(rows)
    effort = timing.Effort(
        rounds=ROUNDS.get(benchmark, timing.ROUNDS) if on_gpu else 5,
        rest=REST.get(benchmark, 0.0) if on_gpu else 0.0,
        cache_bytes=device.limits.l2_cache_size if on_gpu else 0,
        batch_seconds=timing.BATCH_SECONDS if on_gpu else 0.0,
        pause=PAUSE.get(benchmark, 0.0) if on_gpu else 0.0,
        graphs=benchmark in GRAPHS and on_gpu,
    )
    measure = transfers.measure if benchmark == "transfers" else timing.measure
    table = []
    for row in rows:
        clocks = []
        results = measure(
            row, libraries, pool, effort, lambda seen=clocks: seen.append(machine.clocks(device))
        )
        say(rate_line(row, results))
        table.append(
            {
                "name": row.name,
                "unit": row.unit,
                "work": row.work,
                "note": row.note,
                "error_allowed": row.error_allowed,
                "clocks_before_and_after": [seen for seen in clocks if seen],
                "results": results,
            }
        )
    say_clocks(table)
    return table


def say_clocks(table):
    """Tell the range of clock and power, where they were read."""
    seen = [clocks for row in table for clocks in row["clocks_before_and_after"]]
    for name, unit in (("sm_clock_mhz", "MHz"), ("power_w", "W")):
        values = [clocks[name] for clocks in seen if clocks.get(name) is not None]
        if values:
            say(f"{name}: {min(values):.0f} to {max(values):.0f} {unit} between the rows")


def rate_line(row, results):
    """Return the line of a row: our time, rate and error, and each peer's rate and our multiple."""
    ours = results["pyvecgpu"]

    def rate(result):
        return f"{timing.rate_text(row.work, result.seconds, row.unit):>12}"

    line = f"{row.name:37} {ours.seconds * 1e3:9.4f} ms {rate(ours)}, error {ours.error:7.1e}"
    for name, peer in results.items():
        if name != "pyvecgpu":
            line += f" | {name} {rate(peer)}, ours {peer.seconds / ours.seconds:5.2f}x"
            line += f", its error {peer.error:7.1e}"
    return line


# Overhead -----------------------------------------------------------------------------------------


def run_overhead(benchmark, device, libraries, quick):
    """Measure and print what calls and the import cost; return the rows as a list of dicts."""
    bare = None
    if device.type == "cuda":
        try:
            bare = overhead.BareLaunch(device)
        except OSError as error:
            say(f"no bare launch to compare with: {error}")
    rounds = overhead.QUICK_ROUNDS if quick else overhead.ROUNDS
    table = []
    for number, row in enumerate(overhead.rows()):
        results = overhead.measure(row, libraries, rounds, bare if number == 0 else None)
        table.append({"name": row.name, "note": "", "results": results})
    imports = overhead.QUICK_IMPORTS if quick else overhead.IMPORTS
    note = "numpy: its own import; each in a new process"
    results = overhead.measure_imports(libraries, imports)
    table.append({"name": overhead.IMPORT_ROW, "note": note, "results": results})
    for row in table:
        say(time_line(row))
    return table


def time_line(row):
    """Return the line of a row of times: microseconds a call, or milliseconds for the import."""
    scale, unit = (1e3, "ms") if row["name"] == overhead.IMPORT_ROW else (1e6, "us")
    parts = [f"{name} {r.seconds * scale:.2f} {unit}" for name, r in row["results"].items()]
    return f"{row['name']:37} {' | '.join(parts)}"


# Training -----------------------------------------------------------------------------------------


def run_training(benchmark, device, libraries, quick):
    """Measure and print steps of networks; return the rows as a list of dicts."""
    size = "quick" if quick else "cpu" if device.type == "cpu" else "full"
    return training.run(device, libraries, size, machine.clocks, say)


# The end ------------------------------------------------------------------------------------------


def results_of(table):
    """Return {row's name: {library's name: Result}}."""
    return {row["name"]: row["results"] for row in table}


def report_of(benchmark, quick, about, table, verdicts):
    """Return all figures as JSON can hold them: None for what is no number, as the error of NaN."""
    rows = []
    for row in table:
        results = {name: finite(dataclasses.asdict(r)) for name, r in row["results"].items()}
        rows.append(row | {"results": results})
    report = {"benchmark": benchmark, "quick": quick, **about, "rows": rows}
    report["goals"] = [finite(dataclasses.asdict(verdict)) for verdict in verdicts]
    return report


def write_report(file, report):
    """Write a report to a file, an item of a list a line; None: nowhere."""
    if file is None:
        return
    parts = []
    for name, value in report.items():
        text = json.dumps(value, allow_nan=False)
        if isinstance(value, list) and value:
            items = ",\n  ".join([json.dumps(item, allow_nan=False) for item in value])
            text = f"[\n  {items}\n ]"
        parts.append(f" {json.dumps(name)}: {text}")
    file.write("{\n" + ",\n".join(parts) + "\n}\n")


def finite(values):
    """Return the dict with None for NaN and infinity."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }


def tell_wrong(table):
    """Name the wrong results on stderr; return the exit code, 1 if there are any."""
    code = 0
    for row in table:
        for name, result in row["results"].items():
            if result.wrong:
                print(
                    f"bench: {row['name']}: the result of {name} is wrong, "
                    f"its error is {result.error:.1e}",
                    file=sys.stderr,
                )
                code = 1
    return code
