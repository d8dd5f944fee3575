from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.interventions import coordinate_check as jax_check
from dynascope.networks import abc_network
from dynascope.tasks import Task
from dynascope.theory.regimes import abc_parametrisations
from dynascope.training import Descent

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  after what it needs was asked for

from dynascope.torch import coordinate_check  # noqa: E402

DRAW = np.random.default_rng(0)
TASK = Task(DRAW.normal(size=(8, 5)), DRAW.normal(size=(8, 1)))
DATA = torch.tensor(TASK.inputs), torch.tensor(TASK.targets)


def drawn(width, seed, name="muP"):
    return abc_network(abc_parametrisations()[name], width, 5, seed=seed)


def made(width, seed):
    """A module with the weights of the JAX network."""
    weights = drawn(width, seed)[0].weights
    linear = [nn.Linear(*each.shape, bias=False) for each in weights]
    with torch.no_grad():
        for layer, weight in zip(linear, weights, strict=True):
            layer.double().weight.copy_(torch.tensor(weight).T)
    return nn.Sequential(linear[0], nn.Tanh(), linear[1], nn.Tanh(), linear[2])


def optimizer(module, width):
    rates = drawn(width, 0)[1].values()
    groups = [{"params": [p], "lr": 0.1 * rate} for p, rate in zip(module.parameters(), rates, strict=True)]
    return torch.optim.SGD(groups)


def sgd(module, width):
    return torch.optim.SGD(module.parameters(), lr=0.1)


def test_equal_weights_have_the_changes_of_jax():
    mup = abc_parametrisations()["muP"]
    found = coordinate_check(made, [32, 128], DATA, optimizer=optimizer, steps=5, seeds=2, parametrisation=mup)
    method = Descent(learning_rate=0.1, steps=5)
    expected = jax_check(drawn, [32, 128], TASK, method, seeds=2, parametrisation=mup)
    assert list(found.layers.index) == ["0", "2", "4"]
    for name in ("initial", "change"):
        np.testing.assert_allclose(found.sizes[name], expected.sizes[name], rtol=1e-10)
    columns = ["slope", "low", "high", "expected"]
    np.testing.assert_allclose(found.layers[columns], expected.layers[columns], rtol=1e-8)


def test_modules_are_drawn_from_the_seeds_and_the_generator_is_restored():
    def make(width, seed):
        return nn.Sequential(nn.Embedding(7, width), nn.Flatten(), nn.Linear(3 * width, 4))

    def adam(module, width):
        return torch.optim.Adam(module.parameters(), lr=1e-3)

    data = torch.randint(7, (10, 3)), torch.randint(4, (10,))
    state = torch.get_rng_state()
    first, second = (coordinate_check(make, [8, 16], data, optimizer=adam, steps=2, seeds=3) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), state)
    assert list(first.layers.index) == ["0", "2"]
    assert first.sizes.equals(second.sizes)
    assert len(np.unique(first.sizes["initial"])) == first.sizes["initial"].size


def test_a_loss_replaces_the_squared_error():
    def loss(outputs, targets):
        return ((outputs - targets) ** 2).sum(1).mean() / 2

    given, default = (
        coordinate_check(made, [8, 16], DATA, optimizer=optimizer, steps=2, seeds=2, loss=each) for each in (loss, None)
    )
    assert given.sizes.equals(default.sizes)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"make": lambda width, seed: drawn(width, seed)[0]}, "make"),
        (
            {"make": lambda width, seed: nn.Sequential(*(nn.Linear(5, 5) for _ in range(width))), "optimizer": sgd},
            "make",
        ),
        ({"make": lambda width, seed: nn.PReLU(), "optimizer": sgd}, "make"),
        ({"data": DATA[0]}, "data"),
        ({"data": (DATA[0], DATA[1][:3])}, "data"),
        ({"data": (DATA[0] * np.nan, DATA[1])}, "data"),
        ({"widths": [8]}, "widths"),
        ({"optimizer": lambda module: None}, "optimizer"),
        ({"steps": 0}, "steps"),
    ],
)
def test_bad_input_is_rejected_by_name(changes, argument):
    given = {"make": made, "widths": [8, 16], "data": DATA, "optimizer": optimizer, "seeds": 2, "steps": 1}
    with pytest.raises(InputError) as caught:
        coordinate_check(**given | changes)
    assert caught.value.argument.startswith(argument)


def test_the_jax_function_names_the_function_for_modules():
    with pytest.raises(InputError, match=r"dynascope\.torch\.coordinate_check"):
        jax_check(made, [8, 16], TASK, Descent(learning_rate=0.1, steps=1))
