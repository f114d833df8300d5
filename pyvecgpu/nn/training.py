"""fit: the training loop, with what one adds to it sooner or later.

docs/training.md shows the plain loop that does the same.
"""

import contextlib
import importlib.util
import os
import sys

from .. import amp
from .. import functions as vg
from ..array import Array
from ..autograd.transforms import no_grad
from ..data import DataLoader, Dataset, TensorDataset
from ..data.loader import _counted
from ..functions.arguments import is_host
from ..random import _shared, default_rng
from ..random import seed as seed_all
from .atomic import guarded, parameters_of
from .utils import clip_grad_norm_

__all__ = ["fit"]

_KIND = "pyvecgpu.nn.fit 2"
_LATER = ("classes", "validation_order")  # which older checkpoints do not have


def fit(
    net,
    data,
    loss,
    optimiser,
    *,
    epochs,
    validation=None,
    metrics=None,
    scheduler=None,
    schedule_each="epoch",
    batch_size=32,
    clip_norm=None,
    autocast=None,
    checkpoint=None,
    resume=True,
    patience=None,
    progress=True,
    plot=None,
    seed=None,
):
    """Train a network; return {name: a list of numbers, one for each epoch}.

    data, validation: a DataLoader or any list of batches, each (*inputs, target); or a Dataset or a
    tuple of arrays, of which batches of batch_size are made, of `data` in random order. loss:
    loss(net(*inputs), target), an Array of one number. metrics: {name: function of the same}.
    The history has "loss", "lr", each metric, and of validation "validation_loss" and so on, means
    over samples. scheduler: does a step after each "epoch" or "batch". clip_norm: of gradients.
    autocast: "bfloat16" or "float16", in which products are computed, see vg.autocast; float16 with
    a vg.amp.GradScaler, which waits for the device once a step.
    checkpoint: a path that is written after every epoch and, with resume, read at the beginning if
    it is there: training goes on to the same bits as without the interruption, if the orders of
    data and validation come from DataLoaders. patience: ends after so many epochs, 1 or more,
    without a smaller loss, of validation if there is one. progress: shows epochs, by tqdm where
    that is installed. plot: a path, to which the curves of the history are drawn at the end, by
    matplotlib. seed: of the data's order and of vg.random. Within an epoch nothing is copied to the
    host. A step that fails, as without memory, leaves weights, states, buffers and vg.random as
    they were before it.

    ValueError: no batches, epochs below 0, patience below 1, an optimiser of another network's
    parameters, a metric with a name of the history's own, a path whose ending says a format that
    cannot be written, or a checkpoint of something else; of another network what its
    load_state_dict raises. TypeError: epochs or patience is no integer, the loss no Array.
    FileNotFoundError: the folder of a path is not there. ModuleNotFoundError: matplotlib is not
    there to plot. Then nothing has changed.

    >>> vg.random.seed(0)
    >>> x = vg.random.rand(64, 1)
    >>> net = vg.nn.Linear(1, 1)
    >>> adam = vg.optim.Adam(net.parameters(), lr=0.05)
    >>> data = vg.data.TensorDataset(x, 2 * x + 1)
    >>> history = vg.nn.fit(net, data, vg.nn.MSELoss(), adam, epochs=3, progress=False)
    >>> len(history["loss"]), history["loss"][-1] < history["loss"][0]
    (3, True)
    """
    if schedule_each not in ("epoch", "batch"):
        raise ValueError(f"schedule_each is 'epoch' or 'batch', got {schedule_each!r}")
    epochs = _counted(epochs, "fit: epochs", 0)
    patience = None if patience is None else _counted(patience, "fit: patience", 1)
    metrics = {} if metrics is None else metrics
    _check_metrics(metrics)
    _check_parameters(net, optimiser)
    _check_paths(plot, checkpoint)
    if seed is not None:
        seed_all(seed)
    device = next((p.device for p in net.parameters()), None)
    batches = _batches(data, batch_size, device, seed, shuffle=True)
    held_out = None if validation is None else _batches(validation, batch_size, device, None)
    casts = amp.autocast(dtype=autocast or "bfloat16", enabled=autocast is not None)
    scaler = amp.GradScaler(enabled=casts.enabled and casts.dtype == "float16")
    run = _Run(net, (batches, held_out), optimiser, scheduler, scaler, checkpoint)
    if checkpoint is not None and resume and os.path.exists(checkpoint):
        names = ["loss", *metrics]
        names += [f"validation_{name}" for name in names] if held_out is not None else []
        run.load(device, {*names, "lr"})
    means = _Means(net, loss, metrics, casts)
    each_batch = scheduler if schedule_each == "batch" else None
    learn = _learner(optimiser, scaler, clip_norm, each_batch)
    with _Progress(progress, epochs, run.epoch) as shown:
        while run.epoch < epochs and (patience is None or run.since < patience):
            rate = optimiser.param_groups[0]["lr"]
            net.train()
            found = {**means.over(batches, learn), "lr": rate}
            if held_out is not None:
                found |= _validated(net, means, held_out)
            if scheduler is not None and each_batch is None:
                scheduler.step()
            run.finish(found)
            shown.finish(found)
    if plot is not None:
        _draw(plot, run.history)
    return {name: list(values) for name, values in run.history.items()}


def _check_metrics(metrics):
    """Refuse metrics that would stand in the history where something else does."""
    if not hasattr(metrics, "items"):
        raise TypeError(f"fit: metrics is a dict of functions, not {type(metrics).__name__}")
    for name in metrics:
        if name in ("loss", "lr") or str(name).startswith("validation_"):
            raise ValueError(f"fit: a metric cannot have the name {name!r} of the history's own")


def _check_parameters(net, optimiser):
    own = {id(p) for p in net.parameters()}
    given = {id(p) for group in optimiser.param_groups for p in group["params"]}
    if own and own.isdisjoint(given):
        raise ValueError("fit: none of the optimiser's parameters is one of the network's")


def _check_paths(plot, checkpoint):
    """Refuse paths to which nothing could be written, before anything is trained."""
    for name, path in (("plot", plot), ("checkpoint", checkpoint)):
        folder = "" if path is None else os.path.dirname(os.fsdecode(path))
        if folder and not os.path.isdir(folder):
            raise FileNotFoundError(f"fit: {name}: there is no folder {folder}")
    if checkpoint is not None and os.fsdecode(checkpoint).endswith(".safetensors"):
        raise ValueError(
            "fit: a checkpoint has more than arrays, which .safetensors cannot keep: another "
            f"ending is needed, such as .npz, and not {os.fsdecode(checkpoint)!r}"
        )
    if plot is None:
        return
    if importlib.util.find_spec("matplotlib") is None:
        raise ModuleNotFoundError("plot= needs matplotlib, which is not installed here")
    from matplotlib.figure import Figure

    formats = Figure().canvas.get_supported_filetypes()
    ending = os.path.splitext(os.fsdecode(plot))[1][1:]
    if ending and ending.lower() not in formats:
        raise ValueError(f"fit: plot: .{ending} is none of matplotlib's formats {sorted(formats)}")


def _batches(data, batch_size, device, seed, shuffle=False):
    """Return what gives batches each time that it is iterated over."""
    if isinstance(data, tuple) and data and all(isinstance(x, Array) or is_host(x) for x in data):
        data = TensorDataset(*data)
    if isinstance(data, Dataset):
        return DataLoader(data, batch_size, shuffle, generator=seed, device=device)
    if iter(data) is data:
        raise TypeError("batches are needed in every epoch: a DataLoader or a list, no iterator")
    if shuffle and seed is not None and isinstance(data, DataLoader):
        data.generator.state = default_rng(seed).state
    return data


def _learner(optimiser, scaler, clip_norm, scheduler):
    """Return a function of a batch's loss that does one step."""

    def learn(value):
        optimiser.zero_grad()
        scaler.scale(value).backward()
        if clip_norm is not None:
            scaler.unscale_(optimiser)
            params = [p for group in optimiser.param_groups for p in group["params"]]
            clip_grad_norm_(params, clip_norm)
        scaler.step(optimiser)
        scaler.update()
        if scheduler is not None:
            scheduler.step()

    return learn


def _validated(net, means, batches):
    net.eval()
    try:
        with no_grad():
            found = means.over(batches)
    finally:
        net.train()
    return {f"validation_{name}": value for name, value in found.items()}


class _Means:
    """Means of the loss and the metrics over the samples of an epoch, summed on the device."""

    def __init__(self, net, loss, metrics, casts):
        self.net, self.loss, self.metrics, self.casts = net, loss, metrics, casts

    def over(self, batches, learn=None):
        """Return {name: mean}; learn(loss): called for every batch. ValueError: no samples."""
        sums, count = {}, 0
        parameters, no_step = parameters_of(self.net), contextlib.nullcontext()
        for batch in batches:
            if not isinstance(batch, (tuple, list)) or len(batch) < 2:
                raise TypeError(f"a batch is (*inputs, target), not {type(batch).__name__}")
            *inputs, target = batch
            step = guarded(self.net, parameters) if learn else no_step
            with step:
                with self.casts:
                    output = self.net(*inputs)
                    value = self.loss(output, target)
                if not isinstance(value, Array):
                    name, kind = getattr(self.loss, "__name__", self.loss), type(value).__name__
                    raise TypeError(f"fit: the loss {name} gave {kind}, not an Array of one number")
                if learn is not None:
                    learn(value)
            size = target.shape[0] if target.ndim else 1
            with no_grad():
                output = output.detach() if isinstance(output, Array) else output
                found = {"loss": value} | {n: f(output, target) for n, f in self.metrics.items()}
                for name, x in found.items():
                    x = vg.astype(x.detach(), "float64") if isinstance(x, Array) else float(x)
                    sums[name] = x * size + sums.get(name, 0.0)
            count += size
        if not count:
            raise ValueError("fit: there are no batches in the data")
        return {n: (x.item() if isinstance(x, Array) else x) / count for n, x in sums.items()}


class _Run:
    """What goes on from epoch to epoch, and into the checkpoint."""

    def __init__(self, net, batches, optimiser, scheduler, scaler, path):
        self.net, self.optimiser, self.scheduler, self.path = net, optimiser, scheduler, path
        self.scaler = scaler
        both = zip(("order", "validation_order"), batches, strict=True)
        self.generators = {name: getattr(one, "generator", None) for name, one in both}
        self.history, self.epoch, self.best, self.since = {}, 0, float("inf"), 0

    def finish(self, found):
        """Take on an epoch's numbers, and write the checkpoint."""
        for name, value in found.items():
            self.history.setdefault(name, []).append(value)
        self.epoch += 1
        value = found.get("validation_loss", found["loss"])
        self.since = 0 if value < self.best else self.since + 1
        self.best = min(self.best, value) if value == value else self.best
        if self.path is not None:
            vg.save_state(self.path, self.state())

    def classes(self):
        """Return {part: the name of its class} of what has a state that another may look like."""
        return {"optimiser": type(self.optimiser).__name__, "scheduler": _named(self.scheduler)}

    def state(self):
        kept = {name: getattr(self, name) for name in ("history", "epoch", "best", "since")}
        return {
            "kind": _KIND,
            "classes": self.classes(),
            **kept,
            "net": self.net.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "scheduler": None if self.scheduler is None else self.scheduler.state_dict(),
            "scaler": self.scaler.state_dict(),
            **{name: one and one.state for name, one in self.generators.items()},
            "random": _shared().state,
        }

    def load(self, device, names):
        """Go on from the checkpoint; names: of the numbers that the history is to have."""
        state = vg.load_state(self.path, device=device)
        if not isinstance(state, dict) or state.get("kind") != _KIND:
            raise ValueError(f"{os.fspath(self.path)} is no checkpoint of fit")
        lacking = [name for name in self.state() if name not in (*state, *_LATER)]
        if lacking:
            raise ValueError(f"{os.fspath(self.path)} is no checkpoint of fit: it has no {lacking}")
        if (state["scheduler"] is None) != (self.scheduler is None):
            raise ValueError("the checkpoint is of a training with another kind of schedule")
        for name, own in self.classes().items():
            saved = state.get("classes", {}).get(name, own)
            if saved != own:
                raise ValueError(f"the checkpoint's {name} is {saved}, and this one's {own}")
        if bool(state["scaler"]) != self.scaler.is_enabled():
            raise ValueError("the checkpoint is of a training with another autocast")
        if state["history"] and set(state["history"]) != names:
            found, names = sorted(state["history"]), sorted(names)
            raise ValueError(f"the checkpoint's history is of {found}, and this one's of {names}")
        before = {name: vg.copy(x) for name, x in self.net.state_dict().items()}
        before_steps = self.optimiser.state_dict()
        try:
            self.net.load_state_dict(state["net"])
            self.optimiser.load_state_dict(state["optimiser"])
            if self.scheduler is not None:
                self.scheduler.load_state_dict(state["scheduler"])
            self.scaler.load_state_dict(state["scaler"])
        except BaseException:
            self.net.load_state_dict(before)
            self.optimiser.load_state_dict(before_steps)
            raise
        for name, generator in self.generators.items():
            if generator is not None and state.get(name) is not None:
                generator.state = state[name]
        _shared().state = state["random"]
        for name in ("history", "epoch", "best", "since"):
            setattr(self, name, state[name])


def _named(schedule):
    """Return the name of a schedule's class, with those of the schedules in it."""
    inner = ", ".join([_named(one) for one in getattr(schedule, "schedulers", ())])
    name = type(schedule).__name__
    return f"{name}({inner})" if inner else name


class _Progress:
    """A bar of epochs by tqdm, or a line for each where it is not installed."""

    def __init__(self, wanted, epochs, done):
        self.wanted, self.epochs, self.done, self.bar = wanted, epochs, done, None
        if wanted:
            try:
                import tqdm
            except ImportError:
                return
            self.bar = tqdm.tqdm(total=epochs, initial=done, unit="epoch")

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.bar is not None:
            self.bar.close()

    def finish(self, found):
        self.done += 1
        if self.bar is not None:
            self.bar.set_postfix({name: f"{value:.4g}" for name, value in found.items()})
            self.bar.update()
        elif self.wanted:
            text = "  ".join([f"{name} {value:.4g}" for name, value in found.items()])
            print(f"epoch {self.done}/{self.epochs}  {text}", file=sys.stderr)


def _draw(path, history):
    """Draw losses, and beside them the metrics, over the epochs, into a file."""
    from matplotlib.figure import Figure  # no window, no backend

    metrics = [name for name in history if not name.endswith("loss") and name != "lr"]
    losses = [name for name in history if name.endswith("loss")]
    sides = [names for names in (losses, metrics) if names]
    figure = Figure(figsize=(5.5 * len(sides), 4), layout="constrained")
    for number, names in enumerate(sides, 1):
        axes = figure.add_subplot(1, len(sides), number)
        for name in names:
            axes.plot(range(1, len(history[name]) + 1), history[name], label=name)
        axes.set_xlabel("epoch")
        axes.grid(color="#dddddd")
        axes.legend()
    figure.savefig(path)
