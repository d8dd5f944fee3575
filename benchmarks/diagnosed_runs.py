"""Sixty training runs, each with or without one of ten conditions that hold by construction.

The runs were written down, and their truth was verified by `diagnosed_truth.py`, before the thresholds of any line of
the diagnosis were set. The collapsed runs are an exception: they were replaced afterwards, because the first ones had
not collapsed with the development and the test seeds. The thresholds did not change, but they were known.

Each condition has three runs with it and three without it, which differ in nothing else:

- lazy: the outputs are multiplied by a large constant instead of a small one, and the readout starts at zero.
- rich: half the initial weights of PyTorch, instead of large output multipliers with a readout that starts at zero.
- unstable: three times the measured stability limit instead of a hundredth of it. For Adam, the learning rate is 1
  instead of 0.001.
- dead units: very negative biases of half of the units of one layer, instead of the biases of PyTorch.
- collapsed: training on four balanced classes long past zero error, with weight decay, instead of stopping early. The
  loss is the squared error, which is small only if the class means span all directions. With cross-entropy, ten
  classes and weight decay, the MLP reached zero error with class means of low rank (compare arXiv:2410.23169).
- clipping: the gradient of each tensor is clipped instead of the gradient as a whole.
- weight decay: one weight matrix has no weight decay, instead of all having it. Biases and gains never have decay.
- tied weights: a layer is a copy of another one instead of sharing its weights.
- label noise: 30 % of the labels are flipped instead of none; training stops before the network fits them.
- memorising: training until the flipped labels are fitted instead of stopping early.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable, Iterator

import numpy as np
import torch
from diagnosed_models import (
    CLASSES,
    VOCABULARY,
    Multiply,
    Repeated,
    TinyGPT,
    balanced_digits,
    convolutions,
    digit_images,
    multilayer,
    normalised,
    text_windows,
)
from diagnosed_training import Training, next_token_loss, sharpness, squared_error
from torch import nn

__all__ = ["ARCHITECTURES", "SEEDS", "Run", "runs"]

ARCHITECTURES = {
    "lazy": ("mlp", "cnn", "gpt"),
    "rich": ("mlp", "cnn", "gpt"),
    "unstable": ("mlp", "cnn", "gpt"),
    "dead units": ("mlp", "cnn", "norm"),
    "collapsed": ("mlp", "cnn", "norm"),
    "clipping": ("mlp", "norm", "gpt"),
    "weight decay": ("mlp", "cnn", "gpt"),
    "tied weights": ("mlp", "cnn", "gpt"),
    "label noise": ("mlp", "cnn", "norm"),
    "memorising": ("mlp", "norm", "gpt"),
}
SEEDS = {"development": 0, "test": 1000}

MOMENTUM = 0.9


@dataclasses.dataclass(frozen=True)
class Run:
    """The definition of one run.

    Attributes:
        condition: The condition that the diagnosis is tested for.
        architecture: "mlp", "cnn", "norm" (CNN with batch normalisation) or "gpt".
        present: Whether the run has the condition.
        seed: Seed of data, weights and batches.
    """

    condition: str
    architecture: str
    present: bool
    seed: int

    @property
    def name(self) -> str:
        """The name of the run, such as "dead-units-mlp-with"."""
        condition = self.condition.replace(" ", "-")
        return f"{condition}-{self.architecture}-{'with' if self.present else 'without'}"

    def training(self) -> Training:
        """Return the run, ready to start; the result is the same each time."""
        torch.manual_seed(self.seed)
        return _RECIPES[self.condition](self.architecture, self.present, self.seed)

    def train(self, training: Training, observe: Callable[[int, torch.Tensor], object]) -> None:
        """Train, and call `observe` with the number of each step and its loss while the gradients exist."""
        draw = torch.Generator().manual_seed(self.seed)
        training.model.train()
        for step in range(1, training.steps + 1):
            if training.batch is None:
                x, y = training.inputs, training.targets
            else:
                rows = torch.randint(len(training.inputs), (training.batch,), generator=draw)
                x, y = training.inputs[rows], training.targets[rows]
            loss = training.criterion(training.model(x), y)
            training.optimizer.zero_grad()
            loss.backward()
            training.clip(training.model)
            training.optimizer.step()
            observe(step, loss.detach())


def runs(seeds: str) -> Iterator[Run]:
    """Yield all 60 runs with the "development" or the "test" seeds."""
    number = itertools.count(SEEDS[seeds])
    for condition, architectures in ARCHITECTURES.items():
        for architecture in architectures:
            seed = next(number)
            for present in (True, False):
                yield Run(condition, architecture, present, seed)


def _lazy(architecture: str, present: bool, seed: int) -> Training:
    return _multiplied(architecture, seed, 100.0, 0.1) if present else _multiplied(architecture, seed, 0.3, 0.01)


def _rich(architecture: str, present: bool, seed: int) -> Training:
    if not present:
        return _multiplied(architecture, seed, 100.0, 0.1)
    model = _model(architecture)
    with torch.no_grad():
        for each in model.parameters():
            if each.ndim > 1:
                each.mul_(0.5)
    return _at_limit(_full_batch(model, architecture, seed), 0.02)


def _unstable(architecture: str, present: bool, seed: int) -> Training:
    training = _full_batch(_model(architecture), architecture, seed)
    training.steps = 200
    if architecture == "gpt":
        training.optimizer = torch.optim.Adam(training.model.parameters(), lr=1.0 if present else 1e-3)
        return training
    training.batch = None if architecture == "mlp" else 64
    return _at_limit(training, 3.0 if present else 0.01)


def _dead(architecture: str, present: bool, seed: int) -> Training:
    model = _model(architecture)
    if present:
        layers = [each for each in model.modules() if isinstance(each, nn.Linear | nn.Conv2d | nn.BatchNorm2d)]
        biases = [each.bias for each in layers if each.bias is not None]
        with torch.no_grad():
            biases[1 if architecture == "mlp" else 0][::2] = -10.0
    x, y = digit_images(512, seed)
    return Training(
        model=model,
        inputs=x,
        targets=y,
        true_targets=y,
        optimizer=_sgd(model, 0.02),
        criterion=nn.CrossEntropyLoss(),
        steps=200,
        batch=64,
    )


def _collapsed(architecture: str, present: bool, seed: int) -> Training:
    classes = 4
    deep = {
        "mlp": lambda: multilayer(hidden=3, classes=classes),
        "cnn": lambda: convolutions(dense=3, classes=classes),
        "norm": lambda: normalised(classes),
    }
    model = deep[architecture]()
    x, y = balanced_digits(classes, 30, seed)
    short, long = {"mlp": (8, 2000), "cnn": (15, 2000), "norm": (3, 600)}[architecture]
    return Training(
        model=model,
        inputs=x,
        targets=y,
        true_targets=y,
        optimizer=_sgd(model, 0.1, weight_decay=2e-3),
        criterion=squared_error,
        steps=long if present else short,
    )


def _clipping(architecture: str, present: bool, seed: int) -> Training:
    training = _full_batch(_model(architecture), architecture, seed)
    training.optimizer = _sgd(training.model, 0.05)
    training.steps, training.batch = (100, 16) if architecture == "gpt" else (200, 64)
    training.clip = _clip_each if present else _clip_all
    return training


def _weight_decay(architecture: str, present: bool, seed: int) -> Training:
    training = _full_batch(_model(architecture), architecture, seed)
    model = training.model
    matrices = [each for each in model.parameters() if each.ndim > 1]
    without = [matrices[1]] if architecture != "gpt" else [model.get_parameter("blocks.1.perceptron.0.weight")]
    without = without if present else []
    forgotten = {id(each) for each in without}
    groups = [
        {"params": [each for each in matrices if id(each) not in forgotten], "weight_decay": 1e-2},
        {"params": [*without, *(each for each in model.parameters() if each.ndim < 2)], "weight_decay": 0.0},
    ]
    adam = architecture == "gpt"
    training.optimizer = (
        torch.optim.AdamW(groups, lr=1e-3) if adam else torch.optim.SGD(groups, lr=0.02, momentum=MOMENTUM)
    )
    training.steps, training.batch = 200, 16 if adam else 64
    return training


def _tied_weights(architecture: str, present: bool, seed: int) -> Training:
    if architecture == "gpt":
        model: nn.Module = TinyGPT(readout="copied" if present else "shared")
    else:
        layer = nn.Linear(64, 64) if architecture == "mlp" else nn.Conv2d(8, 8, 3, padding=1)
        repeated = Repeated(layer, copy.deepcopy(layer) if present else layer)
        head = nn.Linear(64, CLASSES)
        model = nn.Sequential(repeated, head) if architecture == "mlp" else convolutions(middle=repeated)
    training = _full_batch(model, architecture, seed)
    training.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3) if architecture == "gpt" else _sgd(model, 0.02)
    training.steps, training.batch = 200, 16 if architecture == "gpt" else 64
    return training


def _label_noise(architecture: str, present: bool, seed: int) -> Training:
    model = _model(architecture)
    x, true = digit_images(512, seed)
    adam = architecture == "cnn"
    return Training(
        model=model,
        inputs=x,
        targets=_flipped(true, 0.3 if present else 0.0, CLASSES, seed),
        true_targets=true,
        optimizer=torch.optim.Adam(model.parameters(), lr=2e-3) if adam else _sgd(model, 0.02),
        criterion=nn.CrossEntropyLoss(),
        steps={"mlp": 100, "cnn": 60, "norm": 24}[architecture],
        batch=64,
    )


def _memorising(architecture: str, present: bool, seed: int) -> Training:
    model = TinyGPT(64) if architecture == "gpt" else multilayer(128) if architecture == "mlp" else normalised()
    x, true = text_windows(64, seed) if architecture == "gpt" else digit_images(256, seed)
    short, long = {"mlp": (40, 1000), "norm": (8, 400), "gpt": (12, 500)}[architecture]
    return Training(
        model=model,
        inputs=x,
        targets=_flipped(true, 0.2, VOCABULARY if architecture == "gpt" else CLASSES, seed),
        true_targets=true,
        optimizer=_sgd(model, 0.05)
        if architecture == "norm"
        else torch.optim.Adam(model.parameters(), lr=3e-3 if architecture == "gpt" else 1e-3),
        criterion=next_token_loss if architecture == "gpt" else nn.CrossEntropyLoss(),
        steps=long if present else short,
        batch=None if architecture == "gpt" else 64,
        flipped_known=True,
    )


_RECIPES: dict[str, Callable[[str, bool, int], Training]] = {
    "lazy": _lazy,
    "rich": _rich,
    "unstable": _unstable,
    "dead units": _dead,
    "collapsed": _collapsed,
    "clipping": _clipping,
    "weight decay": _weight_decay,
    "tied weights": _tied_weights,
    "label noise": _label_noise,
    "memorising": _memorising,
}


def _model(architecture: str) -> nn.Module:
    return {"mlp": multilayer, "cnn": convolutions, "norm": normalised, "gpt": TinyGPT}[architecture]()


def _full_batch(model: nn.Module, architecture: str, seed: int) -> Training:
    """Return training by SGD on all examples; the learning rate is a placeholder."""
    language = architecture == "gpt"
    x, y = text_windows(32, seed) if language else digit_images(256, seed)
    return Training(
        model=model,
        inputs=x,
        targets=y,
        true_targets=y,
        optimizer=_sgd(model, 0.01),
        criterion=next_token_loss if language else nn.CrossEntropyLoss(),
        steps=300,
    )


def _multiplied(architecture: str, seed: int, factor: float, relative_rate: float) -> Training:
    """Return full-batch training of a network whose outputs are multiplied, and whose readout starts at zero."""
    model = _model(architecture)
    readout = [each for each in model.modules() if isinstance(each, nn.Linear)][-1]
    for each in readout.parameters():
        nn.init.zeros_(each)
    return _at_limit(_full_batch(nn.Sequential(model, Multiply(factor)), architecture, seed), relative_rate)


def _at_limit(training: Training, relative_rate: float) -> Training:
    """Return SGD with momentum at a multiple of its stability limit 2(1 + β)/λ, for the initial sharpness λ."""
    rate = relative_rate * 2 * (1 + MOMENTUM) / sharpness(training)
    training.optimizer = _sgd(training.model, rate)
    return training


def _sgd(model: nn.Module, rate: float, *, weight_decay: float = 0.0) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=rate, momentum=MOMENTUM, weight_decay=weight_decay)


def _flipped(labels: torch.Tensor, share: float, classes: int, seed: int) -> torch.Tensor:
    """Return labels of which a share of examples has other classes; all positions of such an example change."""
    draw = np.random.default_rng(seed + 1)
    chosen = draw.permutation(len(labels))[: round(share * len(labels))]
    shift = np.zeros(labels.shape, int)
    shift[chosen] = draw.integers(1, classes, size=shift[chosen].shape)
    return (labels + torch.tensor(shift)) % classes


def _clip_each(model: nn.Module) -> None:
    for each in model.parameters():
        nn.utils.clip_grad_norm_([each], 0.02)


def _clip_all(model: nn.Module) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), 0.1)
