"""The sweep as a program for compute-sanitizer: every kernel of the GPU library, in shards.

    compute-sanitizer --tool memcheck --error-exitcode 1 python tests/sanitize.py --shard 1/4
    compute-sanitizer --tool racecheck ... python tests/sanitize.py --shard 1/4 --one-dtype

Arrays come from the direct allocator (each is one cudaMalloc, so that the tool sees its bounds).
Shard i of n promises an n-th of the library's kernels, all shards together all of them; with
--one-dtype, or any --tool but memcheck, one kernel of each template. It runs its own share of the
sweep (none with one dtype), then of the rest what it takes to keep the promise. Exit status 0:
results are right and the promise was kept; 1: not. What the tool finds is the tool's to report.
"""

import argparse
import os
import re
import sys

os.environ["PYVECGPU_ALLOCATOR"] = "direct"  # read when the device is first used

import helpers
import sweep

import pyvecgpu as vg
from pyvecgpu.native.abi import Allocator, Option


def parse_arguments():
    parser = argparse.ArgumentParser(description="Launch every kernel once, for compute-sanitizer.")
    parser.add_argument("--shard", default="1/1", help="which of how many, such as 2/4")
    parser.add_argument("--one-dtype", action="store_true", help="one dtype for each kernel")
    parser.add_argument("--tool", default="memcheck", help="all but memcheck mean --one-dtype")
    parser.add_argument("--device", default="cuda", choices=("cuda", "sim"))
    options = parser.parse_args()
    try:
        shard, shards = (int(number) for number in options.shard.split("/"))
    except ValueError:
        parser.error("--shard is i/n")
    if not 1 <= shard <= shards:
        parser.error("--shard is i/n with 1 <= i <= n")
    options.shard, options.shards = shard, shards
    options.one_dtype = options.one_dtype or options.tool != "memcheck"
    return options


# What the kernels of each dtype are called.
NAMES = {
    "bool": ("Bool",), "uint8": ("unsigned char",), "int32": ("unsigned int", "int"),
    "int64": ("long", "__int128"), "uint64": ("unsigned long",),
    "float16": ("unsigned short", "HalfSum", "Half", "__half"),
    "bfloat16": ("BFloat16", "__nv_bfloat16"),
    "float32": ("FloatSum", "float", "Tf32", "Bf16x6", "Fp16x3", "FfmaTile"),
    "float64": ("DoubleSum", "double"),
}  # fmt: skip
TYPES = {name: rank for rank, dtype in enumerate(helpers.DTYPES) for name in NAMES[str(dtype)]}
ANY_TYPE = re.compile(r"(pvg::)?\b(" + "|".join(TYPES) + r")\b")


def rank(name):
    """Which dtype a kernel belongs to: the first in its name, as an index into helpers.DTYPES."""
    found = ANY_TYPE.search(name)
    return TYPES[found[2]] if found else len(helpers.DTYPES) - 1


def share(items, options):
    """This shard's part of a list: neighbours, so that a dtype's kernels and cases meet."""
    first = len(items) * (options.shard - 1) // options.shards
    return items[first : len(items) * options.shard // options.shards]


def promised_kernels(kernels, options):
    """The offsets of this shard's kernels."""
    offsets = sorted(kernels, key=lambda offset: (rank(kernels[offset]), kernels[offset]))
    if options.one_dtype:
        templates = {}
        for offset in offsets:
            templates[ANY_TYPE.sub("T", kernels[offset])] = offset
        offsets = list(templates.values())
    return set(share(offsets, options))


def main():
    options = parse_arguments()
    device = options.device
    loaded = vg.Device(device).backend.library
    assert loaded.pvg_set_option(Option.OPTION_LAUNCH_LOG, 1) == 0
    assert loaded.pvg_set_option(Option.OPTION_ALLOCATOR, Allocator.ALLOCATOR_DIRECT) == 0
    kernels = sweep.kernels(loaded.path)
    promised = promised_kernels(kernels, options)
    cases = sorted(sweep.cases(), key=lambda case: helpers.DTYPES.index(case.dtype))
    done = [] if options.one_dtype else share(cases, options)
    sweep.run(device, done)
    for only_ranks in (True, False):  # a few kernels serve other dtypes than their names say
        for case in cases:
            ranks = {rank(kernels[offset]) for offset in promised - sweep.launched(device)}
            likely = helpers.DTYPES.index(case.dtype) in ranks if only_ranks else ranks
            if likely and case not in done:
                sweep.run(device, [case])
                done.append(case)
    vg.empty_cache(device)  # and the buffers of large transfers: memory still held counts as leaked
    launched = sweep.launched(device)
    missing = sorted(kernels[offset] for offset in promised - launched)
    for name in missing:
        print(f"never launched: {name}")
    print(
        f"shard {options.shard}/{options.shards} on {device}: {len(done)} of {len(cases)} cases, "
        f"{len(launched)} of {len(kernels)} kernels launched, "
        f"{len(promised) - len(missing)} of {len(promised)} promised ones"
    )
    return 1 if missing or not promised else 0


if __name__ == "__main__":
    sys.exit(main())
