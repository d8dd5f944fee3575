from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest
from drawn_modules import drawn

from dynascope import compare, observe, predict, which
from dynascope.errors import InputError
from dynascope.networks import (
    MLP,
    DeepLinear,
    DiagonalLinear,
    LinearAttention,
    MergedAttention,
    TwoLayer,
    balanced_linear,
)
from dynascope.tasks import InContextRegression, Task, regression
from dynascope.theory.attention.levels import attention_levels
from dynascope.theory.staircase import diagonal_staircase, linear_staircase

TASK = regression(samples=30, input_covariance=[2.0, 1.0, 0.5], target_map=np.diag([1.0, -0.6, 0.4])[:, :2], noise=0.1)
ONE_TARGET = Task(TASK.inputs, TASK.targets[:, :1], feature_names=("age", "height", "weight"))


def test_linear_prediction_is_that_of_the_theory_for_the_actual_weights():
    network = TwoLayer(3, 5, 2, seed=4)
    record = predict(TASK, network, scale=1e-6).record
    steps = linear_staircase(
        TASK.cross_moment,
        TASK.input_moment,
        TASK.target_power,
        scale=1e-6,
        first=network.first,
        second=network.second,
    )
    np.testing.assert_array_equal(record["jump_time"], steps.times)
    np.testing.assert_array_equal(record["accelerated_time"], steps.accelerated_times)
    np.testing.assert_array_equal(record["loss_before"], steps.levels[:-1])
    np.testing.assert_array_equal(record["loss_after"], steps.levels[1:])
    np.testing.assert_array_equal(record["learned_map"], steps.features["learned_map"][1])
    assert record["jump"].to_numpy().tolist() == [1, 2]
    assert record["output_feature"].dims == ("jump", "target")
    assert record["input_feature"].dims == ("jump", "feature")
    assert record.attrs["theory"] == steps.theory
    assert record.attrs["network"] == "linear"


def test_diagonal_prediction_is_that_of_the_theory():
    record = predict(ONE_TARGET, DiagonalLinear(3), scale=1e-6, curve=False).record
    steps = diagonal_staircase(
        ONE_TARGET.inputs, ONE_TARGET.targets[:, 0], scale=1e-6, feature_names=ONE_TARGET.feature_names
    )
    np.testing.assert_array_equal(record["jump_time"], steps.times)
    np.testing.assert_array_equal(record["coefficient"], steps.features["coefficient"][1])
    np.testing.assert_array_equal(record["slow"], [bool(reason) for reason in steps.slow])
    assert record["reason"].to_numpy().tolist() == list(steps.slow)
    assert record["feature"].to_numpy().tolist() == ["age", "height", "weight"]
    assert "age" in str(record["learned"][0].values)
    assert record.attrs["network"] == "diagonal"


@pytest.mark.parametrize("network", ["linear", "diagonal"])
def test_record_says_what_it_is(network):
    record = predict(ONE_TARGET, network, scale=1e-6).record
    assert record.attrs["scale"] == 1e-6
    assert record.attrs["degree"] == 2
    np.testing.assert_allclose(record.attrs["initial_loss"], ONE_TARGET.target_power / 2)
    assert record.attrs["warnings"] == []
    assert "arXiv" in record.attrs["reference"]
    assert record.attrs["jump_time_tolerance"] > 0
    assert record.attrs["jump_time_tolerance_reason"]


def test_kinds_by_name_are_the_networks_of_that_seed():
    by_name, by_module = (
        predict(TASK, "linear", scale=1e-6, seed=3).record,
        predict(TASK, TwoLayer(3, 50, 2, seed=3), scale=1e-6).record,
    )
    np.testing.assert_array_equal(by_name["jump_time"], by_module["jump_time"])
    other = predict(TASK, "linear", scale=1e-6, seed=4).record
    assert np.all(other["jump_time"] != by_name["jump_time"])
    np.testing.assert_array_equal(other["accelerated_time"], by_name["accelerated_time"])


def test_deep_network_of_one_hidden_layer_is_a_two_layer_network():
    network = DeepLinear((3, 5, 2), seed=4)
    same = TwoLayer(3, 5, 2)
    same = eqx.tree_at(lambda net: (net.first, net.second), same, network.weights)
    np.testing.assert_array_equal(
        predict(TASK, network, scale=1e-6)["jump_time"], predict(TASK, same, scale=1e-6)["jump_time"]
    )


def test_scale_of_the_module_multiplies_the_scale():
    for whole, part in (
        (
            predict(TASK, TwoLayer(3, 5, 2), scale=1e-6, curve=False).record,
            predict(TASK, TwoLayer(3, 5, 2, scale=1e-2), scale=1e-4, curve=False).record,
        ),
        (
            predict(ONE_TARGET, DiagonalLinear(3), scale=1e-6, curve=False).record,
            predict(ONE_TARGET, DiagonalLinear(3, scale=1e-2), scale=1e-4, curve=False).record,
        ),
    ):
        np.testing.assert_allclose(part["jump_time"], whole["jump_time"], rtol=1e-9)
        np.testing.assert_allclose(part["accelerated_time"], whole["accelerated_time"])


def test_tolerances_shrink_as_the_scale_does():
    coarse, fine = (predict(ONE_TARGET, "diagonal", scale=scale).record for scale in (1e-4, 1e-40))
    np.testing.assert_allclose(fine.attrs["jump_time_tolerance"], coarse.attrs["jump_time_tolerance"] / 10)


def test_networks_without_a_theory_are_told_which_have_one():
    with pytest.raises(InputError) as caught:
        predict(TASK, DeepLinear((3, 5, 5, 2)), scale=1e-6)
    assert caught.value.argument == "network"
    assert "balanced layers: 0.3" in str(caught.value)


def test_a_staircase_that_is_cut_short_says_so():
    network = TwoLayer(3, 5, 2, seed=4)
    whole, cut = predict(TASK, network, scale=1e-6).record, predict(TASK, network, scale=1e-6, jumps=1).record
    assert (whole.sizes["jump"], whole.attrs["complete"]) == (2, 1)
    assert (cut.sizes["jump"], cut.attrs["complete"]) == (1, 0)
    assert cut["jump_time"][0] == whole["jump_time"][0]


@pytest.mark.parametrize(("kind", "theory"), [(LinearAttention, "attention"), (MergedAttention, "merged attention")])
def test_attention_on_in_context_regression_has_a_closed_form(kind, theory):
    task = InContextRegression([1.0, 0.5], 10)
    record = predict(task, kind(2, 3, seed=1), scale=1e-3).record
    assert record.attrs["network"] == theory
    assert record["loss_after"][-1] == pytest.approx(attention_levels([1.0, 0.5], 10)[-1], rel=1e-12)


@pytest.mark.usefixtures("unchecked_types")
def test_bad_arguments_are_named():
    def attempt(task=TASK, network="linear", scale=1e-6):
        with pytest.raises(InputError) as caught:
            predict(task, network, scale=scale)
        return caught.value.argument

    assert [attempt(scale=scale) for scale in (0.0, -1.0, 1.0, float("nan"), float("inf"))] == ["scale"] * 5
    assert attempt(network="transformer") == "network"
    assert attempt(network=TwoLayer(4, 5, 2)) == "network"
    assert attempt(network=TwoLayer(3, 5, 1)) == "network"
    assert attempt(network=DiagonalLinear(3)) == "task"
    assert attempt(task=ONE_TARGET, network=DiagonalLinear(4)) == "network"
    moved = eqx.tree_at(lambda net: net.v, DiagonalLinear(3), np.array([0.0, 0.1, 0.0]))
    assert attempt(task=ONE_TARGET, network=moved) == "network"
    uneven = eqx.tree_at(lambda net: net.u, DiagonalLinear(3), np.array([1.0, 2.0, 1.0]))
    assert attempt(task=ONE_TARGET, network=uneven) == "network"


def test_from_weights_that_are_not_small_what_applies_there_is_chosen():
    draw = np.random.default_rng(0)
    x = draw.normal(size=(20, 3))
    task = Task(x, x.sum(axis=1))
    predicted = predict(task, TwoLayer(3, 2000, 1, activation="relu"), scale=6.0).record
    assert predicted.attrs["theory_name"] == "kernel-regression"
    assert predicted.attrs["theory_choice"].startswith("kernel-regression")
    with pytest.raises(InputError, match="scale is 2") as caught:
        predict(task, TwoLayer(3, 4, 1, activation="relu"), scale=2.0)
    assert caught.value.argument == "scale"


def test_what_almost_applies_is_offered_where_nothing_does():
    draw = np.random.default_rng(0)
    task = Task(draw.normal(size=(20, 3)), draw.normal(size=(20, 1)))
    with pytest.raises(InputError, match="select theory='kernel-regression'") as caught:
        predict(task, MLP((3, 20, 20, 1), activation="tanh"), scale=2.5)
    assert caught.value.argument == "network"


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("network", "remedy"),
    [
        (TwoLayer, r"give an instance, such as TwoLayer\(…\)"),
        ({"0.weight": np.ones((8, 3))}, "give a torch.nn.Module"),
        (None, "give a torch.nn.Module"),
        (lambda x: x, "give a torch.nn.Module"),
    ],
)
@pytest.mark.parametrize("scale", [None, 1e-3])
def test_what_is_no_network_is_rejected_as_that_and_not_for_its_scale(network, remedy, scale):
    with pytest.raises(InputError, match=remedy) as caught:
        predict((np.eye(3), np.ones(3)), network, scale=scale)
    assert caught.value.argument == "network"


def test_a_theory_that_does_not_exist_is_told_from_one_that_does_not_fit():
    data = np.eye(3), np.ones(3)
    with pytest.raises(InputError, match=r"there is no theory 'alternating': choose .*alternating-flow"):
        predict(data, "relu", scale=1e-3, theory="alternating")
    with pytest.raises(
        InputError, match=r"the theory 'linear-staircase' does not cover this network \(two-layer relu network\)"
    ):
        predict(data, "relu", scale=1e-3, theory="linear-staircase")


def test_targets_of_zero_are_named_and_not_the_network():
    with pytest.raises(InputError, match="targets of the task are zero") as caught:
        predict((np.random.default_rng(0).normal(size=(9, 3)), np.zeros(9)), "relu", scale=1e-3)
    assert caught.value.argument == "task"


@pytest.mark.parametrize("verb", [predict, observe, which])
def test_the_path_of_a_file_is_no_task_and_the_error_says_how_to_read_it(verb):
    with pytest.raises(InputError, match=r"read the file with read_table\(path") as caught:
        verb("wine.csv", "linear")
    assert caught.value.argument == "task"


@pytest.mark.slow
def test_a_module_with_biases_learns_as_predicted_and_not_half_as_fast():
    draw = np.random.default_rng(0)
    inputs = draw.normal(size=(60, 4))
    targets = np.maximum(inputs[:, :1] + 0.5, 0) - 0.5 * np.abs(inputs[:, 1:2] - 0.3)
    task = Task(inputs, targets - targets.mean())
    module = drawn(eqx.nn.MLP, 4, 1, 30, 1, jax.nn.relu)
    module = jax.tree.map(lambda leaf: 1e-4 * leaf if eqx.is_array(leaf) else leaf, module)
    predicted, observed = predict(task, module), observe(task, module)
    assert compare(observed, predicted).verdict.outcome == "agree"
    record = predicted.record
    late = record.assign(jump_time=2 * record["jump_time"]).drop_dims("time")
    assert compare(observed, late).verdict.outcome == "disagree"


def test_a_misspelt_kind_is_answered_with_all_kinds_and_the_nearest():
    with pytest.raises(InputError, match=r"did you mean 'linear'\? .* \('linear', 'diagonal', 'relu', .*\)"):
        predict(TASK, "linaer")


def test_a_scale_that_is_neither_small_nor_lazy_is_refused_with_the_measured_movement():
    words = r"scale is 1.0, at which no theory applies, .* neither small \(below 1\) nor lazy \(lazy training: "
    with pytest.raises(InputError, match=words) as refused:
        predict(ONE_TARGET, "relu", scale=1.0)
    assert refused.value.argument == "scale"
    with pytest.raises(InputError, match=r"is not small \(below 1\): choose a scale below one"):
        predict(ONE_TARGET, "relu", scale=1.0, normalised=True)


def test_an_exact_theory_takes_the_place_of_a_staircase_that_does_not_apply():
    task = Task(np.eye(3) * 3**0.5, np.diag([3.0, 2.0, 1.0]))
    network = balanced_linear(3, 3, 3, balance=1.0, seed=0)
    chosen = {scale: predict(task, network, scale=scale).record.attrs["theory_name"] for scale in (1e-3, 0.5)}
    assert chosen == {1e-3: "linear-staircase", 0.5: "balanced"}
