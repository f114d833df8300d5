"""Training steps: forward, backward and update of networks, by the host's clock.

The networks are written once, in names that pyvecgpu and torch share. Every way of training starts
with the same weights on the same batch: some steps as they are, and as many after the step was
recorded as a graph or compiled. Their losses are held against those of pyvecgpu in float64, and
those of our replays against our calls', bit for bit: what keeps states in new arrays, or on the
host, cannot be replayed, and is left out. Then the ways take turns, each with so many steps that
the last wait does not matter.

    pyvecgpu, torch                step after step, called from Python
    pyvecgpu graph, torch graph    a recorded step is replayed
    torch compile                  torch.compile of the network
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from .goals import Ratio, Within
from .timing import BFLOAT16, rounded, summary

FIRST = 3  # losses that are compared, before a step is recorded or compiled and after it
TURN_SECONDS = 0.2  # of a turn, but
MOST_CALLS = 500  # steps at most
ROUNDS = {"full": 15, "cpu": 3, "quick": 2}
# The relative error of the first losses; what is rounded in each step moves weights and losses.
ERRORS = {"float32": 1e-4, "tf32": 1e-2, BFLOAT16: 3e-2}
WAYS = {"pyvecgpu": ("", "graph"), "torch": ("", "graph", "compile")}
SIZES = {
    "full": {
        "perceptron": [(128, 512), (1024, 1024), (8192, 4096)],
        "precisions": ("float32", "tf32"),
        "cnn": [128, 1024],
        "lstm": [(32, 128, 64), (32, 512, 64)],  # batch, width, steps
        "transformer": [(8, 512, 512, 4, 8, 1024)],  # batch, width, context, layers, heads, words
    },
    "cpu": {
        "perceptron": [(128, 512)],
        "precisions": ("float32",),
        "cnn": [128],
        "lstm": [(32, 128, 64)],
        "transformer": [(2, 64, 64, 4, 4, 128)],
    },
    "quick": {
        "perceptron": [(4, 8)],
        "precisions": ("float32", "tf32"),
        "cnn": [2],
        "lstm": [(2, 8, 3)],
        "transformer": [(2, 8, 4, 2, 2, 11)],
    },
}


@dataclass
class Task:
    """One line of the table.

    network: from vg.nn or torch.nn, the Module, whose result is (n, classes). shape: of its input,
    normal numbers or, with `words`, integers below so many. labels: how many, below `classes`.
    """

    name: str
    network: Callable
    shape: tuple
    labels: int
    classes: int
    precision: str = "float32"  # or "tf32", or BFLOAT16 for weights and inputs of that dtype
    optimiser: str = "SGD"
    options: dict = field(default_factory=lambda: {"lr": 0.01, "momentum": 0.9})
    words: int | None = None

    @property
    def dtype(self):
        return BFLOAT16 if self.precision == BFLOAT16 else "float32"

    def batch(self):
        """Return the inputs and labels of all steps, NumPy's."""
        random = np.random.default_rng(1)
        if self.words is None:
            inputs = random.standard_normal(self.shape, np.float32)
            inputs = rounded(inputs) if self.dtype == BFLOAT16 else inputs
        else:
            inputs = random.integers(0, self.words, self.shape)
        return inputs, random.integers(0, self.classes, self.labels)


# Networks -----------------------------------------------------------------------------------------


def perceptron(width):
    """784 numbers to 10 scores, by two hidden layers."""
    return lambda nn: nn.Sequential(
        nn.Linear(784, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )


def lenet(nn):
    """LeNet-5 of images 28x28, with ReLU and the largest of every four."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def lstm(width):
    """A sequence of vectors to 10 scores, by the last state."""

    def make(nn):
        class Reader(nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm = nn.LSTM(width, width, batch_first=True)
                self.scores = nn.Linear(width, 10)

            def forward(self, x):
                return self.scores(self.lstm(x)[0][:, -1])

        return Reader()

    return make


def transformer(width, layers, heads, words):
    """Numbers of words to scores of the next one, each from those before it."""

    def make(nn):
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
                self.three, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
                self.inner, self.gelu = nn.Linear(width, 4 * width), nn.GELU()
                self.outer = nn.Linear(4 * width, width)

            def forward(self, x):
                n, length, _ = x.shape
                three = self.three(self.norm1(x)).reshape(n, length, 3, heads, width // heads)
                q, k, v = (three[:, :, i].swapaxes(1, 2) for i in range(3))
                seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
                x = x + self.out(seen.swapaxes(1, 2).reshape(n, length, width))
                return x + self.outer(self.gelu(self.inner(self.norm2(x))))

        class Writer(nn.Module):
            def __init__(self):
                super().__init__()
                self.words = nn.Embedding(words, width)
                self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
                self.norm, self.scores = nn.LayerNorm(width), nn.Linear(width, words)

            def forward(self, x):
                scores = self.scores(self.norm(self.blocks(self.words(x))))
                return scores.reshape(-1, words)

        return Writer()

    return make


def perceptron_name(precision, batch, width):
    return f"perceptron {precision}, {batch}, width {width}"


def rows(size):
    """Return the Tasks for a key of SIZES."""
    chosen, found = SIZES[size], []
    for batch, width in chosen["perceptron"]:
        for precision in chosen["precisions"]:
            name = perceptron_name(precision, batch, width)
            found.append(Task(name, perceptron(width), (batch, 784), batch, 10, precision))
    for batch in chosen["cnn"]:
        found.append(Task(f"LeNet float32, {batch}", lenet, (batch, 1, 28, 28), batch, 10))
    for batch, width, steps in chosen["lstm"]:
        name = f"LSTM float32, {batch}, width {width}, {steps} steps"
        found.append(Task(name, lstm(width), (batch, steps, width), batch, 10))
    for batch, width, context, layers, heads, words in chosen["transformer"]:
        name = f"transformer bfloat16, {batch}, {layers} layers of {width}, context {context}"
        network, shape = transformer(width, layers, heads, words), (batch, context)
        found.append(
            Task(
                name,
                network,
                shape,
                batch * context,
                words,
                precision=BFLOAT16,
                optimiser="AdamW",
                options={"lr": 1e-3},
                words=words,
            )
        )
    return found


def _goals():
    names = [
        perceptron_name(precision, batch, width)
        for batch, width in SIZES["full"]["perceptron"]
        for precision in SIZES["full"]["precisions"]
    ]
    goals = [Ratio(names[0], "torch", 3.5), *(Ratio(name, "torch", 1.0) for name in names[1:])]
    least = (3.5, 1.3, 3.2, 1.3, 2.75, 1.3)
    pairs = zip(names, least, strict=True)
    goals += [Ratio(name, "torch graph", ratio, aim=True) for name, ratio in pairs]
    return [*goals, Within(names[0], 0.2e-3, aim=True)]


GOALS = _goals()


# Ways ---------------------------------------------------------------------------------------------


class Training:
    """A network at work in a library: step() does a step and leaves its loss, on the device."""

    def __init__(self, library, task, start, dtype=None, way=""):
        self.library, self.module, self.way = library, library.module, way
        self.name = f"{library.name} {way}".strip()
        is_torch = library.writes_as == "torch"
        options = dict(task.options)
        if is_torch:
            options["fused"] = True
            options |= {"capturable": True} if task.optimiser == "AdamW" else {}
        dtype = dtype or task.dtype
        device = "cuda" if is_torch else library.device
        self.net = task.network(self.module.nn)
        self.net.to(device=device, dtype=getattr(self.module, dtype))
        self.net.load_state_dict({name: library.put(x) for name, x in start.items()})
        inputs, labels = task.batch()
        inputs, self.labels = library.put(inputs), library.put(labels)
        self.inputs = inputs if task.words else cast(self.module, inputs, dtype)
        make = getattr(self.module.optim, task.optimiser)
        self.optimiser = make(self.net.parameters(), **options)
        self.called = self.net
        self.run = self.repeat

    def step(self):
        scores = self.called(self.inputs)
        loss = self.module.nn.functional.cross_entropy(scores, self.labels)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.loss = loss.detach()

    def repeat(self, steps):
        for _ in range(steps):
            self.step()

    def losses(self, steps):
        """Return the losses of so many steps, floats."""
        found = []
        for _ in range(steps):
            self.run(1)
            found.append(float(self.library.get(self.loss)))
        return found

    def get_ready(self):
        """Record or compile the step, if that is the way."""
        if self.way == "compile":
            self.called = self.module.compile(self.net)
        elif self.way == "graph":
            replay, _ = self.library.recorded(self.step)
            self.run = lambda steps: [replay() for _ in range(steps)]

    def seconds(self, steps):
        """Return the seconds of a step, of so many, the wait for the device included."""
        self.library.synchronize()
        began = time.perf_counter()
        self.run(steps)
        self.library.synchronize()
        return (time.perf_counter() - began) / steps


def cast(module, x, dtype):
    """Return an array of pyvecgpu or a tensor of torch in a dtype."""
    return module.astype(x, dtype) if hasattr(module, "astype") else x.to(getattr(module, dtype))


@contextlib.contextmanager
def precision(libraries, name):
    """Multiply float32 in TF32 for a while, or not, in all libraries."""
    is_tf32 = name == "tf32"
    kept = []
    for library in libraries:
        if library.writes_as == "pyvecgpu":
            kept.append((library.module, library.module.get_matmul_precision()))
            library.module.set_matmul_precision("tf32" if is_tf32 else "float32")
        elif library.writes_as == "torch":
            library.allow_tf32(is_tf32)
    try:
        yield
    finally:
        for module, before in kept:
            module.set_matmul_precision(before)


def first_weights(library, task):
    """Return {name: NumPy's values} of a network, the same for all libraries."""
    module = library.module
    module.random.seed(0)
    net = task.network(module.nn).to(device="cpu", dtype="float32")
    values = {name: x.numpy() for name, x in net.state_dict().items()}
    return {n: rounded(x) if task.dtype == BFLOAT16 else x for n, x in values.items()}


def measure(task, libraries, size, watch=lambda: None):
    """Return the Result of each way by name, and {way: why it is not there}."""
    start = first_weights(libraries[0], task)
    expected = Training(libraries[0], task, start, "float64").losses(2 * FIRST)
    ways, errors, omitted, called = [], {}, {}, None
    with precision(libraries, task.precision):
        for library in libraries:
            for way in WAYS.get(library.writes_as, ()):
                if way == "graph" and not library.runs_ahead:
                    continue  # the CPU records nothing
                training = Training(library, task, start, way=way)
                try:
                    found = training.losses(FIRST)
                    training.get_ready()
                    found += training.losses(FIRST)
                except Exception as error:
                    if way == "":
                        raise
                    omitted[training.name] = f"{type(error).__name__}: {error}"
                    continue
                called = found if way == "" else called
                if way == "graph" and library.writes_as == "pyvecgpu" and found != called:
                    omitted[training.name] = "its replays do not give the losses of the calls"
                    continue
                ways.append(training)
                errors[training.name] = error_of(found, expected)
        return timed(ways, errors, ERRORS[task.precision], size, watch), omitted


def error_of(losses, expected):
    """Return the largest relative difference; infinity for what is no number."""
    difference = np.abs(np.array(losses) / np.array(expected) - 1).max()
    return float(difference) if np.isfinite(difference) else float("inf")


def timed(ways, errors, error_allowed, size, watch):
    """Return {name: Result} of ways that take turns."""
    trials = {way.name: way.seconds(2) for way in ways}
    least = TURN_SECONDS if size == "full" else 0.0
    calls = {n: max(2, min(MOST_CALLS, round(least / max(s, 1e-9)))) for n, s in trials.items()}
    seconds = {way.name: [] for way in ways}
    watch()
    for _ in range(ROUNDS[size]):
        for way in ways:
            seconds[way.name].append(way.seconds(calls[way.name]))
    watch()
    return {n: summary(s, calls[n], [errors[n]], error_allowed) for n, s in seconds.items()}


def line(row):
    """Return a row of the table in words."""
    ours = row["results"]["pyvecgpu"]
    text = f"{row['name']:37} {ours.seconds * 1e3:9.4f} ms, error of losses {ours.error:7.1e}"
    for name, result in row["results"].items():
        if name != "pyvecgpu":
            text += f" | {name} {result.seconds * 1e3:.4f} ms, {result.seconds / ours.seconds:.2f}x"
    for name, reason in row["omitted"].items():
        text += f" | {name} left out, {reason.splitlines()[0]}"
    return text


def run(device, libraries, size, clocks, say):
    """Measure and print; return the rows as a list of dicts. clocks(device): read beside each."""
    table = []
    for task in rows(size):
        seen = []
        watch = lambda kept=seen: kept.append(clocks(device))  # noqa: E731
        results, omitted = measure(task, libraries, size, watch)
        table.append(
            {
                "name": task.name,
                "unit": "step",
                "work": 1,
                "note": "",
                "error_allowed": ERRORS[task.precision],
                "clocks_before_and_after": [one for one in seen if one],
                "results": results,
                "omitted": omitted,
            }
        )
        say(line(table[-1]))
    return table
