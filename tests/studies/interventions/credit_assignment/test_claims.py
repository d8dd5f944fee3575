from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.interventions.credit_assignment.claims import (
    DECIDING,
    credit_claims,
    transfer_losses,
    working_shares,
)
from dynascope.studies.interventions.credit_assignment.runs import GRID_RULES

SEEDS, DEPTHS = 8, (2, 4)
DRAW = np.random.default_rng(0)
ANGLES = {0: 0.0, 1: 88.0, 2: 36.0, 3: 70.0, 4: 12.0, 5: 28.0, 6: 0.5, 7: 0.5}


def measured(**changes):
    """Measurements of eight seeds that fulfil every claim."""
    spread = 0.01 * DRAW.normal(size=(8, 2, SEEDS))
    accuracy = 0.95 + spread
    accuracy[1] = [np.full(SEEDS, 0.9), np.full(SEEDS, 0.8)]
    share, loss = (np.full((5, SEEDS), value) + 0.01 * DRAW.normal(size=(5, SEEDS)) for value in (0.9, 0.02))
    mirror = GRID_RULES.index("weight mirror")
    share[mirror] -= 0.3
    loss[mirror] += 0.3
    found = {
        "weight_angle": np.array([np.full((2, SEEDS), ANGLES[k]) for k in range(8)]) + spread,
        "test_accuracy": accuracy,
        "noisy_angle": np.full((2, SEEDS), 10.0),
        "noise_floor": np.full((2, SEEDS), 10.1),
        "noisy_accuracy": np.full((2, SEEDS), 0.95),
        "feedback_alignment_accuracy": np.full(SEEDS, 0.8),
        "working_share": share,
        "transfer_loss": loss,
    }
    return found | changes


def outcomes(**changes):
    return {claim.name: claim.outcome for claim in credit_claims(measured(**changes), DEPTHS)}


def test_every_claim_is_decided_by_measurements_that_fulfil_it():
    assert outcomes() == dict.fromkeys(DECIDING, "holds")


@pytest.mark.parametrize(
    ("changes", "refuted"),
    [
        ({"noise_floor": np.full((2, SEEDS), 8.0)}, "noise floor"),
        ({"noisy_accuracy": 0.7 + 0.01 * DRAW.normal(size=(2, SEEDS))}, "noisy accuracy"),
        ({"weight_angle": 100 - measured()["weight_angle"]}, "angle, symmetric alignment < weight mirror"),
    ],
)
def test_opposite_measurements_refute_a_claim(changes, refuted):
    assert outcomes(**changes)[refuted] == "does not hold"


def test_equal_or_diverged_runs_decide_nothing():
    found = outcomes(working_share=np.ones((5, SEEDS)), noisy_accuracy=np.full((2, SEEDS), np.nan))
    assert found["fragility, symmetric alignment"] == "undecided"
    assert found["noisy accuracy"] == "undecided"


def test_the_share_counts_the_cells_of_the_grid_that_train():
    accuracy = np.array([[[[0.9, 0.1], [0.7, 0.95]]]])
    np.testing.assert_allclose(working_shares(accuracy, 0.7), [[1.0, 0.5]])


def test_the_loss_of_transfer_compares_the_tuned_cell_with_the_best_one():
    first = np.array([[[[0.9], [0.5]]], [[[0.2], [0.4]]]])
    other = np.array([[[[0.6], [0.8]]], [[[0.3], [0.7]]]])
    np.testing.assert_allclose(transfer_losses(first, other), [[0.2], [0.0]], atol=1e-15)
