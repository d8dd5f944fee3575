"""Gradient flow of a 20×20×10 linear network from scale 1e-4 to loss 1e-20, against a loop in PyTorch.

The data are whitened with exact moments, so that the loss can vanish, and the target map has the singular values k⁻²
of natural data. The loop is what one would write: SGD with the same weights, at nine tenths of the largest stable
step (the curvature at the solution is twice the largest singular value). Run as `python benchmarks/linear_flow.py`.
"""

from __future__ import annotations

import numpy as np
from harness import compare, torch_or_exit

from dynascope.flows import gradient_flow
from dynascope.networks import TwoLayer
from dynascope.tasks import regression

SCALE, LOSS = 1e-4, 1e-20
STRENGTHS = 1.0 / np.arange(1, 11) ** 2


def main() -> None:
    torch = torch_or_exit()
    draw = np.random.default_rng(0)
    left, _, right = np.linalg.svd(draw.normal(size=(20, 10)), full_matrices=False)
    task = regression(
        samples=30, input_covariance=np.ones(20), target_map=left * STRENGTHS @ right, exact_moments=True
    )
    network = TwoLayer(20, 20, 10)
    x, y = torch.tensor(task.inputs), torch.tensor(task.targets)

    def ours():
        return gradient_flow(
            network,
            task,
            scale=SCALE,
            duration=1e4,
            loss_target=LOSS,
            solver="stabilised",
            relative_tolerance=1e-4,
            absolute_tolerance=1e-10,
        )

    def theirs():
        first = torch.tensor(SCALE * network.first, requires_grad=True)
        second = torch.tensor(SCALE * network.second, requires_grad=True)
        rate = 0.9 / STRENGTHS[0]
        optimizer = torch.optim.SGD([first, second], lr=rate)
        losses = []
        while not losses or losses[-1] > LOSS:
            optimizer.zero_grad()
            loss = 0.5 * ((x @ first @ second - y) ** 2).sum(dim=1).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return rate * np.arange(len(losses)), np.array(losses)

    record, (their_times, their_losses) = compare("linear_flow", ours, theirs, target=20.0)

    exact = gradient_flow(network, task, scale=SCALE, duration=1e4, save=20_000, relative_tolerance=1e-10)
    def passage(times: np.ndarray, losses: np.ndarray) -> float:
        return float(np.interp(-np.log(LEVEL), -np.log(losses), times))
    print(len(their_losses), float(record.stop_time), their_times[-1], float(record.loss[-1]))


if __name__ == "__main__":
    main()
