from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import quadratic_loss, thermometer

torch = pytest.importorskip("torch")
from torch.utils.data import (  # noqa: E402  after what it needs was asked for
    BatchSampler,
    DataLoader,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
)

from dynascope.torch import SamplingWarning, temperature  # noqa: E402

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(100, 3)) * np.array([2.0, 1.0, 0.3])
Y = DRAW.normal(size=(100, 1))


def regression():
    """At the minimum, where the noise is that of the theory."""
    layer = torch.nn.Linear(3, 1, bias=False).double()
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(quadratic_loss(X, Y).minimum[None, :]))
    return layer


def sgd(module, **changes):
    return torch.optim.SGD(module.parameters(), **{"lr": 0.05, "momentum": 0.9, "weight_decay": 0.01} | changes)


@pytest.mark.slow
def test_a_regression_is_as_warm_as_its_curvature_and_noise_say():
    module = regression()
    data = [(torch.tensor(X[[k]]), torch.tensor(Y[[k]])) for k in range(100)]
    before = module.weight.detach().clone()
    found = temperature(module, torch.nn.MSELoss(), data, sgd(module), 2)
    loss = quadratic_loss(X, Y)
    # Twice the half of squares that theory has, and four times its noise, of which 99 of 100 are free.
    settings = {"learning_rate": 0.05, "momentum": 0.9, "weight_decay": 0.01, "batch_size": 1}
    noise = 4 * loss.mode_noise[:2] * 100 / 99
    expected = thermometer(2 * loss.curvature[:2], noise, SGD(**settings))
    for name in ("position_variance", "temperature", "relaxation_steps"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), rtol=1e-6)
    assert found.stationary.all()
    assert found.angular_step == expected.angular_step
    assert torch.equal(module.weight, before)
    assert module.weight.grad is None


@pytest.mark.slow
def test_too_large_a_rate_has_no_law():
    module = regression()
    data = [(torch.tensor(X[:50]), torch.tensor(Y[:50])), (torch.tensor(X[50:]), torch.tensor(Y[50:]))]
    found = temperature(module, torch.nn.MSELoss(), data, sgd(module, lr=0.6), 2)
    # 2 · 4 · 0.6 is above 2(1 + β) = 3.8, and a quarter of that below.
    assert found.stationary.tolist() == [False, True]
    assert found.relaxation_steps[0] == np.inf


@pytest.mark.parametrize(
    ("argument", "batches", "changes"),
    [
        ("batches", [4], {}),
        ("batches", [4, 3], {}),
        ("optimizer", [4, 4], {"nesterov": True}),
        ("optimizer", [4, 4], {"dampening": 0.5}),
    ],
)
def test_bad_input_is_refused_by_name(argument, batches, changes):
    module = regression()
    data = [(torch.tensor(X[:size]), torch.tensor(Y[:size])) for size in batches]
    with pytest.raises(InputError) as caught:
        temperature(module, torch.nn.MSELoss(), data, sgd(module, **changes), 1)
    assert caught.value.argument == argument


def part(module):
    return torch.optim.SGD([module.weight], lr=0.05)


@pytest.mark.parametrize(
    ("optimizer", "named"),
    [(lambda _: sgd(regression()), "another module"), (part, "1 of the 2 parameters")],
)
def test_an_optimizer_that_does_not_train_the_module_is_refused(optimizer, named):
    module = torch.nn.Linear(3, 1).double()
    data = [(torch.tensor(X[:50]), torch.tensor(Y[:50])), (torch.tensor(X[50:]), torch.tensor(Y[50:]))]
    with pytest.raises(InputError, match=named) as caught:
        temperature(module, torch.nn.MSELoss(), data, optimizer(module), 1)
    assert caught.value.argument == "optimizer"


def test_a_single_batch_is_counted_in_the_singular():
    module, data = regression(), [(torch.tensor(X), torch.tensor(Y))]
    with pytest.raises(InputError, match="contains 1 batch: give"):
        temperature(module, torch.nn.MSELoss(), data, sgd(module), 1)


DATA = TensorDataset(torch.tensor(X), torch.tensor(Y))
WITH_REPLACEMENT = RandomSampler(DATA, replacement=True)


@pytest.mark.parametrize(
    ("loader", "named"),
    [
        (DataLoader(DATA, 10, shuffle=True), "upper bounds.* 10 batches per epoch"),
        (DataLoader(DATA, 10, sampler=SubsetRandomSampler(range(100))), "upper bounds"),
        (DataLoader(DATA, batch_sampler=BatchSampler(RandomSampler(DATA), 10, drop_last=True)), "upper bounds"),
        (DataLoader(DATA, 10), "fixed order"),
        (DataLoader(DATA, 10, sampler=SequentialSampler(DATA)), "fixed order"),
        (DataLoader(DATA, 10, sampler=WITH_REPLACEMENT), None),
        (DataLoader(DATA, batch_sampler=BatchSampler(WITH_REPLACEMENT, 10, drop_last=True)), None),
        (list(DataLoader(DATA, 10)), None),
    ],
)
def test_a_loader_whose_batches_are_not_independent_warns(loader, named):
    module = regression()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        temperature(module, torch.nn.MSELoss(), loader, sgd(module), 1)
    if named is None:
        assert not caught
    else:
        [warning] = caught
        assert warning.category is SamplingWarning
        assert re.search(named, str(warning.message))


@pytest.mark.slow
def test_epochs_without_replacement_show_the_noise_of_independent_batches():
    module, loss = regression(), quadratic_loss(X, Y)
    expected = thermometer(2 * loss.curvature[:2], 4 * loss.mode_noise[:2], SGD(0.05, 0.9, 0.01, 10))
    torch.manual_seed(0)
    found = []
    for _ in range(100):
        order = torch.randperm(100)
        epoch = [(torch.tensor(X)[each], torch.tensor(Y)[each]) for each in order.split(10)]
        found.append(temperature(module, torch.nn.MSELoss(), epoch, sgd(module), 2).position_variance)
    # The error of the mean of 100 epochs of 10 batches is √(2/9)/10 = 5 %, and noise with N/(N − 1) is 1 % larger.
    np.testing.assert_allclose(np.mean(found, axis=0), expected.position_variance, rtol=0.15)
    assert np.std(found, axis=0) / np.mean(found, axis=0) == pytest.approx(np.sqrt(2 / 9), rel=0.3)


def simulated_variances(rate, *, replacement):
    """Stationary variances of SGD with momentum 0.9 along the Hessian directions, from 200 runs on batches of 10."""
    draw, runs = np.random.default_rng(1), np.arange(200)[:, None]
    loss = quadratic_loss(X, Y)
    axes = np.linalg.eigh(X.T @ X)[1][:, ::-1]
    weights = np.tile(loss.minimum, (200, 1))
    velocity, seen = np.zeros_like(weights), []
    for epoch in range(120):
        order = draw.random((200, 100)).argsort(axis=1)
        for k in range(10):
            batch = draw.integers(100, size=(200, 10)) if replacement else order[runs, range(10 * k, 10 * k + 10)]
            residual = np.einsum("rsd,rd->rs", X[batch], weights) - Y[batch][..., 0]
            velocity = 0.9 * velocity - 2 * np.einsum("rs,rsd->rd", residual, X[batch]) / 10
            weights = weights + rate * velocity
            if epoch >= 40:
                seen.append((weights - loss.minimum) @ axes)
    return np.square(seen).mean(axis=(0, 1))[:2]


@pytest.mark.slow
def test_the_variances_are_those_of_independent_batches_and_bound_those_of_reshuffled_epochs():
    module = regression()
    singles = [(torch.tensor(X[[k]]), torch.tensor(Y[[k]])) for k in range(100)]
    # Batches of one sample have the same per-sample noise; the prediction for batches of 10 is a tenth of theirs.
    optimizer = sgd(module, lr=0.002, weight_decay=0.0)
    found = temperature(module, torch.nn.MSELoss(), singles, optimizer, 2)
    predicted = found.position_variance / 10
    np.testing.assert_allclose(simulated_variances(0.002, replacement=True), predicted, rtol=0.15)
    # More relaxation steps than the 10 batches of an epoch.
    assert (found.relaxation_steps > 10).all()
    assert (simulated_variances(0.002, replacement=False) < predicted / 2).all()
