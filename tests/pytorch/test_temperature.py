from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import quadratic_loss, thermometer

torch = pytest.importorskip("torch")
if importlib.util.find_spec("curvlinops") is None:
    pytest.skip("curvlinops is not installed", allow_module_level=True)

from dynascope.torch import temperature  # noqa: E402  after what it needs was asked for

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
