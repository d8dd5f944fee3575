"""Training on fresh samples of sparse parity, compared with a PyTorch loop and with matrix multiplication.

A ReLU network 37–1000–1 learns five parities of 32 bits by gradient descent in float32, with 4000 new samples per step.
dynascope draws them inside the compiled loop and computes the gradient in micro-batches. The PyTorch loop is a typical
implementation: a `Dataset` that creates each sample with NumPy, a `DataLoader` with batches of 4000, and an optimiser.
A second loop uses a data set that draws whole batches at once. The target refers to the first loop.

The benchmark then compares arithmetic rates. The matrix products of a step need 2n(2dw + 2w) FLOPs for n samples, d
inputs and width w. Their rate over the whole step is compared with the best rate at which this process multiplies
matrices with the shapes of the step. These products use JAX, NumPy or PyTorch, and all samples or a micro-batch. Both
are measured alternately. The rate for square matrices, which products with 37 inputs cannot reach, is printed as a
reference. Run `python benchmarks/parity_stream.py`; `--tiny` runs small sizes in seconds.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import harness
import jax
import jax.numpy as jnp
import numpy as np

from dynascope.networks import MLP
from dynascope.tasks.parity.sparse_parity import SparseParity
from dynascope.training import Batches, Descent, descend

RATE = 0.05
SHARE = 0.7  # target, relative to the rate of matrix multiplication
FASTER = 5.0  # target speed-up over the DataLoader
TURNS = 5
SQUARE = 2048


class Size(NamedTuple):
    """Data, network and batch sizes, and the number of steps."""

    parity: SparseParity
    width: int
    batch: int
    micro_batch: int
    steps: int

    @property
    def flops(self) -> int:
        """FLOPs of the matrix products of a step: inputs times weights and the transposed product, for both layers."""
        return 2 * self.batch * (2 * self.parity.input_dimension * self.width + 2 * self.width)


FULL = Size(SparseParity(), 1000, 4000, 1000, 40)
TINY = Size(SparseParity(skills=2, bits=6), 20, 40, 10, 4)


def main() -> None:
    options = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    options.add_argument("--tiny", action="store_true")
    size = TINY if options.parse_args().tiny else FULL
    torch = harness.torch_or_exit()
    network: MLP = jax.tree.map(lambda w: w.astype(np.float32), MLP((size.parity.input_dimension, size.width, 1)))

    def ours(steps: int = size.steps) -> float:
        record = descend(
            size.parity,
            network,
            Descent(
                learning_rate=RATE, steps=steps, batches=Batches(size.batch, micro_size=size.micro_batch), save=[steps]
            ),
        )
        return float(record["loss"][-1])

    share(torch, size, ours)
    items, batches = (torch_loop(torch, network, size, data) for data in torch_data(torch, size))
    threads = harness.use_best_threads(torch, batches)
    for name, theirs in {"sample by sample": items, "batch by batch": batches}.items():
        print(f"\nPyTorch with a DataLoader, data {name}, threads: {threads}")
        harness.compare("parity_stream", ours, theirs, target=FASTER, repeats=3)


def share(torch: Any, size: Size, ours: Callable[[int], Any]) -> None:
    """Print the rates of the step and of matrix products, measured alternately and without the fixed cost of a run."""
    products = matrix_products(torch, size)
    longer = 5 * size.steps
    steps, rates = [], {name: [] for name in products}
    for turn in range(TURNS + 1):
        step = (seconds(lambda: ours(longer)) - seconds(lambda: ours(size.steps))) / (longer - size.steps)
        found = {name: flops / seconds(product) for name, (product, flops) in products.items()}
        # The first turn compiles.
        if turn:
            steps.append(step)
            for name, rate in found.items():
                rates[name].append(rate)
    best = max(rates, key=lambda name: statistics.median(rates[name]))
    rate, step = statistics.median(rates[best]), statistics.median(steps)
    print(f"a step, data included: {1e3 * step:.2f} ms, {1 / step:.0f} steps/s, {size.flops / step / 1e9:.1f} Gflop/s")
    print(f"matrix products: {rate / 1e9:.1f} Gflop/s ({best})")
    print(f"share: {size.flops / step / rate:.0%} (target: {SHARE:.0%})")
    square = square_products(torch)
    print(f"square matrix products, as a reference: {square / 1e9:.1f} Gflop/s")
    print(f"share of square products: {size.flops / step / square:.0%}")


def matrix_products(torch: Any, size: Size) -> dict[str, tuple[Callable[[], Any], float]]:
    """Return the products x W and xᵀ D of about five steps, with their FLOPs, by name."""
    draw, inputs = np.random.default_rng(0), size.parity.input_dimension
    found = {}
    for rows in (size.batch, size.micro_batch):
        shapes = (rows, inputs), (inputs, size.width), (rows, size.width)
        arrays = [draw.normal(size=shape).astype(np.float32) for shape in shapes]
        places = [np.empty_like(arrays[2]), np.empty_like(arrays[1])]
        times = 5 * size.batch // rows
        into = functools.partial(products_into, times)
        found[f"NumPy, {rows} samples"] = functools.partial(into, np.matmul, *arrays, *places)
        tensors = [torch.tensor(each) for each in (*arrays, *places)]
        found[f"PyTorch, {rows} samples"] = functools.partial(into, torch.matmul, *tensors)
        found[f"JAX, {rows} samples"] = functools.partial(compiled_products, times, *map(jnp.asarray, arrays))
    flops = 4.0 * 5 * size.batch * inputs * size.width
    return {name: (run, flops) for name, run in found.items()}


def square_products(torch: Any) -> float:
    """Return the best rate at which square matrices are multiplied."""
    matrix = np.random.default_rng(0).normal(size=(SQUARE, SQUARE)).astype(np.float32)
    tensor, array = torch.tensor(matrix), jnp.asarray(matrix)
    multiply = jax.jit(jnp.matmul)
    runs: list[Callable[[], Any]] = [
        lambda: np.matmul(matrix, matrix),
        lambda: torch.matmul(tensor, tensor),
        lambda: multiply(array, array).block_until_ready(),
    ]
    return max(2 * SQUARE**3 / statistics.median(seconds(run) for _ in range(TURNS + 1)) for run in runs)


def products_into(times: int, multiply: Callable, x: Any, w: Any, d: Any, forward: Any, backward: Any) -> None:
    for _ in range(times):
        multiply(x, w, out=forward)
        multiply(x.T, d, out=backward)


def compiled_products(times: int, x: Any, w: Any, d: Any) -> None:
    for _ in range(times):
        done = both_products(x, w, d)
    jax.block_until_ready(done)


@jax.jit
def both_products(x: Any, w: Any, d: Any) -> tuple[Any, Any]:
    return x @ w, x.T @ d


def torch_data(torch: Any, size: Size) -> tuple[Any, Any]:
    """Return loaders of fresh samples: one by one, as in a typical `Dataset`, and in whole batches."""
    parity, total = size.parity, size.batch * size.steps

    class Samples(torch.utils.data.Dataset):
        def __init__(self):
            self.draw = np.random.default_rng(0)

        def __len__(self) -> int:
            return total

        def __getitem__(self, index: int) -> tuple[Any, Any]:
            skill = self.draw.choice(parity.skills, p=parity.frequencies)
            bits = self.draw.integers(0, 2, parity.bits)
            inputs = np.zeros(parity.input_dimension, dtype=np.float32)
            inputs[skill] = 1
            inputs[parity.skills :] = bits
            sign = 1 - 2 * (bits[parity.relevant[skill]].sum() % 2)
            return torch.from_numpy(inputs), torch.tensor([parity.target_scale * sign], dtype=torch.float32)

    class Batches(torch.utils.data.IterableDataset):
        def __iter__(self) -> Iterator[tuple[Any, Any]]:
            relevant, frequencies = torch.tensor(parity.relevant), torch.tensor(parity.frequencies)
            for _ in range(size.steps):
                skill = torch.multinomial(frequencies, size.batch, replacement=True)
                bits = torch.randint(0, 2, (size.batch, parity.bits))
                odd = bits.gather(1, relevant[skill]).sum(dim=1, keepdim=True) % 2
                hot = torch.nn.functional.one_hot(skill, parity.skills)
                yield torch.cat([hot, bits], dim=1).float(), parity.target_scale * (1 - 2 * odd).float()

    loader = torch.utils.data.DataLoader
    return loader(Samples(), batch_size=size.batch), loader(Batches(), batch_size=None)


def torch_loop(torch: Any, network: MLP, size: Size, loader: Any) -> Callable[[], float]:
    """Return a function that trains from the same weights as dynascope, for as many steps."""

    def run() -> float:
        module = torch.nn.Sequential(
            torch.nn.Linear(size.parity.input_dimension, size.width), torch.nn.ReLU(), torch.nn.Linear(size.width, 1)
        )
        with torch.no_grad():
            for layer, weights, biases in zip(module[::2], network.weights, network.biases, strict=True):
                layer.weight.copy_(torch.tensor(np.asarray(weights).T))
                layer.bias.copy_(torch.tensor(np.asarray(biases)))
        optimizer = torch.optim.SGD(module.parameters(), lr=RATE)
        loss = torch.zeros(())
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = 0.5 * ((module(inputs) - targets) ** 2).mean()
            loss.backward()
            optimizer.step()
        return loss.item()

    return run


def seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
