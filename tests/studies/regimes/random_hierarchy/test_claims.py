from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.regimes.random_hierarchy.claims import DECIDING, hierarchy_claims

SCALES, CRITICAL, STRINGS = np.array([0.5, 1.0, 2.0]), 256.0, 65_536.0


def measured(tree=(700.0, 600.0, 400.0), shallow=30_000.0, deep=(3000.0, 2500.0, 2000.0), drop=500.0):
    """Sample complexities of the tree and of two perceptrons, which vary little between four seeds."""
    seeds = np.array([0.95, 1.0, 1.0, 1.05])
    needed = np.array([tree, (shallow, shallow, shallow), deep])[..., None] * seeds
    return {
        "sample_complexity": needed,
        "reached": np.ones(needed.shape, bool),
        "bounded": np.ones(needed.shape, bool),
        "dropped": np.ones((3, 4), bool),
        "sensitivity_drop": np.full((3, 1), drop) * seeds,
    }


def outcomes(found):
    return {each.name: each.outcome for each in hierarchy_claims(found, SCALES, CRITICAL, STRINGS)}


def test_a_hierarchy_learned_as_published_supports_every_claim():
    assert set(outcomes(measured()).values()) == {"holds"}


@pytest.mark.parametrize(
    ("changed", "refuted"),
    [
        ({"tree": (700.0, 1200.0, 400.0)}, {"critical_samples"}),
        ({"tree": (700.0, 300.0, 400.0)}, {"upstream_fewer"}),
        ({"tree": (300.0, 600.0, 400.0)}, {"upstream_below_downstream"}),
        ({"shallow": 500.0, "deep": (300.0, 290.0, 280.0)}, {"depth"}),
        ({"shallow": 2000.0}, {"deeper_perceptron"}),
        ({"drop": 3000.0}, {"sensitivity_drop"}),
        ({"drop": 100.0}, {"sensitivity_drop"}),
        ({"deep": (6000.0, 5000.0, 4500.0)}, {"deep_perceptron_scale"}),
        ({"deep": (3000.0, 2000.0, 2500.0)}, {"upstream_fewer_perceptron"}),
    ],
)
def test_a_contrary_measurement_refutes_its_claim_only(changed, refuted):
    found = outcomes(measured(**changed))
    assert {name for name, outcome in found.items() if outcome == "does not hold"} == refuted


def test_a_lower_bound_suffices_for_the_network_that_needs_more_strings():
    found = measured()
    found["reached"][1] = False
    assert outcomes(found)["depth"] == "holds"
    found["bounded"][1] = False
    assert outcomes(found)["depth"] == "undecided"


def test_a_tree_that_did_not_learn_decides_no_deciding_claim():
    found = measured()
    found["reached"][0] = False
    assert {outcomes(found)[name] for name in DECIDING} == {"undecided"}


def test_seeds_that_disagree_leave_a_claim_undecided():
    found = measured()
    found["sample_complexity"][0, 2] = [200.0, 600.0, 900.0, 700.0]
    assert outcomes(found)["upstream_fewer"] == "undecided"


def test_a_lower_bound_never_refutes_that_a_network_needs_more_strings():
    found = measured(shallow=100.0)
    assert outcomes(found)["depth"] == "does not hold"
    found["reached"][1] = False
    assert outcomes(found)["depth"] == "undecided"
