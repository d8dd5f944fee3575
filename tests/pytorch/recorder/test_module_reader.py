"""Readers of PyTorch modules: outputs, targets and kernels of models in the forms that people write."""

from __future__ import annotations

import itertools
import random
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
from torch.utils.checkpoint import checkpoint  # noqa: E402

from dynascope.torch.recorder.module_reader import ModuleReader  # noqa: E402

nn, functional = torch.nn, torch.nn.functional
N = 6


class Written(nn.Module):
    """A module whose forward method is a given function of its parts."""

    def __init__(self, body, **parts):
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.body = body

    def forward(self, *args, **named):
        return self.body(self, *args, **named)


class Result(NamedTuple):
    state: Any
    logits: Any


def draw(*shape: int) -> Any:
    torch.manual_seed(1)
    return torch.randn(shape, dtype=torch.float64)


def dense(*sizes: int) -> Any:
    torch.manual_seed(0)
    layers = [each for pair in itertools.pairwise(sizes) for each in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*layers[:-1]).double()


def tied() -> Any:
    torch.manual_seed(0)
    embedding, readout = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
    readout.weight = embedding.weight
    return Written(
        lambda m, tokens: m.readout(functional.gelu(m.embedding(tokens))), embedding=embedding, readout=readout
    )


def checkpointed() -> Any:
    return Written(
        lambda m, x: m.last(checkpoint(m.first, x, use_reentrant=False)), first=dense(3, 5), last=dense(5, 2)
    )


def branching(m: Any, x: Any) -> Any:
    return m.net(x) if x.sum().item() < 1e9 else x


def convolutions() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(16, 2))


TOKENS = torch.arange(N * 3).reshape(N, 3) % 7
# The module, the reference batch, and the shape of the outputs.
CASES: dict[str, tuple[Any, Any, tuple[int, int]]] = {
    "sequential": (dense(3, 5, 2), (draw(N, 3), torch.arange(N) % 2), (N, 2)),
    "inputs alone": (dense(3, 5, 2), draw(N, 3), (N, 2)),
    "arrays": (dense(3, 5, 2), (draw(N, 3).numpy(), np.arange(N) % 2), (N, 2)),
    "tuple": (Written(lambda m, x, y: m.net(x * y), net=dense(3, 2)), ((draw(N, 3), draw(N, 3)), draw(N, 2)), (N, 2)),
    "dictionaries": (
        Written(lambda m, *, x: {"hidden": x, "logits": m.net(x)}, net=dense(3, 2)),
        {"x": draw(N, 3), "labels": torch.arange(N) % 2},
        (N, 2),
    ),
    "named tuple": (Written(lambda m, x: Result(x, m.net(x)), net=dense(3, 2)), draw(N, 3), (N, 2)),
    "first of several": (Written(lambda m, x: (None, m.net(x), x), net=dense(3, 2)), draw(N, 3), (N, 2)),
    "one output": (Written(lambda m, x: m.net(x)[:, 0], net=dense(3, 5, 1)), (draw(N, 3), draw(N)), (N, 1)),
    "tokens with tied weights": (tied(), (TOKENS, TOKENS), (3 * N, 7)),
    "gradient checkpointing": (checkpointed(), draw(N, 3), (N, 2)),
    "no vmap": (Written(branching, net=dense(3, 5, 2)), draw(N, 3), (N, 2)),
    "convolutions": (convolutions().double(), (draw(N, 2, 4, 4), torch.arange(N) % 2), (N, 2)),
    "single precision": (dense(3, 5, 2).float(), draw(N, 3).float(), (N, 2)),
}


def reader_of(model: Any, reference: Any, **options: Any) -> Any:
    kept: dict[str, Any] = {
        "layers": (),
        "selected": lambda name: True,
        "output": None,
        "kernel_examples": 4,
        "memory": 1e9,
        **options,
    }
    return ModuleReader(model, reference, **kept)


def kernel_by_hand(model, inputs, outputs):
    """The Gram matrix of the gradients of the scaled sum of outputs, one example at a time."""
    rows = []
    for k in range(4):
        one = {name: each[k : k + 1] for name, each in inputs.items()} if isinstance(inputs, dict) else None
        one = one or tuple(
            torch.as_tensor(each)[k : k + 1] for each in (inputs if isinstance(inputs, tuple) else (inputs,))
        )
        found = outputs(model(**one) if isinstance(one, dict) else model(*one))
        grads = torch.autograd.grad(found.sum() / found.numel() ** 0.5, list(model.parameters()))
        rows.append(torch.cat([each.flatten() for each in grads]))
    flat = torch.stack(rows)
    return flat @ flat.T


@pytest.mark.parametrize("name", CASES)
def test_outputs_and_kernels_are_those_of_the_module(name):
    model, reference, shape = CASES[name]
    inputs, targets = reference if isinstance(reference, tuple) else (reference, None)
    if isinstance(reference, dict):
        inputs, targets = {"x": reference["x"]}, reference["labels"]
    reader = reader_of(model.train(), reference)
    with reader.unchanged():
        forward, kernel = reader.forward(), reader.kernel()
    model.eval()

    def outputs(found):
        if isinstance(found, dict):
            return found["logits"]
        return getattr(
            found, "logits", next(each for each in found if each is not None) if isinstance(found, tuple) else found
        )

    expected = outputs(
        model(**inputs)
        if isinstance(inputs, dict)
        else model(*map(torch.as_tensor, inputs if isinstance(inputs, tuple) else (inputs,)))
    )
    assert forward.outputs.shape == shape
    torch.testing.assert_close(forward.outputs, expected.reshape(shape))
    torch.testing.assert_close(kernel, kernel_by_hand(model, inputs, outputs))
    assert (
        reader.targets is None
        or len(reader.targets) == shape[0] == torch.as_tensor(targets).numel() // reader.targets[0].numel()
    )


def test_low_precision_is_measured_in_single_precision():
    model = dense(3, 5, 2).bfloat16()
    reader = reader_of(model, (draw(N, 3).bfloat16(), torch.arange(N) % 2))
    with reader.unchanged():
        forward, kernel = reader.forward(), reader.kernel()
    found = [forward.outputs, *forward.features.values(), *forward.preactivations.values()]
    assert {each.dtype for each in found} == {torch.float32}
    assert kernel.shape == (4, 4)


def test_attributes_and_weights_are_those_of_the_moment():
    model = Written(lambda m, x: m.factor * m.net(x), net=dense(3, 2))
    model.factor = 1.0
    inputs = draw(N, 3)
    reader = reader_of(model, inputs)
    model.factor, model.net[0].weight.data = 3.0, 2 * model.net[0].weight.data
    with reader.unchanged():
        torch.testing.assert_close(reader.forward().outputs, model(inputs))


def test_the_reference_batch_is_a_copy():
    x, y = draw(N, 3), torch.arange(N) % 2
    reader = reader_of(dense(3, 2), (x, y))
    before = reader.forward().outputs
    x.zero_()
    y.zero_()
    torch.testing.assert_close(reader.forward().outputs, before)
    assert reader.targets.sum() == N // 2


def test_random_numbers_go_on_after_measurements_that_draw():
    def noisy(m: Any, x: Any) -> Any:
        return m.net(x) + random.random() + np.random.rand() + torch.rand(1)  # noqa: NPY002

    reader = reader_of(Written(noisy, net=dense(3, 2)), draw(N, 3))

    def state() -> list[Any]:
        place: Any = np.random.get_state()  # noqa: NPY002
        return [random.getstate(), str(place[2:]), torch.get_rng_state().tolist()]

    with reader.unchanged():  # type checks draw Python's numbers too
        pass
    before = state()
    with reader.unchanged():
        reader.forward()
        changed = state()
    assert [one != other for one, other in zip(before, changed, strict=True)] == [True] * 3
    assert state() == before


def test_autocast_and_modes_of_training_do_not_reach_measurements():
    model = nn.Sequential(dense(3, 5).float(), nn.Dropout(0.9), nn.BatchNorm1d(5), nn.Linear(5, 2))
    inputs = draw(N, 3).float()
    with torch.autocast("cpu", torch.bfloat16):
        reader = reader_of(model, inputs)
        with reader.unchanged():
            found = reader.forward().outputs
    assert model.training
    torch.testing.assert_close(found, model.eval()(inputs), rtol=0, atol=0)


def test_gradients_are_none_without_any_and_zero_where_one_is_missing():
    model = dense(3, 5, 2)
    reader = reader_of(model, draw(N, 3))
    assert reader.gradients() is None
    model[2](draw(N, 5)).sum().backward()
    found = reader.gradients()
    assert float(found["0.weight"].abs().max()) == 0 < float(found["2.weight"].abs().max())
