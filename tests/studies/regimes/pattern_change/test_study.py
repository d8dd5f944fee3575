from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies import find_study
from dynascope.theory import neuron

PatternChange = find_study("pattern-change")


@pytest.fixture(scope="module")
def study():
    return PatternChange(**PatternChange.tiny)


@pytest.fixture(scope="module")
def sides(study):
    return study.observe(), study.predict()


@pytest.mark.slow
def test_theory_and_training_agree(study, sides):
    result = study.with_page(study.compare(*sides))
    assert result.verdict.outcome == "agree", result.verdict.sentence
    assert "2 of the 3 neurons" in result.meaning


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "factor"),
    [
        ("log_change_time", 1.03),
        ("used", 0.97),
        ("change_loss", 1.03),
        ("symmetric_loss", 1.03),
        ("symmetric_map", 0.97),
        ("angular_exponent", 1.02),
    ],
)
def test_a_wrong_theory_turns_the_verdict(study, sides, name, factor):
    observed, predicted = sides
    wrong = predicted.record.assign({name: predicted.record[name] * factor})
    assert study.compared(observed.record, wrong).verdict.outcome == "disagree"


@pytest.mark.slow
def test_a_theory_of_another_imbalance_turns_the_verdict(study, sides):
    other = dataclasses.replace(study, imbalances=[-2.0, 0.0, 1.2])
    wrong = study.with_tolerances(other.predicted()).assign_coords(imbalance=study.imbalances)
    assert study.compared(sides[0].record, wrong).verdict.outcome == "disagree"


@pytest.mark.slow
def test_the_error_of_gradient_descent_is_proportional_to_its_step(study):
    errors = []
    for rate in (2e-3, 1e-3):
        samples = dataclasses.replace(study, learning_rate=rate)._samples
        found = samples.trained()["log_change_time"][1] - samples.log_times
        errors.append(found[1:])  # the first neuron does not change its pattern
    np.testing.assert_allclose(errors[0] / errors[1], 2.0, rtol=0.02)


@pytest.mark.slow
def test_the_pattern_changes_before_the_loss_falls_only_upstream(study):
    found = dataclasses.replace(study, imbalances=[-1.0, 4.0])._samples.trained()
    used, start = found["used"][1], 0.1331347246
    assert used[0] > 0.99
    assert used[1] < start + 0.06
    # The final tangent kernel does not distinguish the two neurons.
    kernel = found["kernel_distance"][1]
    assert kernel.max() < 1.05 * kernel.min()


@pytest.mark.parametrize("delta", [-2.0, -1.2])
def test_a_margin_below_zero_means_that_the_pattern_never_changes(study, delta):
    samples = dataclasses.replace(study, imbalances=[delta, 0.0])._samples
    assert samples.margins[0] < 0 < samples.margins[1]
    assert samples.change.status.tolist() == ["never", "crosses"]


def test_the_symmetric_inputs_are_whitened_and_paired(study):
    inputs = study._symmetric.inputs
    np.testing.assert_allclose(inputs.T @ inputs / len(inputs), np.eye(study.dimension), atol=1e-12)
    np.testing.assert_array_equal(inputs[: study.pairs], -inputs[study.pairs :])
    a, w = study._symmetric.start
    np.testing.assert_allclose(neuron.neuron_imbalance(a, w), 0.0, atol=1e-15)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("imbalances", [0.0, -1.0]),
        ("imbalances", [-1.115]),
        ("initial_angle", 20.0),
        ("targets", [1.0]),
        ("negative_slopes", [0.8]),
        ("learning_rate", 0.009),
        ("norms", [1e-3, 2e-3]),
        ("even_part", 0.0),
    ],
)
def test_a_field_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(InputError) as refusal:
        PatternChange(**{**PatternChange.tiny, field: value})
    assert refusal.value.argument == field
