"""The sweep as a program for compute-sanitizer: every kernel of the GPU library, in shards.

    compute-sanitizer --tool memcheck --error-exitcode 1 python tests/sanitize.py --shard 1/4
    python tests/sanitize.py --make-plan plan.json
    compute-sanitizer --tool racecheck ... python tests/sanitize.py --shard 1/4 --plan plan.json

Arrays come from the direct allocator (each is one cudaMalloc, so that the tool sees its bounds).
Without a plan, shard i of n runs an n-th of the sweep's cases, all shards together all of them.
The other tools take up to a thousand times as long as the kernels alone. A plan is for them: few
and quick cases that launch one kernel of each template, found by running all cases without a tool,
and the float32 products in which k is halved, a way through some kernels of its own.
Exit status 0: results are right, and all kernels of the plan were launched, or some without one; 1:
not. What the tool finds is the tool's to report.
"""

import argparse
import json
import os
import pathlib
import re
import sys
import time

os.environ["PYVECGPU_ALLOCATOR"] = "direct"  # read when the device is first used

import forced
import helpers
import sweep

import pyvecgpu as vg
from pyvecgpu.native.abi import Allocator, Option


def parse_arguments():
    parser = argparse.ArgumentParser(description="Launch every kernel once, for compute-sanitizer.")
    parser.add_argument("--shard", default="1/1", help="which of how many, such as 2/4")
    parser.add_argument("--plan", type=pathlib.Path, help="run the cases of this plan alone")
    parser.add_argument("--make-plan", type=pathlib.Path, help="write a plan, and end")
    parser.add_argument("--device", default="cuda", choices=("cuda", "sim"))
    options = parser.parse_args()
    try:
        shard, shards = (int(number) for number in options.shard.split("/"))
    except ValueError:
        parser.error("--shard is i/n")
    if not 1 <= shard <= shards:
        parser.error("--shard is i/n with 1 <= i <= n")
    options.shard, options.shards = shard, shards
    return options


# What the types that kernels are made for are called in their names.
TYPES = (
    "Bool", "signed char", "unsigned char", "unsigned short", "short", "unsigned int", "int",
    "unsigned long", "long", "__int128", "HalfSum", "Half", "__half", "BFloat16", "__nv_bfloat16",
    "FloatSum", "float", "Tf32", "Bf16x6", "Fp16x3", "FfmaTile", "DoubleSum", "double",
)  # fmt: skip
ANY_TYPE = re.compile(rf"(pvg::)?\b({'|'.join(TYPES)})\b")


def templates_of(kernels):
    """The kernels by template: {offset: name without dtypes}."""
    return {offset: ANY_TYPE.sub("T", name) for offset, name in kernels.items()}


def launches(device):
    return {record.offset: record.launches for record in vg.launch_log(device)}


def make_plan(device, cases, templates):
    """Cases that launch a kernel of each template, as [number, seconds, templates]: those in
    halves, then those that launch the most new ones for their time."""
    seen, costs = launches(device), []
    for case in cases:
        start = time.perf_counter()
        sweep.run(device, [case])
        seconds = time.perf_counter() - start
        now = launches(device)
        costs.append(
            (seconds, {templates[offset] for offset in now if now[offset] != seen.get(offset)})
        )
        seen = now
    plan, missing = [], set(templates.values())
    for number, (seconds, used) in enumerate(costs):
        if cases[number].name.endswith("in halves") and used:
            plan.append([number, seconds, sorted(used & missing)])
            missing -= used
    while missing:
        rates = [len(used & missing) / (seconds + 1e-3) for seconds, used in costs]
        best = max(range(len(cases)), key=rates.__getitem__)
        if rates[best] == 0:
            break
        seconds, used = costs[best]
        plan.append([best, seconds, sorted(used & missing)])
        missing -= used
    return plan, missing


def main():
    options = parse_arguments()
    device = options.device
    if device == "sim":
        forced.simulate_cards()
    loaded = vg.Device(device).backend.library
    assert loaded.pvg_set_option(Option.OPTION_LAUNCH_LOG, 1) == 0
    assert loaded.pvg_set_option(Option.OPTION_ALLOCATOR, Allocator.ALLOCATOR_DIRECT) == 0
    kernels = sweep.kernels(loaded.path)
    templates = templates_of(kernels)
    cases = sorted(sweep.cases(), key=lambda case: helpers.ALL_DTYPES.index(case.dtype))
    if options.make_plan:
        plan, missing = make_plan(device, cases, templates)
        if device == "cuda":
            older = sweep.OF_OLDER_CARDS
            missing &= {templates[at] for at in kernels if not older.fullmatch(kernels[at])}
        options.make_plan.write_text(json.dumps(plan))
        print(f"{len(plan)} of {len(cases)} cases for {len(set(templates.values()))} templates")
        for name in sorted(missing):
            print(f"never launched: {name}")
        return 1 if missing else 0
    promised = set()
    if options.plan:
        plan = sorted(json.loads(options.plan.read_text()), key=lambda step: -step[1])
        chosen = plan[options.shard - 1 :: options.shards]
        promised = {name for _, _, names in chosen for name in names}
        done = [cases[number] for number, _, _ in chosen]
    else:
        done = cases[options.shard - 1 :: options.shards]
    sweep.run(device, done)
    vg.empty_cache(device)  # and the buffers of large transfers: memory still held counts as leaked
    launched = sweep.launched(device)
    missing = sorted(promised - {templates[offset] for offset in launched})
    for name in missing:
        print(f"never launched: {name}")
    print(
        f"shard {options.shard}/{options.shards} on {device}: {len(done)} of {len(cases)} cases, "
        f"{len(launched)} of {len(kernels)} kernels launched"
    )
    return 1 if missing or not launched else 0


if __name__ == "__main__":
    sys.exit(main())
