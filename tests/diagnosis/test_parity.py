"""All probes give the same numbers in NumPy, JAX and PyTorch, on the same weights and data."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from snapshots import forward, snapshot

from dynascope import Recorder
from dynascope.diagnosis import probes_of
from dynascope.diagnosis.snapshot import Initial, MicroBatches

torch = pytest.importorskip("torch")

X = np.random.default_rng(3).normal(size=(24, 4))
LABELS = np.arange(24) % 3
LAYERS, STEPS, BATCH, KERNEL, RATE = ("0", "2", "4"), 3, 8, 10, 0.3
FLIPPED = [0, 3, 7, 9]
OPTIONS = {
    "preset": "full",
    "schedule": 1,
    "max_overhead": None,
    "kernel_examples": KERNEL,
    "batch_size": BATCH,
    "flipped": FLIPPED,
    "strict": True,
    "verbose": False,
}
TIMES = {"seconds", "probe_seconds"}
pytestmark = pytest.mark.slow


def arrays(tensors: Any) -> dict[str, np.ndarray]:
    return {name: each.detach().numpy().copy() for name, each in tensors.items()}


def as_tree(weights: dict[str, np.ndarray]) -> dict[str, Any]:
    """Weights of shape (p, c), as for x @ W."""
    return {name: jnp.asarray(each.T) for name, each in weights.items()}


def apply(params: Any, x: Any) -> Any:
    one = jax.nn.relu(x @ params["0.weight"] + params["0.bias"])
    two = jax.nn.relu(one @ params["2.weight"] + params["2.bias"])
    return two @ params["4.weight"] + params["4.bias"], {"1": one, "3": two}


def criterion(outputs: Any, labels: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(outputs), labels[:, None], axis=1).mean()


@functools.cache
def runs(folder: str, bits: int) -> tuple[xr.Dataset, xr.Dataset, list[dict[str, np.ndarray]], list[Any]]:
    """Record one run with PyTorch and JAX; return both records, the weights at all steps, and the gradients."""
    from dynascope.torch import Recorder as TorchRecorder

    torch.manual_seed(0)
    kind = torch.float64 if bits == 64 else torch.float32
    linear, relu = torch.nn.Linear, torch.nn.ReLU
    model = torch.nn.Sequential(linear(4, 7), relu(), linear(7, 6), relu(), linear(6, 3)).to(kind)
    x, y = torch.tensor(X, dtype=kind), torch.tensor(LABELS)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    cross_entropy = torch.nn.functional.cross_entropy
    weights, gradients = [arrays(dict(model.named_parameters()))], []
    with jax.enable_x64(bits == 64):
        one = TorchRecorder(
            model,
            f"{folder}/torch{bits}.zarr",
            reference=(x, y),
            optimizer=optimizer,
            criterion=cross_entropy,
            layers=["1"],
            **OPTIONS,
        )
        two = Recorder(
            apply,
            as_tree(weights[0]),
            f"{folder}/jax{bits}.zarr",
            reference=(x.numpy(), LABELS),
            criterion=criterion,
            readout="4.weight",
            readout_bias="4.bias",
            **OPTIONS,
        )
        with one, two:
            for _ in range(STEPS):
                parts = []
                for rows in (slice(0, 12), slice(12, 24)):
                    total = {
                        name: each.grad.numpy().copy()
                        for name, each in model.named_parameters()
                        if each.grad is not None
                    }
                    loss = cross_entropy(model(x[rows]), y[rows]) / 2
                    loss.backward()
                    one.micro_batch(12)
                    now = arrays({name: each.grad for name, each in model.named_parameters()})
                    parts.append({name: 2 * (each - total.get(name, 0)) for name, each in now.items()})
                    two.micro_batch(as_tree(parts[-1]), 12)
                optimizer.step()
                weights.append(arrays(dict(model.named_parameters())))
                gradients.append((now, parts))
                one.step(loss=loss)
                two.step(as_tree(weights[-1]), loss=loss.item(), gradients=as_tree(now), learning_rate=RATE)
                optimizer.zero_grad()
            return one.read(), two.read(), weights, gradients


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("parity"))


@pytest.mark.parametrize(("bits", "tolerance"), [(32, 1e-5), (64, 1e-10)])
def test_jax_and_pytorch_record_the_same_numbers(folder, bits, tolerance):
    one, two, _, _ = runs(folder, bits)
    two = two.sel({name: one[name].values for name in ("parameter", "matrix")})
    assert {*one.data_vars} == {*two.data_vars}
    assert one["probe"].values.tolist() == two["probe"].values.tolist() == [p.name for p in probes_of("full")]
    for name in {*one.data_vars} - TIMES:
        first, second = (run[name].values[1:] for run in (one, two))
        assert np.isfinite(first.astype(float)).any(), name
        np.testing.assert_allclose(second * 1.0, first * 1.0, rtol=tolerance, atol=tolerance, err_msg=str(name))


def numpy_forward(
    weights: dict[str, np.ndarray], x: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """Outputs, pre-activations and inputs of the layers."""
    h, inputs, preactivations = x, [], []
    for k, name in enumerate(LAYERS):
        inputs.append(h)
        z = h @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]
        preactivations.append(z)
        h = np.maximum(z, 0) if k < 2 else z
    return h, preactivations[:2], inputs


def jacobian(weights: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """∂f_a(x_i)/∂θ by backpropagation, shape (n, c, P), in the order of the layers."""
    outputs, z, inputs = numpy_forward(weights, x)
    delta = np.broadcast_to(np.eye(outputs.shape[1]), (len(x), outputs.shape[1], outputs.shape[1]))
    parts = []
    for k in (2, 1, 0):
        parts += [delta, np.einsum("iah,ij->iahj", delta, inputs[k])]
        if k:
            delta = (delta @ weights[f"{LAYERS[k]}.weight"]) * (z[k - 1] > 0)[:, None, :]
    return np.concatenate([each.reshape(*each.shape[:2], -1) for each in reversed(parts)], axis=2)


def loss_gradient(weights: dict[str, np.ndarray], x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    outputs = numpy_forward(weights, x)[0]
    p = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    residual = p / p.sum(axis=1, keepdims=True) - np.eye(3)[labels]
    return np.einsum("ia,iap->p", residual, jacobian(weights, x)) / len(x)


def hessian(weights: dict[str, np.ndarray], x: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The Hessian of the loss, as a dense matrix in double precision."""
    names = [f"{layer}.{kind}" for layer in LAYERS for kind in ("weight", "bias")]
    sizes = np.cumsum([weights[name].size for name in names])[:-1]
    flat = np.concatenate([weights[name].ravel() for name in names])

    def loss(vector: Any) -> Any:
        parts = jnp.split(vector, sizes)
        tree = {name: each.reshape(weights[name].shape).T for name, each in zip(names, parts, strict=True)}
        return criterion(apply(tree, x)[0], labels)

    with jax.enable_x64(True):
        return np.asarray(jax.hessian(loss)(jnp.asarray(flat)))


def numpy_kernels(weights: dict[str, np.ndarray], x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    found = jacobian(weights, x[:KERNEL])
    mean = found.sum(axis=1) / found.shape[1] ** 0.5
    return mean @ mean.T, np.einsum("iap,jap->ij", found, found) / found.shape[1]


def squared(tree: dict[str, np.ndarray]) -> float:
    return float(sum(np.sum(each.astype(float) ** 2) for each in tree.values()))


def numpy_batches(weights: dict[str, np.ndarray], x: np.ndarray) -> tuple[MicroBatches, list[float]]:
    gradients, along = [], []
    for start in range(0, len(x), BATCH):
        rows = slice(start, start + BATCH)
        gradients.append(loss_gradient(weights, x[rows], LABELS[rows]))
        along.append(float(gradients[-1] @ hessian(weights, x[rows], LABELS[rows]) @ gradients[-1]))
    mean = np.mean(gradients, axis=0)
    return MicroBatches(tuple(float(g @ g) for g in gradients), float(mean @ mean), BATCH), along


@pytest.mark.parametrize(("bits", "tolerance"), [(32, 1e-5), (64, 1e-10)])
def test_numpy_finds_the_numbers_of_pytorch(folder, bits, tolerance):
    x = X.astype(f"f{bits // 8}").astype(float)
    record, _, weights, gradients = runs(folder, bits)
    weights = [{name: each.astype(float) for name, each in tree.items()} for tree in weights]
    start, now = weights[0], weights[STEPS]
    outputs, z, inputs = numpy_forward(now, x)
    names = record["activation"].values
    final, parts = gradients[-1]
    mean = {name: (parts[0][name].astype(float) + parts[1][name]) / 2 for name in final}
    seen = snapshot(
        now,
        initial=Initial(
            start,
            dict(zip(names, (each > 0 for each in numpy_forward(start, x)[1]), strict=True)),
            *numpy_kernels(start, x),
        ),
        before=weights[STEPS - 1],
        gradients=final,
        targets=LABELS,
        flipped=np.isin(np.arange(24), FLIPPED),
        compute_loss=lambda raw: np.mean(np.log(np.exp(raw).sum(1)) - raw[np.arange(24), LABELS]),
        forward=forward(
            outputs,
            raw_outputs=outputs,
            preactivations=dict(zip(names, z, strict=True)),
            features=dict(zip(record["layer"].values, inputs[1:], strict=True)),
            readout=record["layer"].values[1],
            readout_weight=now["4.weight"],
            readout_bias=now["4.bias"],
        ),
        compute_kernel=lambda: numpy_kernels(now, x)[0],
        compute_exact_kernel=lambda: numpy_kernels(now, x)[1],
        compute_curvatures=lambda: np.linalg.eigvalsh(hessian(now, x, LABELS))[::-1][:3],
        compute_batches=lambda: numpy_batches(now, x),
        micro_batches=MicroBatches(tuple(map(squared, parts)), squared(mean), 12),
    )
    compared = set()
    for probe in probes_of("full"):
        for name, (_, value) in probe.measure(seen).items():
            expected = record[name].values[-1]
            assert np.isfinite(expected).any(), name
            np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance, err_msg=name)
            compared.add(name)
    assert compared == {name for probe in probes_of("full") for name in probe.names}
