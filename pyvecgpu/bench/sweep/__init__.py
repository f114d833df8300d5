"""`bench sweep`: random cases of many classes, timed by the wall clock, some of them checked.

classes/ draws them; a case is known by the seed and its number, and `--case` measures it again.
Operands are views of one large array a dtype, equal in all libraries. Results are gone before the
next call: what a library remembers of its operands is what it keeps by itself. The figure of a case
is the time of the peer, torch or another build, over ours or, without one, the time that the card's
limit asks for over ours: bytes over the rate of a large copy, operations over that of a large
product, whichever is longer.
So below 1 we are slower. A result that is wrong, and an exception of ours, count as 0. Of a case
that is slower than a peer's it is told what both take on the device, by its events: the rest of our
time is the host's.
"""

import contextlib
import datetime
import itertools
import math
import sys
import time
from collections import Counter, defaultdict
from dataclasses import asdict

import numpy as np

from ..libraries import open_libraries
from .arrays import size_of
from .timed import AGAIN, PeerError, Sweep

PEERS = ("torch",)
SECONDS = 150.0
ALSO = {"only": ("accuracy", "cpu")}  # options of the sweep that others have, too
WORST = 60  # cases that are printed
REASONS = 40  # why cases were left out


def add_options(parser):
    """Add the options of the sweep to a parser."""
    parser.add_argument(
        "--seed",
        type=natural,
        metavar="N",
        help="sweep and model: of all cases; default: the date",
    )
    group = parser.add_argument_group("sweep only")
    group.add_argument(
        "--seconds", type=float, help=f"when to end; default: {SECONDS:.0f}, with --cases never"
    )
    group.add_argument("--cases", type=natural, metavar="N", help="how many cases")
    group.add_argument("--only", metavar="CLASS", help="and cpu: classes with this in their names")
    group.add_argument("--case", type=natural, metavar="K", help="this case of the seed alone")


def seed_of(arguments):
    """Return the seed that was given, else the date."""
    today = datetime.datetime.now(datetime.timezone.utc)
    return int(f"{today:%Y%m%d}") if arguments.seed is None else arguments.seed


def natural(text):
    """Return a number that is not negative, for argparse."""
    number = int(text)
    if number < 0:
        raise ValueError(f"{number} is negative")
    return number


def check_options(parser, arguments):
    """End with a sentence if another benchmark is given options of the sweep, or it wrong ones."""
    if arguments.benchmark not in ("sweep", "model") and arguments.seed is not None:
        parser.error("--seed belongs to sweep and model")
    if arguments.benchmark != "sweep":
        for name in ("seconds", "cases", "only", "case"):
            others = ALSO.get(name, ())
            if getattr(arguments, name) is not None and arguments.benchmark not in others:
                parser.error(f"--{name} belongs to sweep")
    elif [name for name in arguments.peers if name not in PEERS]:
        parser.error("sweep can be measured beside torch or --against another build")
    elif arguments.peers and arguments.against:
        parser.error("sweep is measured beside one library: --peers torch, or --against")


def geometric_mean(ratios):
    """Return the geometric mean; 0 if one is."""
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if min(ratios) > 0 else 0.0


def summary(ratios):
    """Return what is said of a class."""
    return {
        "count": len(ratios),
        "mean": geometric_mean(ratios),
        "tenth": float(np.quantile(ratios, 0.1)),
        "worst": min(ratios),
    }


def classes_of(outcomes):
    """Return {class: summary}, the one with the worst case first."""
    groups = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.group].append(outcome.ratio)
    summaries = {group: summary(ratios) for group, ratios in groups.items()}
    return dict(sorted(summaries.items(), key=lambda item: (item[1]["worst"], item[0])))


def sections_of(outcomes):
    """Return (section, its outcomes), the one with the worst case first: classes by first words."""
    sections = defaultdict(list)
    for outcome in outcomes:
        sections[outcome.group.split()[0]].append(outcome)
    return sorted(sections.items(), key=lambda item: min(one.ratio for one in item[1]))


def run(device, peers, arguments, say):
    """Measure, print, and return what there is to report, and the exit code."""
    quick = arguments.quick or device.type == "sim"
    seed = seed_of(arguments)
    libraries = open_libraries(device, peers, quick=True, against=arguments.against)
    sweep = Sweep(libraries, size_of(device, quick), seed)
    with contextlib.ExitStack() as stack:
        stack.enter_context(np.errstate(all="ignore"))  # logarithms of negative numbers are NaN
        for library in libraries:  # what a case creates is created there
            if library.writes_as == "pyvecgpu":
                stack.enter_context(library.module.device(library.device))
        outcomes, left_out = collect(sweep, arguments)
    beside = sweep.peer.name if sweep.peer else "the limit"
    say(f"seed {seed}, beside {beside}: {counted(outcomes, left_out)}")
    classes = classes_of(outcomes)
    for line in class_lines(outcomes):
        say(line)
    for line in left_out_lines(left_out):
        say(line)
    say()
    for outcome in sorted(outcomes, key=lambda one: one.ratio)[:WORST]:
        say(case_line(outcome, beside))
    report = {"seed": seed, "beside": beside, "rates": sweep.limits.rates}
    report |= {"shrink": sweep.size.shrink, "room": sweep.size.room}
    report |= {"left_out": left_out, "only": arguments.only}
    every = {"all": summary([one.ratio for one in outcomes])} if outcomes else {}
    report["classes"] = [{"name": name, **told} for name, told in (every | classes).items()]
    sections = {name: summary([one.ratio for one in of]) for name, of in sections_of(outcomes)}
    report["sections"] = [{"name": name, **told} for name, told in (every | sections).items()]
    report["cases"] = [asdict(outcome) for outcome in outcomes]
    return report, 1 if any(outcome.problem for outcome in outcomes) else 0


def collect(sweep, arguments):
    """Measure cases until there are enough; return the outcomes and what the peer could not do."""
    if arguments.case is not None:
        numbers, is_checked, seconds = [arguments.case], True, math.inf
    else:
        numbers, is_checked = itertools.islice(sweep.numbers(arguments.only), arguments.cases), None
        seconds = math.inf if arguments.cases is not None else SECONDS
        seconds = seconds if arguments.seconds is None else arguments.seconds
    began, outcomes, left_out = time.monotonic(), [], []
    for number in numbers:
        try:
            outcomes.append(sweep.measure(number, is_checked))
            tell_problem(outcomes[-1])
        except PeerError as error:
            left_out.append(f"case {number}: {error}")
        if time.monotonic() - began >= seconds:
            break
    return outcomes, left_out


def tell_problem(outcome):
    """Say on stderr what is wrong with a case, if anything is."""
    if outcome.problem:
        about = f"case {outcome.number}, {outcome.group} {outcome.text}"
        print(f"bench: {about}: {outcome.problem}", file=sys.stderr, flush=True)


def counted(outcomes, left_out):
    """Return in words how many cases there were, and how they went."""
    ratios = [outcome.ratio for outcome in outcomes]
    parts = [f"{len(ratios)} cases"]
    for limit in (AGAIN, 0.5):
        parts.append(f"{sum(ratio < limit for ratio in ratios)} below {limit}")
    parts.append(f"{sum(outcome.checked for outcome in outcomes)} checked")
    parts.append(f"{sum(bool(outcome.problem) for outcome in outcomes)} wrong or failed")
    lost = [outcome.kernels for outcome in outcomes if outcome.kernels]
    if lost:
        slow = sum(peer / ours < AGAIN for ours, peer in lost)
        parts.append(f"{slow} of the {len(lost)} below {AGAIN} lost on the device")
    if left_out:
        parts.append(f"{len(left_out)} left out, the first {left_out[0]}")
    if ratios:
        parts.append(f"geometric mean {geometric_mean(ratios):.3f}")
    return ", ".join(parts)


def left_out_lines(left_out):
    """Return for each reason why cases were left out how often it was so: the most usual ones."""
    reasons = Counter(text.partition(": ")[2].partition("\n")[0][:120] for text in left_out)
    return [f"left out {count}: {reason}" for reason, count in reasons.most_common(REASONS)]


def class_lines(outcomes):
    """Return a line for each section, and for its classes."""
    lines = []
    for section, of in sections_of(outcomes):
        classes = classes_of(of)
        if list(classes) != [section]:
            lines.append(class_line(section, summary([one.ratio for one in of])))
        lines += [
            class_line(group if group == section else f"  {group}", told)
            for group, told in classes.items()
        ]
    return lines


def class_line(group, told):
    return (
        f"{group:34} n {told['count']:4}  mean {told['mean']:6.3f}"
        f"  tenth {told['tenth']:6.3f}  worst {told['worst']:6.3f}"
    )


def case_line(outcome, beside):
    said = outcome.problem
    if not said:
        said = f"{outcome.seconds * 1e6:10.1f} us, {beside} {outcome.beside * 1e6:10.1f} us"
    if outcome.kernels:
        said += ", on the device {:.1f} and {:.1f} us".format(*(1e6 * x for x in outcome.kernels))
    return f"{outcome.ratio:6.3f}  {outcome.group:28} {outcome.text:36} {said}  #{outcome.number}"
