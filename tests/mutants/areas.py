"""The areas that mutants are drawn from, each with the tests that concern it, the likeliest first.

Of an area's tests those whose name has the name of the mutated file come before the others. All
the other tests that count follow.
"""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Area:
    name: str
    files: str  # patterns; "!" before one takes away
    c_tests: str = ""  # of cuda/tests, without "test_"; "self": the simulator's tests of itself
    py_tests: str = ""  # of tests/, without "test_"
    where: str = "sim"  # "gpu": a machine with an H200, and only if it is asked for

    def paths(self, root=ROOT):
        """The files, from the project's folder on."""
        chosen = set()
        for pattern in self.files.split():
            found = {path.relative_to(root).as_posix() for path in root.glob(pattern.lstrip("!"))}
            chosen = chosen - found if pattern.startswith("!") else chosen | found
        return sorted(chosen)


# The kernels for newer cards, and those parts of simt/ that the simulated card has not got.
NEWER = "ffma pretranspose recompute"
HOPPER = "attention_wgmma hopper wgmma"

AREAS = (
    Area(
        "dtypes",
        "cuda/dtypes/*.cu*",
        "header elementwise transfer operands",
        "dtypes half values layout elementwise complex",
    ),
    Area(
        "runtime",
        "cuda/runtime/*.cu*",
        "stream memory staging error host_memory graph array device threads fault graph_memory"
        " contexts large refused",
        "order lending memory device graphs streams transfers errors error_tables faults process"
        " recorded_steps small_calls interrupts",
    ),
    Area(
        "arrays",
        "cuda/arrays/*.cu*",
        "array transfer operands elementwise error host_memory large lend gather sequence join"
        " refused",
        "order lending layout indexing out overlap versions shapes creation transfers batches"
        " complex short_axes views small_calls joining index_calls mistakes_found"
        " recorded_steps",
    ),
    Area(
        "kernels",
        "cuda/kernels/*.cu* cuda/library.cu "
        + " ".join(f"!cuda/kernels/{name}*" for name in HOPPER.split()),
        "elementwise reduce operands gather accumulate scan nonzero sort factor random dense"
        " join softmax sequence nearness optimize normalize losses windows attention triangle"
        " complex refused refused_kernels refused_lessons header",
        "elementwise reductions triangle gather accumulating scan nonzero sorting sets binning"
        " random powers values operations out overlap order learn batches half complex_functions"
        " join_kernel softmax_kernel variances evenly_spaced joining windows"
        " complex_reductions systems optim_in_one_launch norms_of_gradients optim"
        " dropout normalisation_kernels cross_entropy_kernel losses_kernel attention"
        " attention_tensor short_axes index_calls short_cards neighbours statistics"
        " quantiles gathering mistakes_found",
    ),
    Area(
        "matmul plan",
        "cuda/kernels/matmul/*.cu* cuda/kernels/matmul/plan/*.cu*",
        "plan matmul dense windows recurrent",
        "recurrent recorded_plans plans stretches matmul_classes matmul_paths matmul_kernels nn"
        " linalg contractions gemv windows layers_in_one_launch complex_reductions",
    ),
    Area(
        "matmul simt",
        "cuda/kernels/matmul/simt/*.cu* "
        + " ".join(f"!cuda/kernels/matmul/simt/{name}*" for name in NEWER.split()),
        "matmul dense plan",
        "linalg matmul_classes matmul_kernels gemv nn stretches matmul_accuracy matmul_paths"
        " contractions batches layers_in_one_launch",
    ),
    Area(
        "simulator",
        "cuda/simulator/*.cpp cuda/simulator/*.h !cuda/simulator/pyvecgpu_sim.h",
        "self stream graph error fault device memory transfer matmul",
        "streams faults",
    ),
    Area(
        "functions",
        "pyvecgpu/functions/*.py !pyvecgpu/functions/casting.py pyvecgpu/random/*.py"
        " pyvecgpu/dtype_queries.py pyvecgpu/linalg/*.py pyvecgpu/fft/*.py",
        py_tests="libraries_of_cuda locks elementwise creation layout indexing linalg"
        " contractions nn reductions triangle"
        " gather gathering scan nonzero sorting sets quantiles binning statistics combined"
        " differences comparing files random random_bounds random_distributions numpy_names names"
        " powers systems decompositions fft dtype_queries array short_cards small_calls index_calls"
        " views joining arithmetic sequences neighbours evenly_spaced einsum complex shapes"
        " exchange accumulating values out read_only transfers errors seam operations signatures",
    ),
    Area(
        "autograd",
        "pyvecgpu/autograd/*.py",
        py_tests="autograd autograd_rules layers_in_one_launch attention training_steps nn_layers"
        " recorded_steps complex_gradients fft_gradients linalg_gradients",
    ),
    Area(
        "learning",
        "pyvecgpu/optim/*.py pyvecgpu/data/*.py pyvecgpu/nn/training.py pyvecgpu/nn/utils.py"
        " pyvecgpu/amp.py pyvecgpu/functions/casting.py",
        py_tests="optim optim_in_one_launch norms_of_gradients schedules data states fit"
        " mixed_precision training_steps recorded_steps",
    ),
    Area(
        "networks",
        "pyvecgpu/nn/*.py pyvecgpu/nn/functional/*.py !pyvecgpu/nn/training.py"
        " !pyvecgpu/nn/utils.py",
        py_tests="nn_modules nn_losses nn_layers nn_sequences nn normalisation_kernels"
        " cross_entropy_kernel losses_kernel layers_in_one_launch dropout attention recurrent"
        " windows states",
    ),
    Area(
        "backends",
        "pyvecgpu/backends/*.py",
        py_tests="statuses operations elementwise reductions nn values half transfers out layout"
        " memory linalg faults errors graphs versions random sorting binning recorded_steps"
        " small_calls index_calls short_cards views indexing gather windows optim_in_one_launch"
        " attention cpu_speed neighbours recurrent dtypes read_only norms_of_gradients"
        " evenly_spaced",
    ),
    Area(
        "protocols",
        "pyvecgpu/protocols.py pyvecgpu/streams.py pyvecgpu/transfers.py",
        py_tests="protocols stream_objects sharing dlpack array ecosystem locks",
    ),
    Area(
        "package",
        "pyvecgpu/array.py pyvecgpu/device.py pyvecgpu/dispatch.py pyvecgpu/dtypes.py"
        " pyvecgpu/errors.py pyvecgpu/methods.py pyvecgpu/named_methods.py"
        " pyvecgpu/operations.py pyvecgpu/short_views.py",
        py_tests="array seam device dtypes errors operations versions indexing memory graphs"
        " loading process complex small_calls short_cards mistakes_found locks"
        " gathering gather exchange",
    ),
    Area(
        "native",
        "pyvecgpu/native/*.py",
        py_tests="abi headers loading errors device memory faults process operations"
        " libraries_of_cuda toolkit streams graphs locks statuses",
    ),
    Area(
        "tools",
        "pyvecgpu/bench/**/*.py pyvecgpu/learn/*.py pyvecgpu/demo/*.py pyvecgpu/digits.py"
        " pyvecgpu/__main__.py pyvecgpu/names.py pyvecgpu/typing.py",
        py_tests="command learn manual why bench bench_accuracy bench_sweep bench_sweep_classes"
        " bench_article bench_article_report bench_report bench_training"
        " demo demo_networks demo_characters",
    ),
    Area(
        "sm90",
        "cuda/kernels/matmul/sm80/*.cu* cuda/kernels/matmul/sm90/*.cu* "
        + " ".join(f"cuda/kernels/{name}*" for name in HOPPER.split())
        + " !cuda/kernels/wgmma.cuh "  # which is written by a program
        + " ".join(f"cuda/kernels/matmul/simt/{name}*" for name in NEWER.split()),
        "matmul dense plan",
        "matmul_kernels matmul_paths matmul_pieces hopper_driver attention_wgmma matmul_chains"
        " matmul_accuracy matmul_classes linalg nn gemv batches",
        where="gpu",
    ),
)

# Tests that do not count, and why.
READ_TEXT = "reads the text of sources, which a mutant changes whatever it does"
BUILD = "builds programs for longer than a mutant is given"
LEFT_OUT = {
    "floors": READ_TEXT,
    "generated": READ_TEXT,
    "package": READ_TEXT,
    "paths": READ_TEXT,
    "readme": READ_TEXT,
    "reliability_page": READ_TEXT,
    "lesson_pages": READ_TEXT,
    "typing": "checks hints, for longer than a mutant is given",
    "lessons": BUILD,
    "notebooks": BUILD,
    "helpers": "is about the tests' own tools",
    "missing_tools": "is about make on other machines",
    "packaging": "is about wheels, by stand-ins for the compilers",
    "wheel_sizes": "reads objects that a mutant's build does not make",
    "big": "is for cards with more memory than the simulated one",
}


def names(root, pattern):
    """The tests of a folder, without "test_"."""
    return sorted(path.stem.removeprefix("test_") for path in root.glob(pattern))


def ranked(path, concerned, every):
    """(tests that concern a file, the others), both in the order in which they run."""
    stem = Path(path).stem
    first = [one for one in concerned if stem in one or one in stem.split("_")]
    first += [one for one in every if stem in one]
    near = list(dict.fromkeys([*first, *concerned]))
    return near, [one for one in every if one not in near]


def tests_of(area, path, root=ROOT):
    """The C tests and the Python tests of a file's mutants: (near, far) of each."""
    c = names(root / "cuda/tests", "test_*.c") if area.c_tests else []
    py = [one for one in names(root / "tests", "test_*.py") if one not in LEFT_OUT]
    concerned = [one for one in area.c_tests.split() if one != "self"]
    return ranked(path, concerned, c), ranked(path, area.py_tests.split(), py)
