"""The neural tangent kernel from network structure, compared with contractions of full Jacobians.

The network is a multilayer perceptron with layers 64–512–512–10 on 256 inputs in float32, as a JAX function
("structured") and as a PyTorch module ("module"). The baselines are contracted Jacobians in JAX ("jacobian") and the
recipe of the PyTorch documentation ("torch"; "Neural Tangent Kernels": `jacrev` of `functional_call` under `vmap`,
contracted layer by layer). Each side runs in a separate process, because the peak memory of a process never decreases.
Memory is the increase of this peak, including compilation; it is not measured if a run does not raise the peak.

Further comparisons are the automatic choice against all exact algorithms for two small convolutional networks in JAX,
and convolutional PyTorch modules against the recipe. `python benchmarks/neural_tangent_kernel.py` takes several minutes
and 8 GB of memory.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import harness
import jax
import jax.numpy as jnp
import numpy as np

from dynascope.networks import MLP, Convolutional
from dynascope.probes.kernel import estimate_cost, neural_tangent_kernel

EXAMPLES, WIDTHS = 256, (64, 512, 512, 10)
FASTER, MEMORY, CHOICE = (
    10.0,
    0.1,
    1.3,
)  # targets: ratios of time and memory, and of the choice to the fastest algorithm
EXACT = ("structured", "layerwise", "jacobian", "products")
PEAK_UNIT = 1 if sys.platform == "darwin" else 1024


def main() -> None:
    harness.torch_or_exit()
    sides = {"structured": 5, "module": 5, "jacobian": 1, "torch": 1}
    with tempfile.TemporaryDirectory() as folder:
        found = {name: in_its_own_process(name, repeats, Path(folder)) for name, repeats in sides.items()}
        kernels = {name: np.load(Path(folder) / f"{name}.npy") for name in sides}
    print_table(found, kernels)
    for shape, channels, examples in (((8, 8), (8, 16), 128), ((28, 28), (8, 16), 64)):
        choices(Convolutional(shape, 10, channels=channels), examples)
    convolutional_modules()


def print_table(found: dict[str, dict[str, float]], kernels: dict[str, np.ndarray]) -> None:
    """Print time, memory and largest difference of each side, relative to the structured kernel."""
    ours = found["structured"]
    print(f"{'side':<12} {'seconds':>9} {'megabytes':>10} {'times ours':>11} {'our memory':>13} {'differs by':>11}")
    for name, each in found.items():
        error = np.max(np.abs(kernels[name] - kernels["structured"])) / np.max(np.abs(kernels["structured"]))
        print(
            f"{name:<12} {each['seconds']:>9.3f} {each['bytes'] / 1e6:>10.0f} "
            f"{each['seconds'] / ours['seconds']:>10.1f}x {memory_ratio(ours, each):>13} {error:>11.0e}"
        )
    print(f"targets: at least {FASTER:.0f} times faster, with less than {MEMORY} of the memory of either baseline")
    faster = found["torch"]["seconds"] / found["module"]["seconds"]
    memory = memory_ratio(found["module"], found["torch"])
    print(f"PyTorch module, dynascope compared with the recipe: {faster:.0f} times faster, memory ratio {memory}")


def memory_ratio(one: dict[str, float], other: dict[str, float]) -> str:
    """Return the ratio of two memory increases, if both were measured.

    A run that fits into memory that its process has already used and freed does not raise the peak.
    """
    return f"{one['bytes'] / other['bytes']:.3f}" if one["bytes"] and other["bytes"] else "not measured"


def choices(network: Convolutional, examples: int) -> None:
    """Print the times of all exact algorithms, measured alternately, and of the automatic choice."""
    x = jnp.asarray(np.random.default_rng(0).normal(size=(examples, np.prod(network.image_shape))), dtype=jnp.float32)
    chosen = neural_tangent_kernel(outputs, network, x).algorithm
    names = ("auto", *EXACT)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(4):
        for name in names:
            start = time.perf_counter()
            jax.block_until_ready(neural_tangent_kernel(outputs, network, x, algorithm=name).values)
            if turn:
                taken[name].append(time.perf_counter() - start)
    seconds = {name: statistics.median(each) for name, each in taken.items()}
    costs = estimate_cost(outputs, network, x)
    print(f"\nconvolutional network on {examples} images of {network.image_shape}, automatic choice: {chosen}")
    for name in EXACT:
        print(f"{name:<12} {seconds[name]:>9.3f} s {costs[name].flops / 1e9:>9.2f} Gflop (estimated)")
    ratio = seconds["auto"] / min(seconds[name] for name in EXACT)
    print(f"{'auto':<12} {seconds['auto']:>9.3f} s, {ratio:.2f} times the fastest (target: at most {CHOICE})")


def convolutional_modules() -> None:
    """Compare dynascope and the recipe on PyTorch modules with plain, strided and grouped convolutions."""
    torch = harness.torch_or_exit()
    nn = torch.nn
    heads = {
        "plain": [nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3)],
        "strided": [nn.Conv2d(1, 32, 5, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 3, stride=2)],
        "grouped": [nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, groups=16)],
    }
    torch.manual_seed(0)
    x = torch.randn(64, 1, 28, 28)
    print()
    for name, head in heads.items():
        module = nn.Sequential(*head, nn.ReLU(), nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.LazyLinear(10))
        module(x)
        one, two = harness.compare(name, module_side(module, x), recipe(module, x), target=1.0, repeats=3)
        assert np.max(np.abs(one - two)) < 1e-4 * np.max(np.abs(two))


def outputs(network: MLP | Convolutional, x: Any) -> Any:
    return network(x)


def in_its_own_process(name: str, repeats: int, folder: Path) -> dict[str, float]:
    command = [sys.executable, __file__, name, str(repeats), str(folder / f"{name}.npy")]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])


def one_side(name: str, repeats: int, path: str) -> None:
    network = MLP(WIDTHS, activation="relu")
    x = np.random.default_rng(0).normal(size=(EXAMPLES, WIDTHS[0])).astype(np.float32)
    run = torch_side(name, network, x) if name in ("torch", "module") else ours(network, x, name)
    before = peak()
    kernel = run()
    grown, taken = peak() - before, []
    for _ in range(repeats):
        start = time.perf_counter()
        kernel = run()
        taken.append(time.perf_counter() - start)
    np.save(path, kernel)
    print(json.dumps({"seconds": statistics.median(taken), "bytes": grown}))


def ours(network: MLP, x: np.ndarray, algorithm: str) -> Callable[[], np.ndarray]:
    # Run a small problem first, so that the memory of the library itself does not count.
    neural_tangent_kernel(outputs, MLP((2, 2, 2)), np.ones((2, 2)), algorithm=algorithm)
    return lambda: np.asarray(neural_tangent_kernel(outputs, network, x, algorithm=algorithm, memory=1e11).values)


def torch_side(name: str, network: MLP, x: np.ndarray) -> Callable[[], np.ndarray]:
    torch = harness.torch_or_exit()
    layers: list[Any] = []
    for weight, bias in zip(network.weights, network.biases, strict=True):
        layers += [torch.nn.Linear(*weight.shape), torch.nn.ReLU()]
        layers[-2].weight.data = torch.tensor(weight.T.copy(), dtype=torch.float32)
        layers[-2].bias.data = torch.tensor(bias, dtype=torch.float32)
    module, inputs = torch.nn.Sequential(*layers[:-1]), torch.tensor(x)
    run = (module_side if name == "module" else recipe)(module, inputs)
    # Run a small problem first, so that the memory of the library itself does not count.
    (module_side if name == "module" else recipe)(module, inputs[:2])()
    return run


def module_side(module: Any, inputs: Any) -> Callable[[], np.ndarray]:
    return lambda: neural_tangent_kernel(module, None, inputs, memory=1e11).values.numpy()


def recipe(module: Any, inputs: Any) -> Callable[[], np.ndarray]:
    torch = harness.torch_or_exit()
    params = {name: each.detach() for name, each in module.named_parameters()}

    def single(values: dict[str, Any], example: Any) -> Any:
        return torch.func.functional_call(module, values, (example.unsqueeze(0),)).squeeze(0)

    def jacobians(inputs: Any) -> list[Any]:
        found = torch.func.vmap(torch.func.jacrev(single), (None, 0))(params, inputs)
        return [each.flatten(2) for each in found.values()]

    def contraction(one: Any, two: Any) -> np.ndarray:
        # The recipe computes both Jacobians even if the inputs are equal.
        pairs = zip(jacobians(one), jacobians(two), strict=True)
        parts = torch.stack([torch.einsum("Naf,Mbf->NMab", j, k) for j, k in pairs])
        return parts.sum(0).permute(0, 2, 1, 3).numpy()

    return torch.no_grad()(lambda: contraction(inputs, inputs))


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * PEAK_UNIT


if __name__ == "__main__":
    if len(sys.argv) > 1:
        one_side(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        main()
