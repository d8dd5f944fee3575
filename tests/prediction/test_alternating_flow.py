import numpy as np
import pytest

from dynascope import GradientFlow, compare, observe, predict
from dynascope.networks import NeuronSum, TwoLayer
from dynascope.prediction.alternating_flow import predict_by_alternation
from dynascope.results import training_time
from dynascope.tasks import Task

# Orthogonal inputs: both jumps of a ReLU network are known (arXiv:2206.00939), at 1/‖D₊‖ and 1/‖D₋‖.
LENGTHS, TARGETS = np.array([1.0, 1.2, 0.9, 1.1]), np.array([1.5, 1.0, -0.8, -0.9])
ORTHOGONAL = Task(np.diag(LENGTHS), TARGETS[:, None])
LIMITS = [4 / np.hypot(1.5, 1.2), 4 / np.hypot(0.72, 0.99)]


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def staircase():
    return predict(ORTHOGONAL, TwoLayer(4, 12, 1, activation="relu"), scale=1e-8).record


def test_accelerated_times_are_limits(staircase):
    # The offsets cancel between two scales up to the alignment that is left, of order scale.
    np.testing.assert_allclose(staircase["accelerated_time"], LIMITS, rtol=1e-5)
    np.testing.assert_allclose(staircase["loss_after"], [(0.8**2 + 0.9**2) / 8, 0.0], atol=1e-6)


def test_the_features_are_the_weights_of_the_new_neuron_on_the_plateau(staircase):
    first = staircase["input_feature"].to_numpy()[0]
    # The neuron fits its orthogonal samples exactly; at activation, its weights are LENGTHS · TARGETS.
    expected = np.maximum(TARGETS, 0) / LENGTHS
    np.testing.assert_allclose(first / np.linalg.norm(first), expected / np.linalg.norm(expected), atol=1e-4)
    # A balanced neuron carries half of its square in either layer.
    np.testing.assert_allclose(staircase["output_feature"].to_numpy()[:, 0], [0.5**0.5, -(0.5**0.5)], rtol=1e-4)
    assert staircase.attrs["network"] == "relu"
    effect = np.linalg.norm(expected * LENGTHS * np.sqrt(3) / 4)  # the standard deviation of a one among four samples
    assert staircase["output_effect"].to_numpy()[0, 0] == pytest.approx(effect, rel=1e-4)


def test_training_agrees_with_it_and_not_with_a_wrong_one(staircase):
    network = TwoLayer(4, 12, 1, activation="relu")
    run = observe(ORTHOGONAL, network, method=GradientFlow(duration=training_time(staircase, 1e-8)), scale=1e-8).record
    assert compare(run, staircase).verdict.outcome == "agree"
    wrong = staircase.assign(loss_after=("jump", [0.3, 0.0]), loss_before=("jump", [0.5875, 0.3]))
    assert compare(run, wrong).verdict.outcome == "disagree"


def test_plateaus_too_short_to_rest_on_are_marked():
    record = predict(ORTHOGONAL, TwoLayer(4, 12, 1, activation="relu"), scale=1e-3, curve=False).record
    assert record["slow"].to_numpy().tolist() == [False, True]
    assert record["reason"].to_numpy()[1]


def test_a_phase_takes_no_more_steps_than_it_may():
    record = predict(ORTHOGONAL, TwoLayer(4, 12, 1, activation="relu"), scale=1e-8, curve=False, max_steps=3).record
    assert record.sizes["jump"] == 0
    assert "max_steps" in " ".join(record.attrs["warnings"])


def test_a_prediction_ends_after_so_many_operations_and_not_after_so_many_seconds(monkeypatch):
    network = TwoLayer(4, 12, 1, activation="relu")
    whole = predict_by_alternation(ORTHOGONAL, network, scale=1e-8)
    assert whole.sizes["jump"] == 2
    monkeypatch.setattr("dynascope.prediction.alternating_flow._OPERATIONS", 1e-3)
    record = predict_by_alternation(ORTHOGONAL, network, scale=1e-8)
    warning = record.attrs["warnings"][-1]
    assert all(each in warning for each in ("1 jump", "max_steps"))
    # The other scale looks for as many, so that there is a slope.
    np.testing.assert_array_equal(record["accelerated_time"], whole["accelerated_time"][:1])


def test_a_user_network_goes_by_the_name_of_its_type():
    def neuron(weights, x):
        return weights[-1] * (x @ weights[:-1])[:, None]

    rows = TwoLayer(4, 3, 1, seed=2).neurons
    record = predict_by_alternation(ORTHOGONAL, NeuronSum(rows, neuron, degree=2), scale=1e-4)
    assert record.attrs["network"] == "NeuronSum"
    assert "input_feature" not in record
    assert (record.sizes["jump"], record.attrs["complete"]) == (1, 1)
    assert record.attrs["warnings"] == []
    moment = LENGTHS * TARGETS / 4
    # A linear neuron grows at the norm of the cross moment.
    assert record["accelerated_time"].item() == pytest.approx(1 / np.linalg.norm(moment), rel=1e-5)
