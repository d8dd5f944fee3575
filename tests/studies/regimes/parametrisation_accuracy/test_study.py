from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.regimes.parametrisation_accuracy.claims import DECIDING, PAIRS, accuracy_claims
from dynascope.studies.regimes.parametrisation_accuracy.study import ParametrisationAccuracy

NAMES = [name for pair in PAIRS.items() for name in pair]
HIGH, LOW = np.array([0.9, 0.91, 0.92]), np.array([0.7, 0.72, 0.71])
FOUND = {
    "test_accuracy": np.array([HIGH, LOW] * 3),
    "centred_accuracy": np.array([HIGH, LOW] * 3),
    "feature_change": np.array([HIGH, LOW] * 3),
    "accuracy": np.ones((6, 3)),
}


def outcomes(**changed):
    return {each.name: each.outcome for each in accuracy_claims(FOUND | changed, NAMES)}


def test_the_contrary_order_is_refuted():
    assert set(outcomes().values()) == {"holds"}
    backwards = outcomes(test_accuracy=FOUND["test_accuracy"][::-1])
    assert {backwards[name] for name in DECIDING} == {"does not hold"}


def test_networks_that_learned_nothing_decide_nothing():
    for changed in ({"accuracy": np.full((6, 3), 0.99)}, {"test_accuracy": FOUND["test_accuracy"] - 0.6}):
        assert set(outcomes(**changed).values()) == {"undecided"}


def test_equal_networks_decide_nothing():
    assert set(outcomes(test_accuracy=np.full((6, 3), 0.8)).values()) == {"holds", "undecided"}
    assert {outcomes(test_accuracy=np.full((6, 3), 0.8))[name] for name in DECIDING} == {"undecided"}


@pytest.mark.slow
def test_small_networks_coincide_at_the_base_width_and_have_the_claimed_order():
    result = ParametrisationAccuracy(**ParametrisationAccuracy.tiny).run()
    assert all(result.claims[name].outcome == "holds" for name in DECIDING)
    assert all(each.agrees for each in result.checks.values())
    found = result.observed["test_accuracy"].transpose("width", "architecture", "seed").to_numpy()
    np.testing.assert_array_equal(found[0], np.broadcast_to(found[0, 0], found[0].shape))


@pytest.mark.parametrize(
    ("field", "value"),
    [("widths", [32, 64]), ("widths", [512, 32]), ("seeds", 1), ("samples", 10), ("final_loss", 0.5)],
)
def test_a_field_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(InputError) as refusal:
        ParametrisationAccuracy(**{**ParametrisationAccuracy.tiny, field: value})
    assert refusal.value.argument == field
