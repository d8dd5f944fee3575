"""Gradient descent of 256 two-layer ReLU networks of width 50 on 50 samples, compared with `torch.func.vmap`.

Both sides start from the same weights, take the same full-batch steps in float64, and record the loss of every network
at the same steps. Run `python benchmarks/relu_ensemble.py`.
"""

from __future__ import annotations

import harness
import numpy as np

from dynascope.networks import TwoLayer
from dynascope.tasks import Task
from dynascope.training import Descent, descend

MEMBERS, WIDTH, SAMPLES, INPUTS = 256, 50, 50, 10
STEPS, RATE = 300, 0.05
RECORDED = np.arange(0, STEPS + 1, 50)


def main() -> None:
    torch = harness.torch_or_exit()
    draw = np.random.default_rng(0)
    inputs = draw.normal(size=(SAMPLES, INPUTS))
    task = Task(inputs, np.sin(inputs[:, :1]) + 0.5 * inputs[:, 1:2], name="smooth function")
    networks = [TwoLayer(INPUTS, WIDTH, 1, activation="relu", seed=seed) for seed in range(MEMBERS)]
    x, y = torch.tensor(task.inputs), torch.tensor(task.targets)
    start = (
        torch.tensor(np.stack([network.first for network in networks])),
        torch.tensor(np.stack([network.second for network in networks])),
    )

    def loss(weights):
        first, second = weights
        return 0.5 * ((torch.relu(x @ first) @ second - y) ** 2).sum(dim=1).mean()

    gradient_and_loss = torch.func.vmap(torch.func.grad_and_value(loss))

    def ours() -> np.ndarray:
        record = descend(task, networks, Descent(learning_rate=RATE, steps=STEPS, save=RECORDED))
        return record["loss"].to_numpy()

    def theirs() -> np.ndarray:
        weights, losses = start, []
        for step in range(STEPS + 1):
            gradients, values = gradient_and_loss(weights)
            if step in RECORDED:
                losses.append(values.numpy())
            weights = tuple(weight - RATE * gradient for weight, gradient in zip(weights, gradients, strict=True))
        return np.stack(losses, axis=1)

    threads = harness.use_best_threads(torch, theirs)
    mine, other = harness.compare("relu_ensemble", ours, theirs, target=4.0)
    print(f"largest relative difference of the losses: {np.max(np.abs(mine / other - 1)):.1e} (threads: {threads})")


if __name__ == "__main__":
    main()
