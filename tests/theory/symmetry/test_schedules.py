from __future__ import annotations

import numpy as np
import pytest
from charged_networks import NEURONS, RELU, decayed_rates, descend
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.symmetry import quadratic_charge, scheduled_charge

ROUNDING = 1e-13  # of charges of order one over some tens of steps
DIAGONALS = np.transpose(NEURONS)
OPTIMISERS = ["heavy_ball", "nesterov", "decoupled"]


def recorded(run, diagonals, optimizer):
    """What the law needs of a run."""
    series = {"buffers": run.buffers**2 @ diagonals}
    if optimizer == "nesterov":
        series |= {"updates": run.updates**2 @ diagonals, "crossed": (run.updates * run.buffers) @ diagonals}
    return series


@pytest.mark.parametrize(
    ("optimizer", "charge"),
    [("heavy_ball", -1.217909818937), ("nesterov", -1.009126912703), ("decoupled", -1.723004644597)],
)
def test_a_neuron_follows_the_law_of_a_schedule_and_ends_where_published(optimizer, charge):
    run = descend(lambda weights, _: RELU.gradient(weights), RELU.start, 25, **decayed_rates(25), optimizer=optimizer)
    charges = run.charge(DIAGONALS)
    found = scheduled_charge(
        charges[0], **recorded(run, DIAGONALS, optimizer), **decayed_rates(25), optimizer=optimizer, steps=range(25)
    )
    np.testing.assert_allclose(found, charges, rtol=0, atol=ROUNDING)
    assert found[25, 0] == pytest.approx(charge, abs=6e-13)


@pytest.mark.parametrize("optimizer", ["heavy_ball", "decoupled"])
def test_batches_and_dampening_are_followed(optimizer):
    schedule = decayed_rates(40) | {"dampening": 0.3}

    def gradient(weights, k):
        return RELU.gradient(weights, np.roll([0.5, 0.5, 0.0, 0.0, 0.0], k))

    run = descend(gradient, RELU.start, 40, **schedule, optimizer=optimizer)
    charges = run.charge(DIAGONALS)
    found = scheduled_charge(charges[0], **recorded(run, DIAGONALS, optimizer), **schedule, optimizer=optimizer)
    np.testing.assert_allclose(found, charges, rtol=0, atol=ROUNDING)


@given(seed=st.integers(0, 10**6), optimizer=st.sampled_from(OPTIMISERS))
def test_any_gradients_along_which_nothing_changes_and_any_schedule(seed, optimizer):
    random = np.random.default_rng(seed)
    signs = np.array([1.0, 1.0, -1.0, -1.0, -1.0])
    schedule = {
        "learning_rate": random.uniform(0.01, 0.2, 20),
        "weight_decay": random.uniform(0, 1, 20),
        "momentum": random.uniform(0, 0.95, 20),
    }

    def gradient(weights, _):
        slope, field = random.normal(size=5), signs * weights
        return slope - field * (field @ slope) / (field @ field)

    run = descend(gradient, random.normal(size=5), 20, **schedule, optimizer=optimizer)
    charges = run.charge(signs)
    found = scheduled_charge(charges[0], **recorded(run, signs, optimizer), **schedule, optimizer=optimizer)
    # The projection is rounded too, and momentum keeps twenty times of it.
    np.testing.assert_allclose(found, charges, rtol=0, atol=1e-11 * np.abs(run.weights).max() ** 2)


def test_at_constant_rates_it_is_the_law_of_displacements():
    random, chosen = np.random.default_rng(0), {"weight_decay": 0.1, "momentum": 0.7}
    buffers = random.normal(size=(30, 2))
    found = scheduled_charge([1.0, 2.0], buffers, learning_rate=np.full(30, 0.05), **chosen)
    expected = quadratic_charge([1.0, 2.0], 0.05**2 * buffers, SGD(**chosen, learning_rate=0.05))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"optimizer": "adam"}, "optimizer"),
        ({"optimizer": "frob"}, "optimizer"),
        ({"optimizer": "nesterov"}, "updates"),
        ({"optimizer": "nesterov", "updates": [1.0, 1.0]}, "crossed"),
        ({"optimizer": "nesterov", "updates": [1.0], "crossed": [1.0, 1.0]}, "updates"),
        ({"updates": [1.0, 1.0]}, "updates"),
        ({"learning_rate": [0.1]}, "learning_rate"),
        ({"learning_rate": [0.1, 0.0]}, "learning_rate"),
        ({"momentum": [0.5, 1.0]}, "momentum"),
        ({"weight_decay": -0.1}, "weight_decay"),
        ({"dampening": 2.0}, "dampening"),
        ({"steps": [3, 5]}, "steps"),
        ({"initial": [1.0, 2.0]}, "initial"),
        ({"buffers": [1.0, np.inf]}, "buffers"),
    ],
)
def test_bad_input_is_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        scheduled_charge(**{"initial": 1.0, "buffers": [1.0, 1.0], "learning_rate": 0.1} | changes)
    assert caught.value.argument == argument


@pytest.mark.usefixtures("unchecked_types")
def test_a_law_of_adam_is_refused_with_what_to_do_instead():
    with pytest.raises(InputError, match="charge_drift"):
        scheduled_charge(1.0, [1.0], learning_rate=0.1, optimizer="adam")
