"""Data and networks of the runs that `benchmarks/diagnosis.py` diagnoses."""
# pyright: reportMissingImports=false

from __future__ import annotations

import functools

import numpy as np
import torch
from torch import nn

from dynascope import digits
from dynascope.tasks import python_documentation

__all__ = [
    "CLASSES",
    "CONTEXT",
    "VOCABULARY",
    "Multiply",
    "Repeated",
    "TinyGPT",
    "balanced_digits",
    "convolutions",
    "digit_images",
    "multilayer",
    "normalised",
    "text_windows",
]

CLASSES = 10
CONTEXT = 16
_LETTERS = "abcdefghijklmnopqrstuvwxyz .,_\n"
VOCABULARY = len(_LETTERS) + 1  # the last token stands for all other characters


def digit_images(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return images of digits of mean square one, shape (n, 64), and their classes, drawn at random."""
    data = digits()
    rows = np.random.default_rng(seed).permutation(data.samples)[:count]
    inputs = torch.tensor(data.inputs[rows], dtype=torch.float32)
    return inputs / inputs.square().mean().sqrt(), torch.tensor(data.targets[rows].argmax(axis=1))


def balanced_digits(classes: int, each: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the same number of images of each of the first digits in random order, and their classes."""
    x, y = digit_images(digits().samples, seed)
    rows = torch.cat([torch.nonzero(y == label)[:each, 0] for label in range(classes)]).sort().values
    return x[rows], y[rows]


def text_windows(count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return windows of characters of Python's documentation, and their next characters, both of shape (n, 16)."""
    text = _tokens()
    starts = np.random.default_rng(seed).integers(len(text) - CONTEXT, size=count)
    windows = torch.tensor(text[starts[:, None] + np.arange(CONTEXT + 1)])
    return windows[:, :-1], windows[:, 1:]


@functools.lru_cache(maxsize=1)
def _tokens() -> np.ndarray:
    places = {letter: place for place, letter in enumerate(_LETTERS)}
    return np.array([places.get(each, VOCABULARY - 1) for each in python_documentation(100_000).lower()])


class Multiply(nn.Module):
    """Multiplies its input by a constant."""

    def __init__(self, factor: float):
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the product."""
        return self.factor * x


class Repeated(nn.Module):
    """A layer that is applied several times, each time followed by ReLU, with the same weights or with copies.

    Args:
        layers: The layers; the same object several times to share its weights.
    """

    def __init__(self, *layers: nn.Module):
        super().__init__()
        self.layers = nn.ModuleList(layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the result of the last layer."""
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


def multilayer(width: int = 64, hidden: int = 2, classes: int = CLASSES) -> nn.Sequential:
    """Return a multilayer perceptron for digits with ReLU."""
    layers: list[nn.Module] = []
    inputs = 64
    for _ in range(hidden):
        layers += [nn.Linear(inputs, width), nn.ReLU()]
        inputs = width
    return nn.Sequential(*layers, nn.Linear(inputs, classes))


def convolutions(*, middle: nn.Module | None = None, dense: int = 1, classes: int = CLASSES) -> nn.Sequential:
    """Return a convolutional network for digits, with an optional part between its two convolutions.

    Args:
        middle: The part between the convolutions.
        dense: Number of dense layers between the convolutions and the readout.
        classes: Number of outputs.
    """
    layers = [each for k in range(dense) for each in (nn.Linear(48 if k else 16 * 16, 48), nn.ReLU())]
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        *([] if middle is None else [middle]),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        *layers,
        nn.Linear(48, classes),
    )


def normalised(classes: int = CLASSES) -> nn.Sequential:
    """Return a convolutional network for digits with batch normalisation."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 16, 48, bias=False),
        nn.BatchNorm1d(48),
        nn.ReLU(),
        nn.Linear(48, classes),
    )


class _Attention(nn.Module):
    """Causal self-attention, written out so that it can be differentiated twice."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.queries, self.keys, self.values = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.outputs = nn.Linear(width, width, bias=False)
        self.register_buffer("hidden", torch.ones(CONTEXT, CONTEXT).triu(1) > 0, persistent=False)

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        """Return the sum over heads of the attended values."""
        queries, keys, values = (
            layer(h).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.queries, self.keys, self.values)
        )
        scores = queries @ keys.transpose(2, 3) / keys.shape[-1] ** 0.5
        weights = torch.softmax(scores.masked_fill(self.hidden, -1e9), dim=-1)
        return self.outputs((weights @ values).transpose(1, 2).flatten(2))


class _Block(nn.Module):
    """Attention and a multilayer perceptron, each after layer normalisation."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.first_norm, self.second_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = _Attention(width, heads)
        self.perceptron = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

    def forward(self, h: torch.Tensor) -> torch.Tensor:
        """Return the residual stream after the block."""
        h = h + self.attention(self.first_norm(h))
        return h + self.perceptron(self.second_norm(h))


class TinyGPT(nn.Module):
    """A language model of characters with two blocks.

    Args:
        width: Width of the residual stream.
        readout: "independent" weights, "shared" with the embedding, or "copied" from it.
    """

    def __init__(self, width: int = 32, *, readout: str = "independent"):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Parameter(0.1 * torch.randn(CONTEXT, width))
        self.blocks = nn.Sequential(_Block(width, 2), _Block(width, 2))
        self.norm = nn.LayerNorm(width)
        self.readout = nn.Linear(width, VOCABULARY, bias=False)
        if readout != "independent":
            with torch.no_grad():
                self.embedding.weight.mul_(width**-0.5)
                self.readout.weight.copy_(self.embedding.weight)
        if readout == "shared":
            self.readout.weight = self.embedding.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the logits at each position, shape (n, 16, c)."""
        return self.readout(self.norm(self.blocks(self.embedding(tokens) + self.positions)))
