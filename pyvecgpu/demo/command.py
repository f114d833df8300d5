"""`python -m pyvecgpu demo`: trains a network on the device and on the CPU, and tells."""

import argparse
import json
import math
import os
import sys
from importlib.util import find_spec

import pyvecgpu as vg

from ..errors import PyVecGPUError
from . import by_hand, characters, images, plots, training
from .networks import RECIPES
from .runs import verdict

BY_HAND, CHARACTERS = "by-hand", "characters"
MODELS = (BY_HAND, *RECIPES, CHARACTERS)
THE_CPU_ITSELF = "This is the CPU itself, so there is nothing to compare it with."
NO_GPU = (
    "There is no GPU here (`python -m pyvecgpu info` says why), so the CPU was used, "
    "and there is nothing to compare it with."
)

WEIGHTS = (".npz", ".safetensors")  # how the names of files end that keep them


def say(text):
    print(text, flush=True)


def demo(device, arguments):
    """Train on the device and on the CPU, tell, and return (the device's Run, exit code)."""
    seed, model = arguments.seed, arguments.model
    data = images.load(arguments.data, seed, arguments.shuffle_labels)
    epochs = arguments.epochs or defaults(model)[0]
    say(f"device: {device}, {device.name}")
    say(heading(model, data, epochs, arguments.width))

    def report(epoch, loss):
        say(f"epoch {epoch:3}: loss {loss:.4f}")

    run, network = trained(model, device, data, epochs, seed, report, arguments.width)
    say(f"accuracy on the held-out images: {run.accuracy:.3f}")
    say(f"training: {run.seconds:.2f} s, {run.images_per_second():,.0f} images per second")
    if arguments.save:
        states = by_hand.state_dict if model == BY_HAND else lambda net: net.state_dict()
        vg.save_state(arguments.save, states(network))
        say(f"The weights are in {arguments.save}.")
    if arguments.plot and plots.is_possible():
        plots.draw(arguments.plot, f"{model} on {device}", run, data)
        say(f"The picture is in {arguments.plot}.")
    if device.type == "cpu":
        found = arguments.device or vg.is_available("cuda")
        say(THE_CPU_ITSELF if found else NO_GPU)
    else:
        say("The steps copied nothing to or from the host.")
        cpu, _ = trained(model, "cpu", data, epochs, seed, width=arguments.width)
        say(f"on the CPU: {cpu.seconds:.2f} s, accuracy {cpu.accuracy:.3f}")
        say(verdict(run, cpu))
    if arguments.shuffle_labels:
        chance = f"chance is about {1 / data.classes:.2g}"
        say(f"The labels were shuffled, so there was nothing to learn: {chance}.")
    elif arguments.data is None and arguments.width is None:
        return run, judged(run, model, epochs, len(data.test_labels))
    return run, 0


def several(device, arguments):
    """Train with seeds 0, 1, ... on the device alone; return (what --json prints, exit code)."""
    model, epochs = arguments.model, arguments.epochs or defaults(arguments.model)[0]
    say(f"device: {device}, {device.name}")
    runs = []
    for seed in range(arguments.seeds):
        data = images.load(arguments.data, seed, arguments.shuffle_labels)
        if not seed:
            say(heading(model, data, epochs, arguments.width))
        run, _ = trained(model, device, data, epochs, seed, width=arguments.width)
        say(f"seed {seed}: accuracy {run.accuracy:.4f}, {run.seconds:.2f} s")
        runs.append(run)
    mean = sum(run.accuracy for run in runs) / len(runs)
    say(f"mean accuracy on the held-out images: {mean:.4f}")
    every = {"mean_accuracy": mean, "runs": [facts(run, model) for run in runs]}
    if not is_as_aimed(arguments, epochs) or mean >= defaults(model)[1]:
        return every, 0
    print(f"demo: the mean is below the target of {defaults(model)[1]}", file=sys.stderr)
    return every, 1


def is_as_aimed(arguments, epochs):
    """Whether a training is one that has a target: of the bundled digits, as the recipe says."""
    changed = arguments.data or arguments.width or arguments.shuffle_labels
    return not changed and epochs >= defaults(arguments.model)[0]


def trained(model, device, data, epochs, seed, report=lambda epoch, loss: None, width=None):
    """Return (Run, network)."""
    if model == BY_HAND:
        return by_hand.train(device, data, epochs, seed, report, width)
    return training.train(model, device, data, epochs, seed, report, width)


def defaults(model):
    """Return the epochs of a model and its target."""
    if model == BY_HAND:
        return by_hand.EPOCHS, by_hand.TARGET
    return RECIPES[model].epochs, RECIPES[model].target


def heading(model, data, epochs, width):
    """Return what is trained on what, in a line."""
    batch = by_hand.BATCH if model == BY_HAND else RECIPES[model].batch
    name = model
    if model == BY_HAND:
        name = "-".join(map(str, by_hand.sizes_for(data, width)))
    elif width is not None:
        name += f" of width {width}"
    return (
        f"network: {name}; {len(data.train_images)} images to learn from, "
        f"{len(data.test_images)} held out; {epochs} epochs in batches of {batch}"
    )


def judged(run, model, epochs, count):
    """Return the exit code: 1 if the accuracy is below what the target lets one seed expect.

    Targets of the tape's networks are means of seeds 0 to 9: one seed's accuracy on `count` images
    may be three standard errors below.
    """
    wanted, target = defaults(model)
    if run.accuracy >= target:
        return 0
    if epochs < wanted:
        say(f"The target of {target} is for {wanted} epochs.")
        return 0
    if model != BY_HAND and run.accuracy >= target - 3 * math.sqrt(target * (1 - target) / count):
        say(f"The target of {target} is for the mean of seeds 0 to 9.")
        return 0
    print(f"demo: the accuracy is below the target of {target}", file=sys.stderr)
    return 1


# The command --------------------------------------------------------------------------------------


def parse(argv):
    parser = argparse.ArgumentParser(
        prog="python -m pyvecgpu demo",
        description="Train a network that reads handwritten digits, and compare with the CPU.",
    )
    parser.add_argument("--model", choices=MODELS, default=BY_HAND, help=f"default: {BY_HAND}")
    parser.add_argument(
        "--data",
        metavar="PATH",
        help="a folder of IDX files (MNIST), an .npz file, or for characters a text; "
        "default: the 1,797 digits that come with the package",
    )
    parser.add_argument("--device", help="cpu, cuda, cuda:1, sim, ...; default: cuda, else cpu")
    parser.add_argument("--width", type=int, help="units of a layer, such as 2048")
    parser.add_argument("--epochs", type=int, help="passes over the data; default: the model's own")
    parser.add_argument("--seed", type=int, default=0, help="of weights and of the split")
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="train seeds 0 to N - 1, tell each and the mean"
    )
    parser.add_argument("--plot", metavar="FILE", help="draw loss, confusion and misread digits")
    parser.add_argument("--save", metavar="FILE", help="write the weights, .npz or .safetensors")
    parser.add_argument(
        "--shuffle-labels", action="store_true", help="learn wrong labels: accuracy falls to chance"
    )
    parser.add_argument("--json", action="store_true", help="end with the run as one JSON object")
    arguments = parser.parse_args(argv)
    check(parser, arguments)
    return arguments


def check(parser, arguments):
    """End with a sentence if options make no sense, before anything is trained."""
    for name, least in (("epochs", 1), ("seed", 0), ("seeds", 1), ("width", 4)):
        value = getattr(arguments, name)
        if value is not None and value < least:
            parser.error(f"--{name} is {least} or more")
    if arguments.width is not None and arguments.width % 4:
        parser.error("--width is a multiple of 4")
    if arguments.model == CHARACTERS:
        if arguments.data is None:
            parser.error("--model characters needs --data FILE, a text")
        if arguments.plot or arguments.shuffle_labels or arguments.seeds:
            parser.error("--plot, --seeds and --shuffle-labels belong to models that read digits")
    if arguments.seeds and (arguments.plot or arguments.save or arguments.seed):
        parser.error("--plot, --save and --seed belong to one training, --seeds trains several")
    for name in ("plot", "save"):
        folder = os.path.dirname(getattr(arguments, name) or "") or "."
        if not os.path.isdir(folder):
            parser.error(f"--{name}: there is no folder {folder}")
    if arguments.save and not arguments.save.endswith(WEIGHTS):
        parser.error(
            f"--save: weights are in a file *{' or *'.join(WEIGHTS)}, not {arguments.save}"
        )
    if (arguments.save or "").endswith(WEIGHTS[1]) and find_spec("safetensors") is None:
        parser.error("--save: *.safetensors needs its library: pip install pyvecgpu[safetensors]")
    ending = os.path.splitext(arguments.plot or "")[1][1:]
    if ending and plots.is_possible() and ending.lower() not in plots.formats():
        parser.error(f"--plot: .{ending} is none of {', '.join(plots.formats())}")


def main(argv=None):
    """Run the command and return its exit code.

    0, or after a sentence that says what is wrong, 1, or 2 for a device that makes no sense.
    """
    arguments = parse(argv)
    try:
        device = vg.zeros(0, device=arguments.device).device
    except (PyVecGPUError, ValueError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1 if isinstance(error, PyVecGPUError) else 2
    if arguments.plot and not plots.is_possible():
        say(plots.NO_PICTURE)
    run = several if arguments.seeds else demo
    if arguments.model == CHARACTERS:
        run = characters.demo
    try:
        with_result = run(device, arguments)
    except (AssertionError, ImportError, OSError, PyVecGPUError, ValueError) as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1
    result, code = with_result
    if arguments.json:
        say(json.dumps(result if isinstance(result, dict) else facts(result, arguments.model)))
    return code


def facts(run, model):
    """Return a Run as JSON has it."""
    return {
        "device": str(run.device),
        "model": model,
        "epochs": run.epochs,
        "train_seconds": run.seconds,
        "test_accuracy": run.accuracy,
        "images_per_second": run.images_per_second(),
    }
