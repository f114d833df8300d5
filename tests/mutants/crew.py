"""Judges mutants by several workers side by side, each in a tree of its own: for many cores.

This process alone draws mutants and notes verdicts; the workers are told how long the C tests take
without a mutant, which each of them runs a part of before the first mutant is judged.
"""

import contextlib
import multiprocessing
import queue
import signal
import time
from pathlib import Path

from . import trial
from .areas import ROOT

PATIENCE = 30  # seconds for workers to end their tests


def judge_all(supply, make_judge, count, minutes, said):
    """Judge what is supplied, for so many minutes; said(area, mutant, outcome) gives a verdict."""
    ends = time.monotonic() + 60 * minutes
    context = multiprocessing.get_context("fork")
    jobs, results = context.Queue(), context.Queue()
    workers = [context.Process(target=work, args=(make_judge, number, jobs, results))
               for number in range(count)]  # fmt: skip
    for worker in workers:
        worker.start()
    try:
        seconds = supply.state.control()
        steps = controls(supply.areas, supply.options.without.split())
        missing = [step for name, step in steps.items() if name not in seconds]
        for step in missing:
            jobs.put(("control", step, None))
        for _ in missing:
            seconds.update(answer(results, ends)[1])
        supply.state.save()
        distribute(supply, jobs, results, ends, count, said)
    except queue.Empty:
        pass  # the time is over
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join(PATIENCE)


def distribute(supply, jobs, results, ends, count, said):
    """Keep `count` workers busy until there are no more mutants, or no more time."""
    flying, number = {}, 0
    while True:
        while len(flying) < count and time.monotonic() < ends and (job := supply.next()):
            number += 1
            flying[number] = job
            jobs.put((number, job[:2], supply.state.control()))
        if not flying:
            return
        done, seconds, outcome = answer(results, ends)
        area, mutant, row = flying.pop(done)
        supply.state.control().update(seconds)
        supply.note(area, mutant, row, said(area, mutant, outcome))


def answer(results, ends):
    """(job, seconds of tests without a mutant, Outcome). SystemExit: such a test fails."""
    job, seconds, outcome = results.get(timeout=max(1, ends - time.monotonic()))
    if isinstance(outcome, str):
        raise SystemExit(outcome)
    return job, seconds, outcome


def controls(areas, without):
    """{name: step} of all C tests that mutants of these areas meet, but for some."""
    found = {}
    for area in areas:
        for path in area.paths():
            for step in trial.steps_of(area, Place(path), ROOT, {}, False):
                if not step.is_pytest and not trial.is_of(step, without):
                    found[step.tests[0]] = step
    return found


class Place:
    """Any mutant of a file."""

    rule = was = ""

    def __init__(self, path):
        self.path = path


def work(make_judge, number, jobs, results):
    """A worker's life. What it is told to end with lets it end its tests first."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with contextlib.suppress(KeyboardInterrupt):
        judge = make_judge(Path("trees") / str(number))
        while True:
            job, what, known = jobs.get()
            outcome = None
            try:
                if job == "control":
                    judge.control(what)
                else:
                    judge.seconds.update(known)
                    outcome = judge.judge(*what)
            except SystemExit as error:
                outcome = str(error)
            results.put((job, judge.seconds, outcome))
