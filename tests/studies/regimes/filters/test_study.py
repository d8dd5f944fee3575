"""The study of first-layer filters: its claims, its networks, and bad input by name."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.probes.filters import FilterScores
from dynascope.studies import find_study
from dynascope.studies.regimes.filters.claims import DECIDING, filter_claims
from dynascope.studies.regimes.filters.experiment import Experiment
from dynascope.studies.regimes.filters.network import filter_network

Filters = find_study("filters")
NOISE = FilterScores(0.22, 0.09, 4.05)


def measured(**changes):
    """Scores of networks whose upstream filters are structured, shape (scales, seeds)."""
    spread = np.array([-0.001, 0.0, 0.001])
    values = {"gabor": (0.22, 0.35), "concentration": (0.09, 0.15), "roughness": (4.05, 3.2)}
    values |= {"test_accuracy": (0.38, 0.41), "movement": (0.1, 3.0)}
    return {name: np.array(each)[:, None] + np.array([[1], [-1]]) * spread for name, each in (values | changes).items()}


def outcomes(found):
    return {each.name: each.outcome for each in filter_claims(found, NOISE)}


def test_structured_upstream_filters_support_all_claims():
    assert set(outcomes(measured()).values()) == {"holds"}
    assert set(DECIDING) < outcomes(measured()).keys()


@pytest.mark.parametrize(
    ("name", "values", "claims"),
    [
        ("gabor", (0.35, 0.22), {"gabor_upstream"}),
        ("concentration", (0.15, 0.05), {"concentration_upstream", "concentration_above_noise"}),
        ("roughness", (4.05, 5.0), {"roughness_upstream", "roughness_above_noise"}),
        ("movement", (3.0, 0.1), {"movement_upstream"}),
    ],
)
def test_a_changed_score_refutes_its_claims_only(name, values, claims):
    found = outcomes(measured(**{name: values}))
    assert {key for key, outcome in found.items() if outcome == "does not hold"} == claims


def test_standard_networks_are_compared_only_if_there_are_some():
    found = {name: np.concatenate([each, each[-1:]]) for name, each in measured().items()}
    claims = {each.name: each for each in filter_claims(found, NOISE, standard=1)}
    assert claims["gabor_against_standard"].value == 0
    assert "gabor_against_standard" not in outcomes(measured())


def test_networks_that_learned_nothing_decide_no_claim():
    assert set(outcomes(measured(test_accuracy=(0.25, 0.4))).values()) == {"undecided"}


def test_the_relative_scale_leaves_the_function_unchanged_and_moves_the_layers():
    options = {"kernel": 7, "filters": 3, "positions": 9, "width": 5, "seed": 2}
    one, other = (filter_network(scale, **options) for scale in (1.0, 4.0))
    x = np.random.default_rng(0).normal(size=(6, 9, 49))
    x = jnp.asarray(x, jnp.float32)
    np.testing.assert_allclose(one(x), other(x), atol=1e-5)
    np.testing.assert_allclose(one.filters, 4 * other.filters, rtol=1e-6)
    np.testing.assert_allclose(4 * one.last, other.last, rtol=1e-6)


def test_the_learning_rate_balances_the_contributions_of_the_layers():
    experiment = Experiment(Filters(learning_rate=0.2))
    assert experiment.learning_rate(1.0) == pytest.approx(0.2)
    assert experiment.learning_rate(4.0) == pytest.approx(0.6 / (16 + 1 + 1 / 16))
    assert experiment.learning_rate(0.25) == pytest.approx(experiment.learning_rate(4.0))


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("kernel", {"kernel": 6}),
        ("kernel", {"kernel": 33}),
        ("stride", {"stride": 13}),
        ("relative_scales", {"relative_scales": [1.0, 4.0]}),
        ("relative_scales", {"relative_scales": [0.25, 1.0]}),
        ("batch_size", {"patches": 20, "batch_size": 81}),
    ],
)
def test_bad_fields_are_rejected_by_name(field, values):
    with pytest.raises(InputError) as caught:
        Filters(**values)
    assert caught.value.argument == field
