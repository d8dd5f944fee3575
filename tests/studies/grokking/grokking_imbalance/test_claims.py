from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.grokking.grokking_imbalance.claims import DECIDING, imbalance_claims

ALPHAS = [0.5, 1.0, 2.0, 4.0]
EVEN = np.array([400.0, 500.0, 450.0, 520.0])


def outcomes(factors, *, lost=(), resolution=0.0):
    """Outcomes of the claims on the times to grok of the first network, with these ratios at each α.

    Args:
        factors: Ratio of the time to that at α = 1, over α, or over α and seeds.
        lost: Pairs (place of α, seed) of runs that do not generalise.
        resolution: Number of steps between two evaluations.
    """
    times = np.broadcast_to(np.reshape(factors, (len(ALPHAS), -1)), (len(ALPHAS), 4)) * EVEN
    times = np.broadcast_to(times, (4, len(ALPHAS), 4)).copy()
    known = np.ones(times.shape, bool)
    for each in lost:
        known[(0, *each)] = False
    found = {"test_step": times, "generalised": known, "train_step": times / 10, "fitted": np.ones(times.shape, bool)}
    return {each.name: each for each in imbalance_claims(found, ALPHAS, [resolution] * 4)}


@pytest.mark.parametrize(
    ("factors", "outcome"),
    [([2, 1, 0.8, 0.5], "holds"), ([0.5, 1, 1.5, 3], "does not hold"), ([1, 1, 1.2, 1.2], "does not hold")],
)
def test_the_mean_logarithm_of_the_ratio_over_upstream_networks_decides(factors, outcome):
    found = outcomes(factors)
    assert {found[each].outcome for each in DECIDING} == {outcome}
    expected = np.log(np.array(factors[2:])).mean()
    assert found["two_layer_adamw_upstream"].value == pytest.approx(expected)


def test_the_interval_contains_all_means_that_fit_the_evaluated_steps():
    claim = outcomes([2, 1, 0.8, 0.5], resolution=20.0)["two_layer_adamw_upstream"]
    extremes = [
        np.mean([np.log((factor * EVEN - before) / (EVEN - after)) for factor in (0.8, 0.5)])
        for before, after in ((20, 0), (0, 20))
    ]
    np.testing.assert_allclose(claim.interval, extremes)
    assert claim.value == pytest.approx(np.log([0.8, 0.5]).mean())


@pytest.mark.parametrize(("factor", "resolution", "outcome"), [(0.9, 5, "holds"), (0.9, 60, "undecided")])
def test_changes_below_the_resolution_are_undecided(factor, resolution, outcome):
    found = outcomes([1, 1, factor, factor], resolution=resolution)
    assert found["two_layer_adamw_upstream"].outcome == outcome
    assert found["two_layer_adamw_downstream"].outcome == "undecided"


def test_ratios_on_both_sides_of_one_are_undecided():
    ratios = [[1.0] * 4, [1.0] * 4, [0.5, 2.0, 0.7, 1.6], [0.5, 2.0, 0.7, 1.6]]
    assert outcomes(ratios)["two_layer_adamw_upstream"].outcome == "undecided"


def test_downstream_networks_that_grok_later_confirm_their_own_claim_only():
    found = outcomes([2, 1, 2, 2])
    assert found["two_layer_adamw_downstream"].outcome == "holds"
    assert found["two_layer_adamw_upstream"].outcome == "does not hold"


@pytest.mark.parametrize(
    ("factors", "lost", "outcome"),
    [
        ([1, 1, 2, 3], [(3, 0)], "does not hold"),  # true times are larger still
        ([1, 1, 0.5, 0.5], [(3, 0)], "undecided"),
        ([1, 1, 0.5, 0.5], [(1, 0)], "holds"),  # true ratios are smaller still
        ([1, 1, 2, 3], [(1, 0)], "undecided"),
        ([1, 1, 2, 3], [(1, 0), (3, 1)], "undecided"),
        ([1, 1, 0.5, 0.5], [(0, 0)], "holds"),  # a downstream run
    ],
)
def test_a_threshold_that_is_not_reached_leaves_only_outcomes_that_no_later_time_can_change(factors, lost, outcome):
    claim = outcomes(factors, lost=lost)["two_layer_adamw_upstream"]
    assert claim.outcome == outcome
    assert bool(claim.why_undecided) == (outcome == "undecided")


def test_runs_of_one_network_do_not_affect_the_claims_about_another():
    assert outcomes([1, 1, 2, 3], lost=[(1, 0)])["transformer_sgd_upstream"].outcome == "does not hold"
