"""Gradient flow of a 20×20×10 linear network from scale 1e-4 to loss 1e-20, compared with a PyTorch loop.

The data are whitened with exact moments, so that the loss can vanish. The singular values of the target map decrease as
k⁻², like the spectra of natural data. The loop is a typical implementation: SGD in float64 at 90 % of the largest
stable step (the curvature at the solution is twice the largest singular value). Run `python benchmarks/linear_flow.py`.
"""

from __future__ import annotations

import harness
import numpy as np
import xarray as xr

from dynascope.flows import GradientFlow, Solver, gradient_flow
from dynascope.networks import TwoLayer
from dynascope.tasks import Task, regression

SCALE, LOSS = 1e-4, 1e-20
STRENGTHS = 1.0 / np.arange(1, 11) ** 2


def main() -> None:
    torch = harness.torch_or_exit()
    task, network = whitened_task(), TwoLayer(20, 20, 10)
    x, y = torch.tensor(task.inputs), torch.tensor(task.targets)
    rate = 0.9 / STRENGTHS[0]

    def ours(save: int = 200) -> xr.Dataset:
        return flow(network, task, save=save, solver=Solver("stabilised", relative_tolerance=2e-2))

    def theirs() -> np.ndarray:
        first = torch.tensor(SCALE * network.first, requires_grad=True)
        second = torch.tensor(SCALE * network.second, requires_grad=True)
        optimizer = torch.optim.SGD([first, second], lr=rate)
        losses = []
        while not losses or losses[-1] > LOSS:
            optimizer.zero_grad()
            loss = 0.5 * ((x @ first @ second - y) ** 2).sum(dim=1).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return np.array(losses)

    threads = harness.use_best_threads(torch, theirs)
    _, losses = harness.compare("linear_flow", ours, theirs, target=20.0)
    exact = passages(flow(network, task, save=20_000, solver=Solver(relative_tolerance=1e-9)))
    descent = xr.Dataset({"loss": ("time", losses)}, {"time": rate * np.arange(len(losses))})
    print(
        "largest relative error of the times at which the loss passes a level: "
        f"ours {error(passages(ours(20_000)), exact):.1%}, "
        f"theirs {error(passages(descent), exact):.1%} ({len(losses)} steps, threads: {threads})"
    )


def whitened_task() -> Task:
    left, _, right = np.linalg.svd(np.random.default_rng(0).normal(size=(20, 10)), full_matrices=False)
    target_map = left * STRENGTHS @ right
    return regression(samples=30, input_covariance=np.ones(20), target_map=target_map, exact_moments=True)


def flow(network: TwoLayer, task: Task, **options) -> xr.Dataset:
    return gradient_flow(task, network, GradientFlow(duration=3000.0, loss_target=LOSS, **options), scale=SCALE)


def passages(record: xr.Dataset) -> np.ndarray:
    levels = np.linspace(0.9, 0.001, 50) * float(record["loss"][0])
    return np.interp(-levels, -record["loss"].to_numpy(), record["time"].to_numpy())


def error(times: np.ndarray, exact: np.ndarray) -> float:
    return float(np.max(np.abs(times / exact - 1)))


if __name__ == "__main__":
    main()
