from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies import find_study
from dynascope.theory.regimes import kernel_turn

SilentAlignment = find_study("silent-alignment")


@pytest.fixture(scope="module")
def study():
    return SilentAlignment(**SilentAlignment.tiny)


@pytest.fixture(scope="module")
def sides(study):
    return study.observe(), study.predict()


@pytest.mark.slow
def test_theory_and_training_agree(study, sides):
    result = study.compare(*sides)
    assert result.verdict.outcome == "agree", result.verdict.sentence


@pytest.mark.slow
def test_the_kernel_aligns_before_the_loss_falls(sides):
    record = sides[0].record
    aligned, loss = record["kernel_alignment"].to_numpy(), (record["loss"] / record["loss"].isel(time=0)).to_numpy()
    # While the loss is constant to 1 %, the kernel reaches a misalignment below 1 %, and keeps it.
    for curve, falling in zip(aligned, loss, strict=True):
        before = falling > 0.99
        assert curve[before].max() > 0.99
        assert curve[~before].min() > 0.99
        assert falling[-1] < 0.01


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "factor"),
    [("alignment_time", 1.05), ("half_time", 0.97), ("kernel_turn", 1.2), ("kernel_alignment", 0.99)],
)
def test_a_wrong_theory_turns_the_verdict(study, sides, name, factor):
    observed, predicted = sides
    wrong = predicted.record.assign({name: predicted.record[name] * factor})
    assert study.compared(observed.record, wrong).verdict.outcome == "disagree"


def test_the_turn_on_correlated_inputs_is_not_zero_and_that_on_whitened_inputs_is():
    study = SilentAlignment(**SilentAlignment.tiny)
    turns = [kernel_turn(task.input_moment, task.cross_moment[0]) for task in (study._correlated, study._whitened)]
    assert turns[0].kernel_distance > 0.005
    assert turns[1].kernel_distance < 1e-20
    np.testing.assert_allclose(np.linalg.norm(study._correlated.cross_moment), study.target, rtol=1e-12)


@pytest.mark.parametrize(
    ("field", "value"),
    [("scales", [1e-2]), ("scales", [1e-5, 1e-5]), ("inputs", 1), ("condition", 1.0), ("misalignment", 0.5)],
)
def test_a_field_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(InputError) as refusal:
        SilentAlignment(**SilentAlignment.tiny | {field: value})
    assert refusal.value.argument == field
