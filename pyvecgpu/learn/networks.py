"""Networks by the shapes of their layers: what a training step of them multiplies and touches."""

from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Layer:
    """A layer as a product of matrices: for each example `positions` rows of `inputs` numbers, each
    times a matrix (inputs, outputs), in `groups` products side by side; a bias for each output.

    A convolution is one too: each position's row is the window of the image that it looks at.
    """

    name: str
    positions: int
    inputs: int
    outputs: int
    groups: int = 1

    @property
    def weights(self):
        return self.groups * self.inputs * self.outputs

    @property
    def parameters(self):
        return self.weights + self.groups * self.outputs

    @property
    def products(self):
        """Multiplications, each with its addition, for one example and one way through."""
        return self.positions * self.weights


@dataclass(frozen=True)
class Network:
    """Layers in order."""

    name: str
    layers: tuple

    @property
    def parameters(self):
        return sum(layer.parameters for layer in self.layers)

    @property
    def products(self):
        """Of a training step, for one example: forward, the gradients of all weights, and those of
        all inputs but the first layer's."""
        return 3 * sum(layer.products for layer in self.layers) - self.layers[0].products

    @property
    def bytes(self):
        """That a step has to move for its parameters, in float32: each weight is read forward and
        backward, its gradient is written, and the update reads gradient, velocity and weight and
        writes the last two."""
        return 8 * 4 * self.parameters


def perceptron(name, *sizes):
    """A Network of dense layers between these sizes."""
    pairs = enumerate(pairwise(sizes), 1)
    return Network(name, tuple(Layer(f"dense {i}", 1, n, m) for i, (n, m) in pairs))


LENET = Network(
    "LeNet-5, digits, 1998",
    (
        Layer("convolution 1", 28 * 28, 5 * 5, 6),
        Layer("convolution 2", 10 * 10, 5 * 5 * 6, 16),
        Layer("dense 1", 1, 400, 120),
        Layer("dense 2", 1, 120, 84),
        Layer("dense 3", 1, 84, 10),
    ),
)
# In two halves, where its authors had two GPUs with 3 GB each.
ALEXNET = Network(
    "AlexNet, photographs, 2012",
    (
        Layer("convolution 1", 55 * 55, 11 * 11 * 3, 96),
        Layer("convolution 2", 27 * 27, 5 * 5 * 48, 128, 2),
        Layer("convolution 3", 13 * 13, 3 * 3 * 256, 384),
        Layer("convolution 4", 13 * 13, 3 * 3 * 192, 192, 2),
        Layer("convolution 5", 13 * 13, 3 * 3 * 192, 128, 2),
        Layer("dense 1", 1, 6 * 6 * 256, 4096),
        Layer("dense 2", 1, 4096, 4096),
        Layer("dense 3", 1, 4096, 1000),
    ),
)
NETWORKS = (
    perceptron("lesson 17, two spirals", 2, 16, 16, 1),
    perceptron("the demo, digits", 64, 128, 128, 10),
    LENET,
    ALEXNET,
)
