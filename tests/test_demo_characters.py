"""The demo's model of characters, and the trigram model that it has to beat."""

import collections
import json

import numpy as np
import pytest

import pyvecgpu as vg
from pyvecgpu import __main__ as command
from pyvecgpu.demo import characters
from pyvecgpu.demo.trigram import Trigram

# A line has letters of one pair. Two characters before a letter do not tell which: the line does.
PAIRS = ("ab", "cd", "ef", "gh")


def text_of(lines, seed=0):
    rng = np.random.default_rng(seed)
    pairs = [[*rng.choice(PAIRS)] for _ in range(lines)]
    return "\n".join(["-.".join(rng.choice(pair, 30)) for pair in pairs])


def run(capsys, *arguments):
    code = command.main(["demo", "--model", "characters", *arguments])
    output = capsys.readouterr()
    return code, output.out, output.err


# The trigram model --------------------------------------------------------------------------------


def by_definition(numbers, size, history, character):
    """Witten and Bell's probability, by counting from the front each time."""
    if history is None:
        return 1 / size
    n = len(history)
    runs = [tuple(numbers[i : i + n + 1]) for i in range(len(numbers) - n)]
    after = collections.Counter(one[-1] for one in runs if one[:-1] == history)
    lower = by_definition(numbers, size, history[1:] if n else None, character)
    if not after:
        return lower
    return (after[character] + len(after) * lower) / (sum(after.values()) + len(after))


def test_the_trigram_model_is_witten_s_and_bell_s(rng):
    learned, other = rng.integers(0, 4, 60), rng.integers(0, 6, 40)
    model = Trigram(learned, 6)
    found = model.probabilities(other)
    expected = [
        by_definition(learned.tolist(), 6, tuple(other[i - 2 : i].tolist()), int(other[i]))
        for i in range(2, len(other))
    ]
    assert np.abs(found - expected).max() <= 1e-12
    assert abs(model.loss(other) + np.log(expected).mean()) <= 1e-12


def test_probabilities_of_all_characters_are_1_together(rng):
    learned = rng.integers(0, 5, 80)
    model = Trigram(learned, 7)
    for before in ([0, 1], [4, 4], [6, 0], [6, 6]):
        together = sum(model.probabilities(np.array([*before, c]))[0] for c in range(7))
        assert abs(together - 1) <= 1e-12


# The network --------------------------------------------------------------------------------------


def test_a_writer_sees_nothing_that_comes_later(device):
    vg.random.seed(0)
    writer = characters.Writer(5, width=8).to(device).eval()
    numbers = np.arange(12).reshape(1, 12) % 5
    other = numbers.copy()
    other[0, 7:] = 0
    scores = [writer(vg.asarray(x, device=device)).detach().numpy() for x in (numbers, other)]
    assert scores[0].shape == (1, 12, 5)
    assert np.allclose(scores[0][:, :7], scores[1][:, :7], atol=1e-6)
    assert not np.allclose(scores[0][:, 7:], scores[1][:, 7:], atol=1e-3)


class Guesser(vg.nn.Module):
    """Gives each character after 0 with 1/2, after others with 1/4: which text is scored shows."""

    def __init__(self):
        super().__init__()
        self.weight = vg.nn.Parameter(vg.zeros(1, device="cpu"))
        self.seen = []

    def forward(self, numbers):
        values = numbers.numpy()
        self.seen.append(values)
        sharp = np.where(values == 0, 2.0, 4.0)
        scores = np.full((*values.shape, 300), -1e9, np.float32)
        scores[...] = np.where(np.arange(300) < sharp[..., None], 0.0, -1e9)
        return vg.asarray(scores.astype(np.float32), device="cpu")


@pytest.mark.parametrize("extra", [0, 1, 31, 33])
def test_the_same_characters_are_scored(extra, rng):
    """Each once, from the first one held out on, after half of LENGTH or more before it."""
    half, first = characters.LENGTH // 2, 100
    numbers = rng.integers(0, 2, first + 3 * half + 1 + extra)
    guesser = Guesser()
    loss, count = characters.held_out_loss(guesser, numbers, first)
    assert half <= count <= len(numbers) - first and len(numbers) - first - count <= half + 1
    expected = [np.log(2 if numbers[i - 1] == 0 else 4) for i in range(first, first + count)]
    assert abs(loss - np.mean(expected)) <= 1e-5
    assert all(values.shape[1] == characters.LENGTH for values in guesser.seen)


def test_devices_learn_the_same(device):
    numbers = vg.data.Characters("abc").encode("abcacb" * 40, device="cpu").numpy()
    losses = {}
    for name in ("cpu", device):
        report = lambda step, loss: None  # noqa: E731
        _, losses[name], steps, _ = characters.train(name, numbers, 3, 2, 0, report, width=8)
        assert steps == 2
    assert len(losses["cpu"]) == 2 and np.isfinite(losses["cpu"]).all()
    assert np.allclose(losses[device], losses["cpu"], rtol=1e-3)


def test_lines_have_an_end(device, monkeypatch):
    monkeypatch.setattr(characters, "LONGEST", 9)
    vg.random.seed(0)
    for text in ("ab\n", "abc"):
        letters = vg.data.Characters(text)
        writer = characters.Writer(len(letters), width=8).to(device)
        rng = vg.random.default_rng(0, device=device)
        lines = characters.write(writer, letters, rng, lines=2)
        assert len(lines) == 2 and all(0 < len(line) <= 9 for line in lines)
        assert all(set(line) <= set("abc") for line in lines)


# The command --------------------------------------------------------------------------------------


def test_the_network_beats_the_trigram_model(capsys, tmp_path):
    path, weights = tmp_path / "pairs.txt", tmp_path / "net.npz"
    path.write_text(text_of(70))
    options = ("--data", str(path), "--epochs", "80", "--width", "24", "--save", str(weights))
    code, out, err = run(capsys, "--device", "cpu", "--json", *options)
    assert code == 0 and err == ""
    result = json.loads(out.splitlines()[-1])
    assert result["model"] == "characters" and result["steps"] == 160
    assert 0 < result["test_loss"] < 0.8 * result["trigram_loss"]
    line = f"{result['test_loss']:.4f}; of a trigram model: {result['trigram_loss']:.4f}"
    assert line in out and "not better" not in out
    written = out[out.index("It writes:") :].splitlines()[1 : 1 + characters.LINES]
    counts = [[sum(line.count(letter) for letter in pair) for pair in PAIRS] for line in written]
    assert len(counts) == characters.LINES and sum(map(sum, counts)) > 50
    assert sum(map(max, counts)) > 0.55 * sum(map(sum, counts)), "a line has letters of one pair"
    writer = characters.Writer(len(set(text_of(70))), 24).to("cpu")
    writer.load_state_dict(vg.load_state(str(weights), device="cpu"))


def test_a_network_that_has_not_learned_is_told(capsys, tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text(text_of(30))
    options = ("--data", str(path), "--epochs", "1", "--width", "8")
    code, out, _ = run(capsys, "--device", "cpu", *options)
    assert code == 0 and "not better than the trigram model" in out


def test_what_is_no_text(capsys, tmp_path):
    short = tmp_path / "short.txt"
    short.write_text("too short")
    code, _, err = run(capsys, "--device", "cpu", "--data", str(short))
    assert code == 1 and "has 9 characters; 1280 or more are needed" in err
    code, _, err = run(capsys, "--device", "cpu", "--data", str(tmp_path / "none.txt"))
    assert code == 1 and err.startswith("demo: ")
    for options in ((), ("--data", str(short), "--plot", "x.png")):
        with pytest.raises(SystemExit) as end:
            run(capsys, *options)
        assert end.value.code == 2
