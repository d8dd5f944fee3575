"""Cost of recording a PyTorch training run, as a share of the training time.

A network like ResNet-18 (20 convolutions with batch norm, width 16) trains on the 8 × 8 digits with batches of 128.
Each variant trains its own copy, and the variants take turns every ten steps, so that all of them see the same machine.
The recorders have their default schedule, without the limit on their overhead. For comparison, *histograms* computes a
histogram of each weight and each gradient in the same steps, as loggers do. Measured steps become rarer as a run goes
on, so the share is given after a third of the steps and after all. The first snapshot, which also sets up the probes,
is listed separately.

Run `python benchmarks/recorder_overhead.py [--file FILE] [--steps STEPS]`.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from dynascope import digits
from dynascope.diagnosis import LogSpaced
from dynascope.torch import Recorder

PATH = Path(__file__).parents[1] / "docs" / "how-to" / "recorder_overhead.csv"
WIDTH, BATCH, REFERENCE, TURN = 16, 128, 128, 10
VARIANTS = ("plain", "light", "standard", "charges", "histograms")


class Block(nn.Module):
    """Two convolutions with a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int):
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(outputs), nn.BatchNorm2d(outputs)])
        short = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity() if inputs == outputs and stride == 1 else short

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return relu(f(x) + x)."""
        hidden = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(hidden)) + self.shortcut(x))


def resnet() -> nn.Module:
    """Return a network with the 18 layers of ResNet-18 for small grey images."""
    widths = [WIDTH, WIDTH, 2 * WIDTH, 4 * WIDTH, 8 * WIDTH]
    blocks = [
        block
        for k, (inputs, outputs) in enumerate(itertools.pairwise(widths))
        for block in (Block(inputs, outputs, 1 if k == 0 else 2), Block(outputs, outputs, 1))
    ]
    stem = nn.Conv2d(1, WIDTH, 3, 1, 1, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU()
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--file", type=Path, default=PATH)
    parser.add_argument("--steps", type=int, default=3000)
    arguments = parser.parse_args()
    data = digits()
    images = torch.tensor(data.inputs, dtype=torch.float32).reshape(-1, 1, 8, 8)
    labels = torch.tensor(data.targets.argmax(axis=1))
    with tempfile.TemporaryDirectory() as folder:
        runs = {name: Run(name, images, labels, Path(folder)) for name in VARIANTS}
        parts = arguments.steps // 3, arguments.steps
        shares = {}
        for start in range(0, arguments.steps, TURN):
            for run in runs.values():
                run.train(start, min(TURN, arguments.steps - start))
            if start < parts[0]:
                shares = {name: run.seconds / runs["plain"].seconds - 1 for name, run in runs.items()}
    with arguments.file.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["variant", "seconds per step", *(f"share after {steps} steps" for steps in parts), "first snapshot, s"]
        )
        for name, run in runs.items():
            row = [name, f"{run.seconds / arguments.steps:.3f}", f"{shares[name]:.1%}"]
            row += [f"{run.seconds / runs['plain'].seconds - 1:.1%}", f"{run.set_up:.1f}"]
            writer.writerow(row)
            print(*row)


class Run:
    """One variant of the training."""

    def __init__(self, name: str, images: torch.Tensor, labels: torch.Tensor, folder: Path):
        torch.manual_seed(0)
        self.model, self.images, self.labels, self.seconds = resnet(), images, labels, 0.0
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.02, momentum=0.9)
        self.generator = torch.Generator().manual_seed(0)
        started = time.perf_counter()
        self.observe = self._observer(name, folder / f"{name}.zarr")
        self.set_up = time.perf_counter() - started

    def train(self, start: int, steps: int) -> None:
        """Train for some steps, and add their duration."""
        started = time.perf_counter()
        for step in range(start + 1, start + steps + 1):
            rows = torch.randint(len(self.images), (BATCH,), generator=self.generator)
            loss = functional.cross_entropy(self.model(self.images[rows]), self.labels[rows])
            loss.backward()
            self.optimizer.step()
            self.observe(step, loss)
            self.optimizer.zero_grad()
        self.seconds += time.perf_counter() - started

    def _observer(self, name: str, path: Path) -> Callable[[int, torch.Tensor], None]:
        if name == "plain":
            return lambda step, loss: None
        if name == "histograms":
            return lambda step, loss: self._histograms() if LogSpaced().due(step, None) else None
        reference = self.images[:REFERENCE], self.labels[:REFERENCE]
        options = {"preset": "light", "charges": True} if name == "charges" else {"preset": name}
        recorder = Recorder(
            self.model, path, reference=reference, optimizer=self.optimizer, max_overhead=None, verbose=False, **options
        )
        return lambda step, loss: recorder.step(loss=loss)

    def _histograms(self) -> None:
        for parameter in self.model.parameters():
            for values in (parameter.detach(), parameter.grad):
                torch.histogram(values.reshape(-1), 64)


if __name__ == "__main__":
    main()
