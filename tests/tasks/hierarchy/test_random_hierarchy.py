from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.tasks import RandomHierarchy

RULES = (
    [[(0, 1), (1, 2)], [(2, 0), (1, 1)]],
    [[(0, 0), (1, 2)], [(0, 1), (2, 2)], [(1, 0), (2, 1)]],
)


@pytest.fixture
def small():
    return RandomHierarchy(symbols=3, classes=2, multiplicity=2, depth=2, rules=RULES)


@pytest.fixture
def published():
    return RandomHierarchy(symbols=4, classes=4, multiplicity=4, depth=3, seed=3)


def numbers(strings, symbols=3):
    return strings @ symbols ** np.arange(strings.shape[1] - 1, -1, -1)


def test_the_golden_grammar_derives_the_strings_of_both_classes(small):
    found, labels = numbers(small.strings()), small.labels(small.strings())
    assert small.number_of_strings == 16
    assert sorted(found[labels == 0]) == [1, 8, 12, 16, 46, 53, 75, 79]
    assert sorted(found[labels == 1]) == [10, 17, 27, 32, 63, 68, 73, 80]


def test_all_strings_of_the_published_size_are_different_and_have_their_label(published):
    strings = published.strings()
    assert published.number_of_strings == len(strings) == len(np.unique(strings, axis=0)) == 65_536
    assert np.array_equal(published.labels(strings), np.repeat(np.arange(4), 4**7))


def test_a_recursive_expansion_derives_the_same_strings():
    hierarchy = RandomHierarchy(symbols=3, classes=2, multiplicity=2, branching=3, depth=2, seed=1)

    def expanded(symbol, level):
        if level == hierarchy.depth:
            return {(symbol,)}
        productions = hierarchy.productions[level][symbol]
        choices = (itertools.product(*(expanded(each, level + 1) for each in one)) for one in productions.tolist())
        return {tuple(itertools.chain(*parts)) for each in choices for parts in each}

    strings, labels = hierarchy.strings(), hierarchy.labels(hierarchy.strings())
    for label in range(2):
        assert set(map(tuple, strings[labels == label].tolist())) == expanded(label, 0)


@settings(deadline=None, max_examples=30)
@given(st.integers(2, 5), st.integers(2, 6), st.integers(1, 3), st.integers(2, 3), st.integers(1, 3), st.integers(0, 9))
def test_parsing_inverts_the_derivation(symbols, classes, multiplicity, branching, depth, seed):
    multiplicity = max(1, min(multiplicity, symbols**branching // max(symbols, classes)))
    if classes > symbols**branching:
        return
    hierarchy = RandomHierarchy(symbols, classes, multiplicity, branching, depth, seed)
    derivations = np.random.default_rng(seed).integers(hierarchy.number_of_strings, size=20)
    assert np.array_equal(hierarchy.derivations(hierarchy.strings(derivations)), derivations)


@pytest.mark.parametrize("level", [1, 2, 3])
def test_synonyms_change_one_level_and_keep_the_label_and_the_levels_above(published, level):
    strings = published.strings(np.random.default_rng(0).integers(65_536, size=4000))
    changed = published.exchange_synonyms(strings, level, seed=5)
    before, after = published.derivations(strings), published.derivations(changed)
    nodes = {3: 1, 2: 2, 1: 4}
    below = 4 ** sum(nodes[each] for each in range(1, level))
    above = below * 4 ** nodes[level]
    assert np.array_equal(before // above, after // above)
    assert np.array_equal(before % below, after % below)
    # A new production equals the old one at a node with probability 1/m.
    kept = np.mean([before // below // 4**node % 4 == after // below // 4**node % 4 for node in range(nodes[level])])
    assert kept == pytest.approx(1 / 4, abs=0.03)


def test_samples_are_different_and_uniform(small):
    counts = np.zeros(16)
    for seed in range(800):
        data = small.sample(4, seed=seed)
        found = small.derivations(data.inputs.argmax(axis=-1))
        assert len(set(found.tolist())) == 4
        assert np.array_equal(data.labels, found // 8)
        counts[found] += 1
    # χ² with 15 degrees of freedom exceeds 40 with a probability of 5e-4; drawing without repetition lowers it.
    assert np.sum((counts - 200) ** 2 / 200) < 40


def test_productions_are_drawn_uniformly():
    found = np.array([RandomHierarchy(2, 2, 1, 2, 1, seed).productions[0][:, 0] for seed in range(1200)])
    pairs, counts = np.unique(found.reshape(-1, 4), axis=0, return_counts=True)
    assert len(pairs) == 4 * 3
    assert np.sum((counts - 100) ** 2 / 100) < 33  # χ², 11 degrees of freedom, probability 5e-4


def test_training_and_test_data_have_no_common_string(published):
    train, test = published.split(3000, 1000, seed=2)
    more, same = published.split(6000, 1000, seed=2)
    strings = [published.derivations(each.inputs.argmax(axis=-1)) for each in (train, test, more, same)]
    assert not set(strings[0]) & set(strings[1])
    assert len(set(strings[0])) == 3000
    assert np.array_equal(strings[2][:3000], strings[0])
    assert np.array_equal(strings[3], strings[1])


def test_a_large_hierarchy_is_sampled_without_listing_its_strings():
    hierarchy = RandomHierarchy(symbols=8, classes=8, multiplicity=4, depth=4)
    assert hierarchy.number_of_strings == 8 * 4**15
    assert hierarchy.sample(500).inputs.shape == (500, 16, 8)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"multiplicity": 5}, "multiplicity"),
        ({"classes": 5}, "multiplicity"),
        ({"symbols": 1}, "symbols"),
        ({"branching": 1}, "branching"),
        ({"depth": 6}, "depth"),
        ({"depth": 60}, "depth"),
        ({"rules": RULES}, "rules"),
    ],
)
def test_a_hierarchy_that_does_not_exist_is_rejected_by_name(options, argument):
    with pytest.raises(InputError) as refusal:
        RandomHierarchy(**options)
    assert refusal.value.argument == argument


def label_probabilities(hierarchy, levels):
    """Pr(μ | c) of the first symbol μ of a level, by the exact frequencies of the productions, shape (n_c, v)."""
    found = np.eye(hierarchy.classes)
    for rule in hierarchy.productions[:levels]:
        found = found @ (rule[:, :, 0, None] == np.arange(hierarchy.symbols)).mean(axis=1)
    return found


@pytest.mark.parametrize(("symbols", "multiplicity", "depth"), [(16, 4, 2), (16, 8, 2), (12, 4, 3)])
def test_the_signal_of_level_one_exceeds_the_sampling_noise_at_the_critical_number_of_strings(
    symbols, multiplicity, depth
):
    signals = []
    for seed in range(300):
        hierarchy = RandomHierarchy(symbols, symbols, multiplicity, depth=depth, seed=seed)
        given_label = label_probabilities(hierarchy, depth - 1)
        weights = given_label.mean(axis=0)
        used = weights > 0
        posterior = given_label[:, used] / given_label[:, used].sum(axis=0)
        signals.append(((posterior - 1 / symbols) ** 2 @ weights[used]).mean())
    predicted = 1 / (symbols * multiplicity ** (depth - 1)) * (1 - 1 / symbols) ** depth
    assert np.mean(signals) == pytest.approx(predicted, rel=0.06)
    noise = symbols * multiplicity / (symbols * hierarchy.critical_samples)
    assert noise == pytest.approx(predicted / (1 - 1 / symbols) ** depth)


def test_the_sampling_noise_of_label_frequencies_is_that_of_the_ratio_of_tuples_to_strings():
    hierarchy, samples = RandomHierarchy(8, 8, 4, depth=2, seed=1), 4096
    exact = label_probabilities(hierarchy, 1)
    weights = exact.mean(axis=0)
    used = weights > 0
    exact = exact[:, used] / exact[:, used].sum(axis=0)
    rule = hierarchy.productions[1][used]  # (used symbols, m, s)
    errors = []
    for seed in range(20):
        strings = hierarchy.strings(np.random.default_rng(seed).integers(hierarchy.number_of_strings, size=samples))
        labels, first = hierarchy.labels(strings), strings[:, :2]
        for symbol, productions in enumerate(rule):
            for production in productions:
                match = (first == production).all(axis=1)
                found = np.bincount(labels[match], minlength=8) / match.sum()
                errors.append(weights[used][symbol] * ((found - exact[:, symbol]) ** 2).mean())
    mean = np.sum(errors) / 20 / hierarchy.multiplicity
    spread = (exact * (1 - exact)).mean(axis=0).sum()  # about v/n_c if p is about 1/n_c
    assert mean == pytest.approx(spread * hierarchy.multiplicity / samples, rel=0.08)


@pytest.mark.parametrize(
    "rules",
    [
        (RULES[0], [*RULES[1][:2], [(1, 0), (0, 0)]]),
        (RULES[0], [*RULES[1][:2], [(1, 0), (3, 0)]]),
        (RULES[0], [*RULES[1][:2], [(1, 0)]]),
        RULES[::-1],
    ],
)
def test_rules_that_are_no_grammar_are_rejected_by_name(rules):
    with pytest.raises(InputError) as refusal:
        RandomHierarchy(symbols=3, classes=2, multiplicity=2, depth=2, rules=rules)
    assert refusal.value.argument == "rules"


def test_strings_and_sizes_outside_the_hierarchy_are_rejected_by_name(small):
    for call, argument in (
        (lambda: small.labels(np.array([[0, 0, 0, 0]])), "strings"),
        (lambda: small.labels(np.array([[0, 0, 3, 0]])), "strings"),
        (lambda: small.labels(np.zeros((2, 3), int)), "strings"),
        (lambda: small.strings([16]), "derivations"),
        (lambda: small.sample(17), "samples"),
        (lambda: small.sample(1), "samples"),
        (lambda: small.split(12, 5), "samples"),
        (lambda: small.split(5, 15), "test_samples"),
        (lambda: small.exchange_synonyms(small.strings([0]), 3), "level"),
    ):
        with pytest.raises(InputError) as refusal:
            call()
        assert refusal.value.argument == argument
