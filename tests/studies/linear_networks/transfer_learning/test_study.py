from __future__ import annotations

import numpy as np
import pytest
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies import find_study

TransferLearning = find_study("transfer-learning")


@pytest.fixture(scope="module")
def tiny():
    return tiny_run("transfer-learning")


@pytest.mark.slow
def test_unused_directions_are_learned_from_a_large_first_layer_only():
    predicted = TransferLearning(dimension=3, rank=1, times=10).predict()
    # Each of the two unused directions has half of a squared target of one.
    np.testing.assert_allclose(predicted["floor"], [0, 0, 1, 1], atol=1e-12)
    np.testing.assert_allclose(predicted["speed"][:, 1:], np.array([[3.0], [1.0], [0.0], [0.0]]) * [1, 1], atol=1e-12)
    assert np.all(np.diff(predicted["speed"], axis=0) <= 0)


@pytest.mark.slow
def test_the_loss_of_the_readout_is_what_its_modes_leave():
    predicted = TransferLearning(dimension=3, rank=1, times=10).predict()
    left = np.sum((1 - predicted["mode_strength"].to_numpy()) ** 2, axis=-1) / 2
    np.testing.assert_allclose(predicted["loss"], left, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["speed", "reachable_share"])
def test_a_wrong_speed_or_floor_is_refuted(tiny, quantity):
    study, predicted, observed = tiny.study, tiny.predicted, tiny.observed
    # What a large second layer forgets: half of the new target.
    np.testing.assert_allclose(observed["reachable_share"], [1.0, 0.5], atol=1e-12)
    wrong = study.compared(observed, predicted.assign({quantity: 1.001 * predicted[quantity]}))
    assert wrong.verdict.outcome == "disagree"
    assert f"{quantity}_residual" in wrong.residual


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("weakest", bad) for bad in (0.0, -1.0, 5.0, np.nan)),
        *(("times", bad) for bad in (1, 0)),
        *(("balances", bad) for bad in (1, 3, 0)),
        *(("largest_balance", bad) for bad in (0.0, np.inf)),
        *(("rank", bad) for bad in (0, 3)),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as refusal:
        TransferLearning(**TransferLearning.tiny | {field: value})
    assert refusal.value.argument == field


@pytest.mark.slow
@pytest.mark.parametrize(
    "fields",
    [
        # What rounding leaves of a direction that the old task did not use is over √|λ| as large, and no feature.
        {"strongest": 5.5, "weakest": 0.5, "largest_balance": 0.04, "seed": 795},
        # Directions whose speeds are four powers of ten apart.
        {"strongest": 0.2, "weakest": 0.2, "largest_balance": 10.0},
    ],
)
def test_small_and_large_balances_agree(fields):
    tree = TransferLearning(**TransferLearning.tiny | fields).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    np.testing.assert_allclose(tree.predicted["reachable_share"], [1.0, 0.5], rtol=1e-12)
