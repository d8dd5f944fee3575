from __future__ import annotations

import dataclasses

import numpy as np
import optax
import pytest

from dynascope.errors import InputError
from dynascope.interventions import regime_dial
from dynascope.networks import MLP, DeepLinear, TwoLayer
from dynascope.tasks import InContextRegression, Task
from dynascope.theory.regimes import OptimizerSettings
from dynascope.training import Descent, descend

DRAW = np.random.default_rng(0)
TASK = Task(DRAW.normal(size=(16, 5)), DRAW.normal(size=(16, 2)))
SGD = OptimizerSettings("sgd", 0.02, momentum=0.9, coupled_decay=0.01)
ADAM = OptimizerSettings("adam", 0.005, decoupled_decay=0.01, epsilon=1e-3)
SETTINGS = {"momentum": SGD, "Nesterov": dataclasses.replace(SGD, nesterov=True), "AdamW": ADAM}
# Networks, each with dials of equal effective output scale 8.
DIALS = {
    "MLP": (
        MLP((5, 12, 9, 2), scale=1.4),
        [
            {"output_scale": 8.0},
            {"target_scale": 1 / 8},
            {"init_scale": 2.0},
            {"input_scale": 8.0},
            {"layer_scales": [0.5, 1.0, 16.0]},
            {"output_scale": 0.5, "input_scale": 4.0, "layer_scales": [2.0, 1.0, 1.0], "target_scale": 0.5},
        ],
    ),
    "DeepLinear": (DeepLinear((5, 7, 7, 2)), [{"output_scale": 8.0}, {"init_scale": 2.0}, {"input_scale": 8.0}]),
    "quadratic": (
        TwoLayer(5, 9, 2, activation="quadratic", scale=0.5),
        [{"target_scale": 1 / 8}, {"init_scale": 2.0}, {"layer_scales": [2.0, 2.0]}],
    ),
    "tanh": (MLP((5, 12, 2), activation="tanh"), [{"output_scale": 8.0}, {"target_scale": 1 / 8}]),
}


def losses(dial, target_scale, steps=100, schedule=None):
    method = Descent(dial.optimizer(schedule), steps=steps, save=range(steps + 1), batches=6)
    return descend(dial.task, dial.network, method)["loss"].to_numpy() / target_scale**2


@pytest.mark.parametrize(
    ("name", "optimizer"),
    [("MLP", "Nesterov"), ("MLP", "AdamW"), ("DeepLinear", "momentum"), ("quadratic", "AdamW"), ("tanh", "AdamW")],
)
def test_dials_of_equal_effective_output_scale_are_twins(name, optimizer):
    network, dials = DIALS[name]
    found = []
    for scales in dials:
        dial = regime_dial(TASK, network, SETTINGS[optimizer], **scales)
        assert (dial.regime, dial.output_scale) == ("lazier", 8)
        found.append(losses(dial, scales.get("target_scale", 1.0)))
    assert np.isfinite(found[0]).all()
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], rtol=1e-10)


def test_dials_that_compensate_are_twins_of_the_given_run():
    network = DIALS["MLP"][0]
    base = losses(regime_dial(TASK, network, SGD), 1.0)
    dial = regime_dial(TASK, network, SGD, init_scale=2.0, output_scale=1 / 8)
    assert dial.regime == "twin"
    np.testing.assert_allclose(losses(dial, 1.0), base, rtol=1e-10)
    lazier = regime_dial(TASK, network, SGD, output_scale=8.0)
    assert np.abs(losses(lazier, 1.0) / base - 1).max() > 0.1


@pytest.mark.parametrize(
    ("scales", "clock"),
    [
        ({"output_scale": 4.0}, 16),
        ({"init_scale": 2.0}, 16),
        ({"target_scale": 4.0}, 1),
        ({"layer_scales": [2, 1, 1]}, None),
    ],
)
def test_the_clock_is_that_of_the_ledger(scales, clock):
    assert regime_dial(TASK, DeepLinear((5, 7, 7, 2)), SGD, **scales).clock == clock


def test_a_larger_target_is_richer():
    dial = regime_dial(TASK, DIALS["tanh"][0], SGD, target_scale=4.0)
    assert (dial.regime, dial.output_scale) == ("richer", 0.25)
    assert set(dial.settings.values()) == {SGD}


def test_clipping_is_matched_for_equal_scales_and_breaks_the_twin_of_unequal_scales():
    network = DIALS["DeepLinear"][0]
    runs = [regime_dial(TASK, network, SGD, clip_norm=0.5, **scales) for scales in DIALS["DeepLinear"][1]]
    first, other = (losses(run, 1.0) for run in runs[:2])
    assert not any(run.broken_by for run in runs)
    np.testing.assert_allclose(other, first, rtol=1e-10)
    unequal = regime_dial(TASK, network, SGD, clip_norm=0.5, layer_scales=[0.5, 1.0, 2.0])
    assert unequal.broken_by
    base = losses(regime_dial(TASK, network, SGD, clip_norm=0.5), 1.0)
    assert np.abs(losses(unequal, 1.0) / base - 1).max() > 1e-3


@pytest.mark.parametrize(
    ("network", "changes", "argument"),
    [
        ("MLP", {"output_scale": 0.0}, "output_scale"),
        ("MLP", {"init_scale": -1.0}, "init_scale"),
        ("MLP", {"layer_scales": [1.0, 0.0, 1.0]}, "layer_scales"),
        ("MLP", {"layer_scales": [1.0, 2.0]}, "layer_scales"),
        ("MLP", {"target_scale": 2.0, "loss": "cross_entropy"}, "target_scale"),
        ("MLP", {"output_scale": 1e200}, "output_scale"),
        ("tanh", {"init_scale": 2.0}, "network"),
        ("tanh", {"input_scale": 2.0}, "network"),
    ],
)
def test_bad_input_is_rejected_by_name(network, changes, argument):
    with pytest.raises(InputError) as caught:
        regime_dial(TASK, DIALS[network][0], SGD, **changes)
    assert caught.value.argument.startswith(argument)


def test_dampening_has_settings_but_no_optimizer():
    dial = regime_dial(TASK, DIALS["MLP"][0], dataclasses.replace(SGD, dampening=0.1), init_scale=2.0)
    assert {each.dampening for each in dial.settings.values()} == {0.1}
    with pytest.raises(InputError) as caught:
        dial.optimizer()
    assert caught.value.argument == "dampening"


def test_a_schedule_of_factors_keeps_the_twin_and_a_schedule_of_rates_breaks_it():
    pair = [regime_dial(TASK, DIALS["MLP"][0], SETTINGS["AdamW"], **scales) for scales in DIALS["MLP"][1][2:4]]
    schedule = optax.cosine_decay_schedule(1.0, 60)
    plain, (first, other) = losses(pair[0], 1.0), (losses(each, 1.0, schedule=schedule) for each in pair)
    np.testing.assert_allclose(other, first, rtol=1e-10)
    assert np.abs(plain / first - 1).max() > 1e-2

    def with_equal_rates(dial):
        rates = {path: dataclasses.replace(each, learning_rate=1e-3) for path, each in dial.settings.items()}
        return dataclasses.replace(dial, settings=rates)

    first, other = (losses(with_equal_rates(each), 1.0, schedule=schedule) for each in pair)
    assert np.abs(other / first - 1).max() > 1e-2


def test_a_task_is_a_pair_of_arrays_or_has_samples():
    settings, network = OptimizerSettings("sgd", 0.1), DeepLinear((2, 8, 2))
    assert regime_dial((np.eye(2), np.eye(2)), network, settings, output_scale=2.0).regime == "lazier"
    with pytest.raises(InputError, match="InContextRegression has no samples"):
        regime_dial(InContextRegression(np.eye(2), context_length=20), network, settings)
