"""Labels of `regime` on 40 set-ups, compared with separate training runs in PyTorch.

The set-ups are drawn at random with a fixed seed: data, depth, width, activation, biases, scales of weights and
outputs, and learning rates, also of single layers. `regime` answers at its default settings. The reference trains each
network at α and 2α by plain gradient descent in PyTorch, without code of the library, and applies the definition.

Run `python benchmarks/lazy_or_rich.py [--file FILE] [--only NUMBER …]`. Set-ups that are already in the file are
skipped. At the end, it writes the confusion table.
"""

from __future__ import annotations

import argparse
import collections
from pathlib import Path
from typing import Any

import numpy as np
import torch
from resumable import keep, rows

from dynascope import regime
from dynascope.networks import MLP

FILE = Path(__file__).parent.parent / "docs" / "concepts" / "lazy_or_rich.csv"
COLUMNS = (
    "setup", "data", "network", "scale", "output_scale", "rates", "label", "decided_by", "distance", "reference",
    "reference_distance", "reference_ratio",
)  # fmt: skip
SETUPS, STEPS = 40, 10_000
SLOW = 0.1  # learning rate of a flow, relative to the rate at which descent becomes unstable at the start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", type=int, nargs="*")
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    known = {row["setup"] for row in rows(options.file)}
    for number, setup in enumerate(setups()):
        if str(number) in known or (options.only and number not in options.only):
            continue
        keep(options.file, {"setup": number, **measured(**setup)}, COLUMNS)
    confusion(rows(options.file), options.file.with_name(f"{options.file.stem}_labels.csv"))


def confusion(found: list[dict[str, str]], file: Path) -> None:
    """Write and print how often each label of the reference (rows) has each label of `regime` (columns)."""
    counts = collections.Counter((row["reference"], row["label"]) for row in found)
    labels = sorted({label for pair in counts for label in pair})
    lines = [["reference", *labels]] + [[one, *(counts[one, other] for other in labels)] for one in labels]
    text = "\n".join(",".join(map(str, line)) for line in lines) + "\n"
    file.write_text(text, "utf-8")
    print(text)


def setups() -> list[dict[str, Any]]:
    """Return the set-ups."""
    draw = np.random.default_rng(20261128)
    found = []
    for _ in range(SETUPS):
        found.append(
            {
                "data": draw.choice(["product", "linear map", "random labels", "teacher"]),
                "seed": int(draw.integers(1000)),
                "layers": int(draw.integers(2, 5)),
                "width": int(draw.choice([20, 50, 100, 200])),
                "activation": str(draw.choice(["relu", "tanh", "linear"])),
                "bias": bool(draw.integers(2)),
                "scale": float(draw.choice([0.5, 1.0, 1.0, 2.0])),
                "output_scale": float(draw.choice([0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0])),
                # Relative to the rate at which descent becomes unstable at the start; None is gradient flow.
                "speed": draw.choice(np.array([None, None, None, 0.1, 0.5, 2.5])),
                "first_layer": float(draw.choice([1.0, 1.0, 0.1, 10.0])),
            }
        )
    return found


def data_of(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return inputs and targets."""
    draw = np.random.default_rng(seed)
    n, d = {"product": (20, 5), "linear map": (30, 8), "random labels": (16, 10), "teacher": (40, 6)}[kind]
    x = draw.normal(size=(n, d))
    if kind == "product":
        return x, np.sign(x[:, :1] * x[:, 1:2])
    if kind == "linear map":
        return x, x @ draw.normal(size=(d, 2)) / d**0.5
    if kind == "random labels":
        return x, draw.choice([-1.0, 1.0], size=(n, 1))
    return x, np.maximum(x @ draw.normal(size=(d, 3)), 0) @ draw.normal(size=(3, 1)) / d**0.5


def measured(data: str, seed: int, layers: int, width: int, activation: Any, bias: bool, **settings: Any) -> dict:
    """Return the answer of `regime` and the reference."""
    x, y = data_of(data, seed)
    network = MLP(
        (x.shape[1], *[width] * (layers - 1), y.shape[1]),
        activation=activation,
        bias=bias,
        scale=settings["scale"],
        seed=seed,
    )
    parameters = [torch.tensor(each, requires_grad=True) for each in (*network.weights, *network.biases)]
    inputs, targets = torch.tensor(x), torch.tensor(y)
    reference = Reference(parameters, layers, activation, inputs)
    factors = [settings["first_layer"] if layer == 0 else 1.0 for layer in range(layers)]
    critical = reference.critical_rate(factors)
    speed, alpha = settings["speed"], settings["output_scale"]
    is_flow = speed is None
    rates = [critical * (SLOW if is_flow else speed) * factor for factor in factors]
    given = None if is_flow and settings["first_layer"] == 1 else rates
    answer = regime((x, y), network, output_scale=alpha, learning_rate=given, turns=False, seconds=300)
    offset = reference.outputs(parameters).detach()
    one, two = (
        reference.train(offset + targets / (alpha * factor), rates, safe=given is None) for factor in (1.0, 2.0)
    )
    return {
        "data": data,
        "network": f"{layers} layers, width {width}, {activation}" + ", biases" * bias,
        "scale": settings["scale"],
        "output_scale": alpha,
        "rates": "flow" if given is None else f"{speed or SLOW:g} of critical, first layer × {factors[0]:g}",
        "label": answer.label,
        "decided_by": answer.theory or "training",
        "distance": f"{answer.kernel_distance:.3g}",
        "reference": label_of(one, two),
        "reference_distance": f"{one[0]:.3g}",
        "reference_ratio": f"{one[0] / max(two[0], 1e-300):.3g}",
    }


class Reference:
    """A network in PyTorch, trained by plain gradient descent."""

    def __init__(self, parameters: list[torch.Tensor], layers: int, activation: str, inputs: torch.Tensor):
        self.parameters, self.layers, self.inputs = parameters, layers, inputs
        self.activation = {"relu": torch.relu, "tanh": torch.tanh, "linear": lambda z: z}[activation]

    def outputs(self, parameters: Any) -> torch.Tensor:
        """Compute the outputs."""
        h = self.inputs
        for layer in range(self.layers):
            h = h @ parameters[layer] + (parameters[self.layers + layer] if len(parameters) > self.layers else 0)
            h = self.activation(h) if layer < self.layers - 1 else h
        return h

    def kernel(self, parameters: list[torch.Tensor], factors: list[float]) -> torch.Tensor:
        """Compute the NTK with learning rates of the layers, shape (n c, n c)."""
        jacobian = torch.func.jacrev(self.outputs)(tuple(each.detach() for each in parameters))
        parts = [each.flatten(2).flatten(0, 1) for each in jacobian]
        return sum(factors[number % self.layers] * part @ part.T for number, part in enumerate(parts))  # type: ignore

    def critical_rate(self, factors: list[float]) -> float:
        """Return the learning rate at which descent becomes unstable at the start."""
        return 2 * len(self.inputs) / float(torch.linalg.eigvalsh(self.kernel(self.parameters, factors))[-1].detach())

    def train(self, targets: torch.Tensor, rates: list[float], *, safe: bool) -> tuple[float, float, float]:
        """Return the kernel distances at 90 % and at the end, and the growth of the loss.

        With `safe`, a step that raises the loss is taken back and repeated at half the learning rates, so that descent
        approximates the flow.
        """
        parameters: Any = [each.detach().clone().requires_grad_() for each in self.parameters]
        losses, kept, slower, before, gradients = [], [], 1.0, [], ()
        for _ in range(STEPS):
            loss = ((self.outputs(parameters) - targets) ** 2).sum() / (2 * len(targets))
            value = float(loss.detach())
            if safe and losses and not value <= losses[-1]:
                parameters, slower = before, slower / 2
            else:
                losses.append(value)
                before = [each.detach().clone() for each in parameters]
                if not np.isfinite(value) or value > 4 * losses[0]:
                    return float("nan"), float("nan"), float("inf")
                if not kept or value < kept[-1][0] * 0.99:
                    kept.append((value, before))
                if value <= 1e-3 * losses[0]:
                    break
                gradients = torch.autograd.grad(loss, parameters)
            parameters = [
                (each.detach() - slower * rates[number % self.layers] * gradient).requires_grad_()
                for number, (each, gradient) in enumerate(zip(before, gradients, strict=True))
            ]
        floor = min(losses) if min(losses) > 0.01 * losses[0] else 0.0
        fitted = next(weights for loss, weights in kept if loss <= floor + 0.1 * (losses[0] - floor))
        start = self.kernel(self.parameters, rates)
        at_fit, at_end = (float(distance(start, self.kernel(each, rates)).detach()) for each in (fitted, before))
        return at_fit, at_end, max(losses) / losses[0]


def distance(kernel: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    """Compute S."""
    return ((kernel / kernel.norm() - other / other.norm()) ** 2).sum() / 2


def label_of(one: tuple[float, float, float], two: tuple[float, float, float]) -> str:
    """Apply the definition."""
    if one[2] > 4:
        return "unstable"
    if one[0] >= 0.05 and one[0] < 2 * two[0]:
        return "rich"
    if one[1] >= 0.05 and one[1] < 2 * two[1] and one[0] < one[1] / 3:
        return "delayed rich"
    if one[0] <= 0.002 or (one[0] <= 0.02 and one[0] >= 1.5 * two[0]):
        return "lazy"
    return "undecided"


if __name__ == "__main__":
    main()
