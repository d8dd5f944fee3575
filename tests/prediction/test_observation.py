from __future__ import annotations

import dataclasses

import equinox as eqx
import jax
import numpy as np
import pytest

from dynascope import Descent, GradientFlow, observe, predict
from dynascope.errors import InputError
from dynascope.networks import (
    MLP,
    DeepLinear,
    DiagonalLinear,
    LinearAttention,
    TwoLayer,
    at_unit_scale,
    balanced_linear,
)
from dynascope.tasks import InContextRegression, Task, regression

TASK = regression(
    samples=12, input_covariance=[1.0, 1.0, 1.0], target_map=np.diag([3.0, -1.5, 0.0]), exact_moments=True
)
ONE_TARGET = Task(TASK.inputs, TASK.targets @ [[1.0], [1.0], [0.0]])


STEPS = {"steps": 200, "learning_rate": 0.02, "save": [0, 100, 200]}


def strength(network):
    learned = network.first @ network.second
    return {"mode_strength": (["mode"], learned.reshape(-1)[:2]), "alignment": ([], learned[0, 0])}


def loss_at(record, times):
    return np.interp(times, record["time"], record["loss"])


@pytest.fixture(scope="module")
def run():
    return observe(TASK, TwoLayer(3, 4, 3), scale=1e-3).record


@pytest.mark.slow
def test_run_covers_every_predicted_jump_and_the_plateau_after_it(run):
    last = float(predict(TASK, TwoLayer(3, 4, 3), scale=1e-3)["jump_time"][-1])
    assert last * 1.25 <= float(run["time"][-1]) < last * 2
    np.testing.assert_allclose(run["loss"][0], TASK.target_power / 2, rtol=1e-4)
    np.testing.assert_allclose(run["loss"][-1], 0, atol=1e-3)


@pytest.fixture(scope="module")
def weights_run():
    """The same run by its weights, with a probe."""
    return observe(
        TASK, TwoLayer(3, 4, 3), method=GradientFlow(duration=8.0, save=101), scale=1e-3, probes=[strength]
    ).record


@pytest.mark.slow
def test_record_says_which_variables_were_followed(run, weights_run):
    assert run.attrs["variables"] == "neuron bundles"
    assert weights_run.attrs["variables"] == "weights"
    for record in (run, weights_run):
        assert record.attrs["flow"] == "gradient flow"
        assert record.attrs["scale"] == 1e-3
        assert record.attrs["task"] == "regression"


@pytest.mark.slow
def test_exact_variables_and_weights_give_the_same_loss(run, weights_run):
    np.testing.assert_allclose(
        loss_at(run, weights_run["time"]), weights_run["loss"], rtol=0, atol=1e-4 * float(run["loss"][0])
    )


@pytest.mark.slow
def test_deep_network_of_one_hidden_layer_is_followed_exactly_too(run):
    network = eqx.tree_at(
        lambda net: net.weights, DeepLinear((3, 4, 3)), (TwoLayer(3, 4, 3).first, TwoLayer(3, 4, 3).second)
    )
    np.testing.assert_array_equal(observe(TASK, network, scale=1e-3)["loss"], run["loss"])


@pytest.mark.slow
def test_exact_variables_and_weights_give_the_same_loss_of_a_diagonal_network():
    # The scale of the module multiplies the scale.
    network = DiagonalLinear(3, scale=0.1)
    exact = observe(ONE_TARGET, network, method=GradientFlow(duration=12.0), scale=1e-2).record
    weights = observe(ONE_TARGET, network, method=GradientFlow(duration=12.0, solver="explicit"), scale=1e-2).record
    assert (exact.attrs["variables"], weights.attrs["variables"]) == ("signed phases", "weights")
    assert exact.attrs["scale"] == weights.attrs["scale"] == 1e-2
    np.testing.assert_allclose(
        loss_at(exact, weights["time"]), weights["loss"], rtol=0, atol=1e-4 * float(weights["loss"][0])
    )


@pytest.mark.slow
def test_other_starts_of_a_diagonal_network_are_followed_by_their_weights():
    moved = eqx.tree_at(lambda net: net.v, DiagonalLinear(3), np.array([0.0, 0.1, 0.0]))
    assert (
        observe(ONE_TARGET, moved, method=GradientFlow(duration=1.0), scale=1e-2).record.attrs["variables"] == "weights"
    )


@pytest.mark.slow
def test_attention_is_followed_by_the_cheaper_of_explicit_and_implicit_steps():
    task, network = InContextRegression([1.0, 0.7, 0.4], 20), LinearAttention(3, 8)
    few, many = (
        observe(task, network, method=GradientFlow(duration=duration), scale=1e-2).record for duration in (1e3, 1e6)
    )
    assert few.attrs["variables"] == "weights" != many.attrs["variables"]
    initial = float(few["loss"][0])
    # Recorded densely where it moves fast, and within a thousandth of the initial loss.
    assert many.sel(time=slice(0.0, 1e3)).sizes["time"] > 1000
    np.testing.assert_allclose(few["loss"], loss_at(many, few["time"]), atol=1e-3 * initial)
    assert float(few["loss"][-1]) < 0.6 * initial


def test_probes_are_recorded_over_time(weights_run):
    assert weights_run["mode_strength"].dims == ("time", "mode")
    assert weights_run["mode_strength"].shape == (101, 2)
    assert weights_run["alignment"].dims == ("time",)
    np.testing.assert_allclose(weights_run["mode_strength"][-1, 0], 3, atol=1e-3)
    np.testing.assert_array_equal(weights_run["alignment"], weights_run["mode_strength"][:, 0])


@pytest.mark.slow
def test_ensembles_have_their_dimensions():
    networks = [TwoLayer(3, 4, 3, seed=seed) for seed in (0, 1)]
    record = observe(TASK, networks, method=GradientFlow(duration=4.0, save=21), scale=[0.1, 0.01]).record
    assert record["loss"].dims == ("seed", "scale", "time")
    assert record["loss"].shape == (2, 2, 21)
    assert "scale" not in record.attrs
    alone = observe(TASK, networks[1], method=GradientFlow(duration=4.0), scale=0.01).record
    np.testing.assert_allclose(
        record["loss"].isel(seed=1, scale=1),
        loss_at(alone, record["time"]),
        rtol=0,
        atol=1e-4 * float(alone["loss"][0]),
    )


def test_descent_takes_steps_and_options():
    network = TwoLayer(3, 4, 3, seed=3)
    record = observe(TASK, network, method=Descent(**STEPS), scale=0.1).record
    assert record["loss"].dims == ("step",)
    np.testing.assert_allclose(record["time"], [0, 2, 4])
    assert record.attrs["flow"] == "descent"
    assert record.attrs["variables"] == "weights"
    # Steps of 0.02 follow the flow to first order.
    flow = observe(TASK, network, method=GradientFlow(duration=4.0), scale=0.1).record
    np.testing.assert_allclose(
        record["loss"], loss_at(flow, record["time"]), rtol=0, atol=0.05 * float(flow["loss"][0])
    )


def test_seed_draws_the_weights_of_a_kind():
    runs = [observe(TASK, "linear", method=Descent(**STEPS), scale=0.3, seed=seed).record for seed in (0, 0, 1)]
    starts = [float(run["loss"][0]) for run in runs]
    assert starts[0] == starts[1] != starts[2]


def refused(*arguments, **options):
    with pytest.raises(InputError) as caught:
        observe(*arguments, **options)
    return caught.value


def test_without_a_duration_it_ends_where_a_predicted_loss_has_come_to_rest():
    task = Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5)
    network = balanced_linear(2, 2, 2)
    run, predicted = (call(task, network, scale=1.0) for call in (observe, predict))
    assert float(run["time"][-1]) == pytest.approx(float(predicted["time"][-1]))


@pytest.mark.slow
def test_a_network_whose_weights_are_small_themselves_is_watched_as_long_as_one_made_small():
    small = jax.tree.map(lambda leaf: 0.01 * leaf, TwoLayer(3, 4, 3))
    given = observe(TASK, small).record
    unit, scale = at_unit_scale(small)
    assert float(given["time"][-1]) == pytest.approx(float(observe(TASK, unit, scale=scale)["time"][-1]))


def test_missing_duration_that_nothing_predicts_is_asked_for():
    assert refused(TASK, DeepLinear((3, 4, 4, 3)), scale=0.1).argument == "duration"
    assert refused(TASK, TwoLayer(3, 4, 3)).argument == "duration"  # the scale is one
    assert refused(TASK, [TwoLayer(3, 4, 3)], scale=0.1).argument == "duration"
    assert refused(TASK, TwoLayer(3, 4, 3), scale=[0.1, 0.2]).argument == "duration"


@pytest.mark.usefixtures("unchecked_types")
def test_bad_arguments_are_named():
    assert refused(TASK, "linear", scale=0.1, method="descent").argument == "method"
    assert refused(TASK, "transformer", scale=0.1).argument == "network"
    assert refused(TASK, "linear", scale=-0.1, method=GradientFlow(duration=1.0)).argument == "scale"
    assert refused(TASK, "diagonal", scale=0.1, method=GradientFlow(duration=1.0)).argument == "task"


def test_exact_variables_are_taken_on_request_or_the_request_is_refused():
    task, network = InContextRegression([1.0, 0.7], 20), LinearAttention(2, 4)
    exact = GradientFlow(duration=20.0, solver="exact")
    runs = [observe(task, network, method=each, scale=0.1).record for each in (exact, GradientFlow(duration=20.0))]
    assert [run.attrs["variables"] == "weights" for run in runs] == [False, True]
    np.testing.assert_allclose(
        loss_at(runs[0], runs[1]["time"]), runs[1]["loss"], atol=1e-3 * float(runs[1]["loss"][0])
    )
    assert refused(TASK, DeepLinear((3, 4, 3)), method=dataclasses.replace(exact, save=5)).argument == "solver"
    assert refused(TASK, TwoLayer(3, 4, 3), method=exact, probes=[strength]).argument == "solver"
    assert refused(TASK, MLP((3, 4, 3), activation="tanh"), method=exact).argument == "solver"


def test_statistics_of_the_method_stand_beside_those_of_probes():
    method = Descent(**STEPS, statistics={"size": (lambda network: (network.first**2).sum(), ())})
    record = observe(TASK, TwoLayer(3, 4, 3, seed=3), method=method, scale=0.1, probes=[strength]).record
    assert record["size"].dims == record["alignment"].dims == ("step",)


def test_a_run_out_of_time_is_recorded_as_far_as_it_got_and_says_so():
    run = observe(TASK, "linear", method=GradientFlow(duration=1000.0), scale=1e-8, seconds=1e-9).record
    assert 0 < float(run["time"][-1]) < 1000
    assert run.attrs["stopped"] == f"at t = {float(run['time'][-1]):.4g} of 1000"
    assert "stopped at t = " in " ".join(run.attrs["warnings"])
    assert (
        "stopped"
        not in observe(TASK, "linear", method=GradientFlow(duration=1e-3), scale=0.1, seconds=1e3).record.attrs
    )
