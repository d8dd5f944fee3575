from __future__ import annotations

import numpy as np
import pytest
from charged_networks import NEURONS, RELU, descend
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.symmetry import grouped_charge, scheduled_charge

OUT, IN = (np.maximum(NEURONS[0], 0), np.minimum(NEURONS[0], 0))


def recorded(run, groups, optimizer):
    """What the law needs of a run, of each group."""
    groups = np.transpose(groups)
    series = {"charges": run.weights[:-1] ** 2 @ groups, "buffers": run.buffers**2 @ groups}
    if optimizer == "nesterov":
        series |= {"updates": run.updates**2 @ groups, "crossed": (run.updates * run.buffers) @ groups}
    return series


@pytest.mark.parametrize("optimizer", ["heavy_ball", "nesterov"])
def test_a_neuron_with_rates_and_decays_of_its_own_on_both_sides_keeps_a_law(optimizer):
    rates, decays, factors = np.array([0.1, 0.03]), np.array([0.02, 0.3]), 1 + 0.5 * np.cos(0.3 * np.arange(40))
    inner = IN < 0
    of_weights = {
        "learning_rate": factors[:, None] * np.where(inner, rates[1], rates[0]),
        "weight_decay": np.tile(np.where(inner, decays[1], decays[0]), (40, 1)),
        "momentum": 0.8,
    }
    run = descend(lambda weights, _: RELU.gradient(weights), RELU.start, 40, **of_weights, optimizer=optimizer)
    found = grouped_charge(
        **recorded(run, (OUT, IN), optimizer),
        learning_rate=rates,
        weight_decay=decays,
        schedule=factors,
        momentum=0.8,
        optimizer=optimizer,
        steps=np.arange(40),
    )
    charges = run.charge(OUT) + rates[0] / rates[1] * run.charge(IN)
    # Charges of order ten, over forty steps.
    np.testing.assert_allclose(found, charges, rtol=0, atol=1e-12)
    assert np.ptp(charges) > 0.1


def test_decoupled_decay_keeps_a_law_where_all_groups_shrink_alike():
    rates, decays = np.array([0.1, 0.05]), np.array([0.1, 0.2])
    inner = IN < 0
    of_weights = {
        "learning_rate": np.tile(np.where(inner, rates[1], rates[0]), (40, 1)),
        "weight_decay": np.tile(np.where(inner, decays[1], decays[0]), (40, 1)),
    }
    chosen = {"momentum": 0.8, "optimizer": "decoupled"}
    run = descend(lambda weights, _: RELU.gradient(weights), RELU.start, 40, **of_weights, **chosen)
    series = recorded(run, (OUT, IN), "decoupled")
    found = grouped_charge(**series, learning_rate=rates, weight_decay=decays, **chosen)
    np.testing.assert_allclose(found, run.charge(OUT) + 2 * run.charge(IN), rtol=0, atol=1e-12)
    with pytest.raises(InputError, match="charge_drift"):
        grouped_charge(**series, learning_rate=rates, weight_decay=0.1, **chosen)


@given(seed=st.integers(0, 10**6), optimizer=st.sampled_from(["heavy_ball", "nesterov", "decoupled"]))
def test_equal_rates_and_decays_give_the_law_of_one_group(seed, optimizer):
    random = np.random.default_rng(seed)
    signs, chosen = np.array([1.0, -1.0, -1.0]), {"momentum": 0.7, "optimizer": optimizer}

    def gradient(weights, _):
        slope, field = random.normal(size=3), signs * weights
        return slope - field * (field @ slope) / (field @ field)

    run = descend(gradient, random.normal(size=3), 15, learning_rate=0.05, weight_decay=0.3, **chosen)
    series = recorded(run, np.diag(signs), optimizer)
    found = grouped_charge(**series, learning_rate=np.full(3, 0.05), weight_decay=0.3, **chosen)
    # One takes the decay of the recorded charge, the other of the predicted one.
    expected = scheduled_charge(
        run.charge(signs)[0],
        learning_rate=0.05,
        weight_decay=0.3,
        **chosen,
        **{name: each.sum(1) for name, each in series.items() if name != "charges"},
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * np.abs(run.weights).max() ** 2)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"charges": [[1.0]]}, "charges"),
        ({"buffers": [1.0, 1.0]}, "buffers"),
        ({"learning_rate": [0.1]}, "learning_rate"),
        ({"learning_rate": [0.1, -0.1]}, "learning_rate"),
        ({"weight_decay": [0.1, 0.1, 0.1]}, "weight_decay"),
        ({"schedule": [1.0, 1.0]}, "schedule"),
        ({"schedule": 0.0}, "schedule"),
        ({"optimizer": "rmsprop"}, "optimizer"),
        ({"optimizer": "nesterov"}, "updates"),
        ({"steps": [1, 2]}, "steps"),
    ],
)
def test_bad_input_is_refused_by_name(changes, argument):
    given = {"charges": [[1.0, -1.0]], "buffers": [[1.0, -1.0]], "learning_rate": [0.1, 0.2]}
    with pytest.raises(InputError) as caught:
        grouped_charge(**given | changes)
    assert caught.value.argument == argument
