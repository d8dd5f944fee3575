from __future__ import annotations

import functools

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies import find_study

AgfDiagonal = find_study("agf-diagonal")
SCALES = {2: 1e-12, 3: 1e-3, 4: 1e-2, 5: 3e-2}
LIMITS = np.array([0.90152357484148, 2.26711189270040, 4.70381533762842, 12.71530677967437])


@functools.cache
def ran(depth, scale):
    """The study, and what it found."""
    study = AgfDiagonal(depth=depth, scale=scale)
    return study, study.run()


@pytest.mark.parametrize("depth", SCALES)
def test_theory_and_experiment_agree_at_every_depth(depth):
    _, tree = ran(depth, SCALES[depth])
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert not tree.predicted["slow"].any()
    # Slopes are free of the offset of the times.
    np.testing.assert_allclose(tree.residual["slope"] * (depth * (depth - 2) or 1), LIMITS, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("depth", SCALES)
@pytest.mark.parametrize("seed", [0])
def test_theory_and_experiment_agree_on_random_data(depth, seed):
    tree = AgfDiagonal(data="gaussian", depth=depth, scale=SCALES[depth], seed=seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


def test_the_depth_changes_the_clock_and_not_the_path():
    records = [AgfDiagonal(depth=depth, scale=scale).predict().record for depth, scale in SCALES.items()]
    for record, depth in zip(records, SCALES, strict=True):
        np.testing.assert_array_equal(record["coefficient"], records[0]["coefficient"])
        np.testing.assert_array_equal(record["loss_after"], records[0]["loss_after"])
        assert record.attrs["degree"] == depth
    assert list(records[0]["learned"].to_numpy()) == ["learns x1", "learns x3", "learns x2; drops x1", "learns x4"]


@pytest.mark.parametrize("scale", [1e-12, 1e-100])
def test_times_are_off_by_an_offset_that_does_not_grow_as_the_scale_falls(scale):
    _, tree = ran(2, scale)
    predicted, seen = tree.predicted["jump_time"], tree.residual["observed_jump_time"]
    np.testing.assert_allclose(seen - predicted, [0.009, -1.28, 2.53, -9.83], atol=0.005)


def test_a_prediction_with_another_clock_is_refuted():
    study, tree = ran(3, SCALES[3])
    predicted = study.predict().record
    wrong = predicted.assign(accelerated_time=predicted["accelerated_time"] * 3 / 2.9)
    tree = study.compared(tree.observed, wrong)
    assert tree.verdict.outcome == "disagree"
    judged = tree.quantities
    assert [name for name, each in judged.items() if not each.agrees] == ["slope"]


def test_a_prediction_that_keeps_the_input_that_is_dropped_is_refuted():
    study, tree = ran(3, SCALES[3])
    predicted = study.predict().record
    # The level that least squares of all three inputs learned so far would have.
    x, y = study._task.inputs, study._task.targets[:, 0]
    kept = np.sum((y - x[:, :3] @ np.linalg.lstsq(x[:, :3], y, rcond=None)[0]) ** 2) / 6
    after, before = predicted["loss_after"].copy(), predicted["loss_before"].copy()
    after[2], before[3] = kept, kept
    tree = study.compared(tree.observed, predicted.assign(loss_after=after, loss_before=before))
    assert tree.verdict.outcome == "disagree"


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("fields", "name"),
    [
        *(({"scale": bad}, "scale") for bad in (1.0, 2.0, 0.0, -1.0, np.nan, np.inf)),
        ({"depth": 3, "scale": 0.9}, "scale"),
        ({"depth": 6}, "scale"),
        *(({"depth": bad}, "depth") for bad in (1, 0, -1)),
        ({"data": "digits"}, "data"),
        ({"data": "gaussian", "samples": 1}, "samples"),
        ({"data": "gaussian", "seed": -1}, "seed"),
    ],
)
def test_a_field_out_of_range_is_refused_by_name(fields, name):
    with pytest.raises(InputError) as refusal:
        AgfDiagonal(**fields).run()
    assert refusal.value.argument == name


def test_training_from_a_large_scale_lasts_until_the_last_plateau():
    tree = AgfDiagonal(data="gaussian", samples=5, inputs=1, scale=0.1, seed=71).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
