from __future__ import annotations

import math
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

import dynascope as ds
from dynascope.errors import InputError
from dynascope.interventions import regime_dial
from dynascope.networks import MLP, TwoLayer
from dynascope.tasks import InContextRegression, Labelled, Task
from dynascope.theory.regimes import OptimizerSettings

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(20, 5))
Y = np.sign(X[:, :1] * X[:, 1:2])
TANH = MLP((5, 40, 1), activation="tanh")


def test_along_the_output_scale_a_network_goes_from_rich_to_lazy():
    order = ("rich", "undecided", "lazy")
    labels = [ds.regime((X, Y), TANH, output_scale=each, probe=True, turns=False).label for each in (0.05, 0.3, 10.0)]
    assert (labels[0], labels[-1]) == ("rich", "lazy")
    assert sorted(labels, key=order.index) == labels


@pytest.mark.slow
@pytest.mark.parametrize("output_scale", [0.03, 30.0])
def test_the_advised_turn_changes_the_regime(output_scale):
    found = ds.regime((X, Y), TANH, output_scale=output_scale, probe=True)
    turn = found.turns[0]
    after = ds.regime((X, Y), TANH, output_scale=output_scale * turn.output_scale, probe=True, turns=False)
    assert {found.label, after.label} == {"lazy", "rich"}
    assert after.kernel_distance == pytest.approx(turn.kernel_distance)


@pytest.mark.slow
def test_the_dial_of_the_answer_makes_a_twin_of_the_turned_run():
    network = MLP((5, 30, 1), activation="relu", bias=False, seed=1)
    found = ds.regime((X, Y), network, output_scale=4.0, learning_rate=0.02)
    turn = found.turns[0]
    dial = regime_dial(Task(X, Y), network, OptimizerSettings("sgd", 0.1), output_scale=found.dial["output_scale"])
    assert dial.output_scale == turn.output_scale
    assert dial.regime == ("lazier" if turn.output_scale > 1 else "richer")
    assert turn.init_scale == pytest.approx(turn.output_scale**0.5)


def test_twins_have_the_same_regime():
    network = MLP((5, 30, 1), activation="relu", bias=False, seed=1)
    doubled = MLP((5, 30, 1), activation="relu", bias=False, seed=1, scale=2.0)
    options: Any = {"probe": True, "turns": False}
    one = ds.regime((X, Y), network, output_scale=4.0, **options)
    other = ds.regime((X, Y), doubled, **options)  # 2² = 4
    assert other.kernel_distance == pytest.approx(one.kernel_distance, rel=5e-2)  # the flow crosses kinks
    rates = ds.regime((X, Y), network, learning_rate=[0.04, 0.01], **options)
    # θ_l = √(η_l/η) φ_l: a larger rate of a layer is a smaller initial weight.
    weights = network.weights[0] / 2**0.5, network.weights[1] * 2**0.5
    turned = eqx.tree_at(lambda each: each.weights, network, weights)
    same = ds.regime((X, Y), turned, learning_rate=0.02, **options)
    assert rates.kernel_distance == pytest.approx(same.kernel_distance, rel=1e-6)


def test_theories_decide_without_training():
    small = ds.regime((X, Y), "relu", probe=False)
    assert (small.label, small.theory) == ("rich", "alternating-flow")
    assert small.number <= small.threshold
    large = ds.regime((X, Y), TwoLayer(5, 200, 1, activation="relu"), scale=1e3, probe=False)
    assert (large.label, large.theory) == ("lazy", "kernel-regression")
    assert math.isnan(large.kernel_distance)
    between = ds.regime((X, Y), TANH, probe=False)
    assert (between.label, between.theory, between.turns) == ("undecided", "", ())


def test_a_task_in_closed_form_is_decided_by_theory_alone():
    task = InContextRegression(np.diag([1.0, 0.25]), context_length=20)
    assert ds.regime(task, "attention").label == "rich"
    with pytest.raises(InputError, match="no samples"):
        ds.regime(task, "attention", probe=True)


def test_large_learning_rates_are_unstable_and_the_answer_names_a_stable_rate():
    found = ds.regime((X, Y), TANH, learning_rate=20.0)
    assert found.label == "unstable"
    assert found.dial == {}
    stable = ds.regime((X, Y), TANH, learning_rate=20.0 * found.turns[0].learning_rate, turns=False)
    assert stable.label == found.turns[0].label != "unstable"


def test_centring_matters_for_large_outputs():
    options: Any = {"probe": True, "turns": False, "output_scale": 30.0}
    centred, plain = (ds.regime((X, Y), TANH, centred=each, **options) for each in (True, False))
    assert centred.label == "lazy"
    # Without centring, the kernel moves until the network has unlearned its own outputs, at any α.
    assert centred.ratio == pytest.approx(4, rel=0.1)
    assert plain.ratio == pytest.approx(1, rel=0.1)


def test_for_the_cross_entropy_the_initial_weights_are_the_dial():
    network = MLP((5, 40, 2), activation="relu")
    task = Labelled(X, (Y[:, 0] > 0).astype(int))
    options: dict[str, Any] = {"loss": "cross_entropy", "learning_rate": 0.1}
    found = ds.regime(task, network, **options)
    assert "inverse temperature" in str(found)
    assert found.turns
    for turn in found.turns:
        scale = turn.init_scale
        assert scale is not None
        scaled = jax.tree.map(lambda each, scale=scale: scale * each if eqx.is_inexact_array(each) else each, network)
        turned = ds.regime(task, scaled, turns=False, **options)
        assert turned.label == turn.label != found.label
        assert turned.kernel_distance == pytest.approx(turn.kernel_distance, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"output_scale": 0.0}, "output_scale"),
        ({"output_scale": -1.0}, "output_scale"),
        ({"learning_rate": -0.1}, "learning_rate"),
        ({"learning_rate": [0.1, 0.1, 0.1]}, "learning_rate"),
        ({"scale": 0.0}, "scale"),
        ({"loss": "cross_entropy", "output_scale": 2.0}, "output_scale"),
        ({"loss": "cross_entropy"}, "task"),
        ({"steps": 0}, "steps"),
        ({"seconds": 0.0}, "seconds"),
    ],
)
def test_bad_arguments_are_named(options, argument):
    with pytest.raises(InputError) as error:
        ds.regime((X, Y), TANH, **options)
    assert error.value.argument == argument


def test_bad_data_and_networks_are_named():
    for network in (TANH, MLP((5, 2000, 1), activation="relu", scale=10.0)):
        with pytest.raises(InputError, match="zero"):
            ds.regime((X, 0 * Y), network)
    with pytest.raises(InputError, match="shape"):
        ds.regime((X, np.c_[Y, Y]), TANH)
    with pytest.raises(InputError, match="network"):
        ds.regime((X, Y), 3.0)  # type: ignore[arg-type]
    with pytest.raises(InputError) as error:
        ds.regime((X[:, :3], Y), TANH)
    assert error.value.argument == "network"


def test_a_run_that_is_cut_short_decides_nothing():
    found = ds.regime((X, Y), TANH, learning_rate=1e-3, steps=8)
    assert found.label == "undecided"
    assert found.turns == ()
    assert math.isnan(found.kernel_distance)
    assert "increase steps" in str(found)


def test_an_equinox_module_of_samples_is_trained_by_descent():
    perceptron = eqx.nn.MLP(5, 1, 30, 1, activation=jax.nn.tanh, key=jax.random.key(0))
    layers = perceptron.layers
    weights = tuple(np.asarray(layer.weight, np.float64).T for layer in layers)
    biases = tuple(np.asarray(layer.bias, np.float64) for layer in layers)
    same = eqx.tree_at(lambda each: (each.weights, each.biases), MLP((5, 30, 1), activation="tanh"), (weights, biases))
    options: Any = {"learning_rate": 0.05, "turns": False, "steps": 2000}
    found, expected = (ds.regime((X, Y), each, **options) for each in (perceptron, same))
    assert found.kernel_distance == pytest.approx(expected.kernel_distance, rel=1e-6)


def test_the_kernel_of_a_linear_model_does_not_move_and_no_turn_changes_that():
    found = ds.regime((X, X @ np.ones((5, 1))), MLP((5, 1), activation="linear"), probe=True)
    assert (found.label, found.kernel_distance, found.turns) == ("lazy", 0, ())
