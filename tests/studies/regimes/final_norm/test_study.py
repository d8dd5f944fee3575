from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.regimes.final_norm.claims import DECIDING, norm_claims
from dynascope.studies.regimes.final_norm.study import FinalNorm

FOUND = {
    "norm": np.array([[1.0, 1.1, 0.9], [2.0, 2.1, 2.2], [5.0, 5.1, 5.2]]),
    "test_accuracy": np.array([[0.9, 0.91, 0.92], [0.8, 0.81, 0.79], [0.5, 0.51, 0.52]]),
    "centred_accuracy": np.array([[0.9, 0.91, 0.92], [0.9, 0.91, 0.92], [0.8, 0.82, 0.81]]),
    "accuracy": np.ones((3, 3)),
}


def outcomes(**changed):
    return {each.name: each.outcome for each in norm_claims(FOUND | changed)}


def test_the_contrary_order_is_refuted():
    assert set(outcomes().values()) == {"holds"}
    backwards = outcomes(norm=FOUND["norm"][::-1], test_accuracy=FOUND["test_accuracy"][::-1])
    assert backwards.pop("centred") == "holds"
    assert set(backwards.values()) == {"does not hold"}


def test_networks_that_learned_nothing_decide_nothing():
    for changed in ({"accuracy": np.full((3, 3), 0.99)}, {"test_accuracy": FOUND["test_accuracy"] - 0.8}):
        assert set(outcomes(**changed).values()) == {"undecided"}


@pytest.mark.slow
def test_small_networks_have_the_claimed_order():
    result = FinalNorm(**FinalNorm.tiny).run()
    assert all(result.claims[name].outcome == "holds" for name in DECIDING)
    assert all(each.agrees for each in result.checks.values())


@pytest.mark.parametrize(
    ("field", "value"),
    [("scales", [1.0, 2.0]), ("scales", [0.0, 1.0]), ("seeds", 1), ("samples", 10), ("final_loss", 0.5), ("width", 0)],
)
def test_a_field_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(InputError) as refusal:
        FinalNorm(**{**FinalNorm.tiny, field: value})
    assert refusal.value.argument == field
