from __future__ import annotations

import itertools

import numpy as np
import pytest

from dynascope.studies.regimes.random_hierarchy.measures import crossing, input_sensitivity, sensitivity
from dynascope.tasks import RandomHierarchy

RULES = (
    [[(0, 1), (1, 2)], [(2, 0), (1, 1)]],
    [[(0, 0), (1, 2)], [(0, 1), (2, 2)], [(1, 0), (2, 1)]],
)


def test_the_sensitivity_is_the_mean_over_all_pairs():
    draw = np.random.default_rng(0)
    features, exchanged = draw.normal(size=(2, 30, 5))
    pairs = [np.sum((features[i] - features[j]) ** 2) for i, j in itertools.permutations(range(30), 2)]
    expected = np.mean(np.sum((features - exchanged) ** 2, axis=1)) / np.mean(pairs)
    assert sensitivity(features, exchanged) == pytest.approx(expected, rel=1e-12)


def test_invariant_features_have_sensitivity_zero_and_fresh_draws_one():
    features, fresh = np.random.default_rng(1).normal(size=(2, 20_000, 3))
    assert sensitivity(features, features) == 0
    assert sensitivity(features, fresh) == pytest.approx(1, abs=0.03)


@pytest.mark.parametrize(
    "hierarchy",
    [
        RandomHierarchy(symbols=3, classes=2, multiplicity=2, depth=2, rules=RULES),
        RandomHierarchy(symbols=3, classes=2, multiplicity=2, branching=2, depth=3, seed=4),
        RandomHierarchy(symbols=2, classes=3, multiplicity=2, branching=3, depth=2, seed=1),
    ],
)
def test_the_exact_sensitivity_of_the_inputs_is_that_of_an_enumeration(hierarchy):
    strings, count = hierarchy.strings(), hierarchy.number_of_strings
    m, depth = hierarchy.multiplicity, hierarchy.depth
    distinct = np.mean([(strings != np.roll(strings, k, axis=0)).sum(axis=1).mean() for k in range(1, count)])
    nodes = [hierarchy.branching ** (depth - level) for level in range(1, depth + 1)]
    for level, exact in enumerate(input_sensitivity(hierarchy)):
        low = m ** sum(nodes[:level])
        number = np.arange(count)
        kept = number - number // low % m ** nodes[level] * low
        changed = [(strings != strings[kept + choice * low]).sum(axis=1).mean() for choice in range(m ** nodes[level])]
        assert exact == pytest.approx(np.mean(changed) / distinct, rel=1e-12)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_exchanged_synonyms_change_the_inputs_as_often_as_the_exact_sensitivity(level):
    hierarchy = RandomHierarchy(seed=2)
    strings = hierarchy.strings(np.random.default_rng(0).integers(hierarchy.number_of_strings, size=20_000))
    changed = hierarchy.exchange_synonyms(strings, level, seed=level)
    found = sensitivity(*(hierarchy.encode(each).reshape(len(each), -1) for each in (strings, changed)))
    assert found == pytest.approx(input_sensitivity(hierarchy)[level - 1], rel=0.02)


def test_a_crossing_is_interpolated_in_the_logarithm_of_the_size():
    assert crossing([100, 200, 800], [0.9, 0.6, 0.2], 0.4) == pytest.approx(400)
    assert crossing([100, 200, 800], [0.9, 0.6, 0.6], 0.6) == pytest.approx(200)


def test_a_curve_that_does_not_cross_within_the_sizes_has_no_crossing():
    assert np.isnan(crossing([1, 2], [0.9, 0.8], 0.5))
    assert np.isnan(crossing([1, 2], [0.4, 0.3], 0.5))
    assert np.isnan(crossing([1, 2], [np.nan, np.nan], 0.5))


def test_constant_features_have_no_sensitivity():
    assert np.isnan(sensitivity(np.ones((4, 2)), np.ones((4, 2))))
