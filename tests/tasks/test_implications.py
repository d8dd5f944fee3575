from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

from dynascope.errors import InputError
from dynascope.tasks import IMPLICATION_VOCABULARY, implications


def texts(data):
    return [IMPLICATION_VOCABULARY.decode(row) for row in data.inputs]


def parsed(text):
    """The clauses and the question of a text without padding."""
    assert re.fullmatch(r"[a-z]>[a-z](,[a-z]>[a-z])*:[a-z]>[a-z]\?", text)
    clauses, question = text[:-1].split(":")
    return [tuple(clause.split(">")) for clause in clauses.split(",")], tuple(question.split(">"))


def follows(clauses, question):
    """The number of implications from the first symbol to the second, or None."""
    symbol, steps = question[0], 0
    following = dict(clauses)
    while symbol in following:
        symbol, steps = following[symbol], steps + 1
        if symbol == question[1]:
            return steps
    return None


@settings(max_examples=30, deadline=None)
@given(length=st.integers(1, 12), extra=st.integers(0, 4), seed=st.integers(0, 2**32 - 1))
def test_labels_are_the_answers_found_by_following_the_chain(length, extra, seed):
    longest = min(12, length + extra)
    data = implications(length, 20, longest=longest, seed=seed)
    assert data.inputs.shape == (20, 8 * longest + 4)
    for text, label in zip(texts(data), data.labels, strict=True):
        clauses, question = parsed(text.replace(".", ""))
        assert follows(clauses, question) == (length if label else None)
        assert len(clauses) == len(set(clauses)) == 2 * length


def test_answers_are_balanced_for_each_length():
    data = implications([1, 2, 4], 1001, seed=5)
    lengths = np.array([text.count(">") // 2 for text in texts(data)])
    counts = [np.bincount(data.labels[lengths == length], minlength=2) for length in (1, 2, 4)]
    assert np.ptp(counts) <= 1


@pytest.mark.parametrize("length", [2, 3])
def test_both_symbols_have_the_same_role_for_both_answers(length):
    for text in texts(implications(length, 200, seed=1)):
        clauses, (first, second) = parsed(text.replace(".", ""))
        lefts, rights = zip(*clauses, strict=True)
        assert (lefts.count(first), rights.count(first)) == (1, 0)
        assert (lefts.count(second), rights.count(second)) == (0, 1)
        assert (first, second) not in clauses


def symbol_counts(rows):
    """Counts of each symbol on each side of the clauses, and the symbols of the question, one-hot."""
    clauses, question = rows[:, :-4].reshape(len(rows), -1, 4), rows[:, -4:]
    tokens = np.arange(IMPLICATION_VOCABULARY.size)
    sides = [(clauses[:, :, side, None] == tokens).sum(axis=1) for side in (0, 2)]
    return np.concatenate([*sides, question[:, [0]] == tokens, question[:, [2]] == tokens], axis=1).astype(float)


def positions(rows):
    """All tokens, one-hot at each position."""
    return (rows[:, :, None] == np.arange(IMPLICATION_VOCABULARY.size)).reshape(len(rows), -1).astype(float)


@pytest.mark.parametrize("features", [symbol_counts, positions])
def test_a_linear_classifier_of_single_symbols_stays_at_chance(features):
    train, test = (implications([2, 3], 4000, seed=seed) for seed in (0, 1))
    model = LogisticRegression(C=0.01, max_iter=200).fit(features(train.inputs), train.labels)
    accuracy = model.score(features(test.inputs), test.labels)
    # Four standard deviations of the accuracy of a guess.
    assert abs(accuracy - 0.5) < 4 * 0.5 / np.sqrt(4000)


def test_the_same_classifier_finds_a_shortcut_that_exists():
    # Reversed questions have the first symbol on the right side of a clause, unless the answer is yes.
    train, test = (implications(2, 2000, seed=seed) for seed in (0, 1))

    def reversed_negatives(data):
        rows, swap = data.inputs.copy(), data.labels == 0
        rows[swap, -4], rows[swap, -2] = data.inputs[swap, -2], data.inputs[swap, -4]
        # The sides of the question's symbols, which a network can count.
        left = (rows[:, :-4].reshape(len(rows), -1, 4)[:, :, 0] == rows[:, [-4]]).sum(axis=1)
        return left[:, None].astype(float)

    model = LogisticRegression().fit(reversed_negatives(train), train.labels)
    assert model.score(reversed_negatives(test), test.labels) == 1.0


def test_clauses_are_shuffled_and_use_all_slots():
    data = implications(2, 4000, longest=3, seed=2)
    slots = data.inputs[:, :-4].reshape(4000, 6, 4)
    # Each of the six slots holds a clause with probability 4/6.
    used = (slots[:, :, 1] == IMPLICATION_VOCABULARY.encode(">")).mean(axis=0)
    np.testing.assert_allclose(used, 4 / 6, atol=4 * np.sqrt(2 / 9 / 4000))
    # The clause with the first symbol of the question is the first, second, … of the four equally often.
    first = np.zeros(4)
    for text in texts(data):
        clauses, question = parsed(text.replace(".", ""))
        first[[clause[0] for clause in clauses].index(question[0])] += 1 / 4000
    np.testing.assert_allclose(first, 1 / 4, atol=4 * np.sqrt(3 / 16 / 4000))


def test_the_seed_determines_the_samples():
    first, again, other = (implications([1, 3], 50, seed=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.inputs, again.inputs)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert not np.array_equal(first.inputs, other.inputs)


BAD = [
    ({"lengths": []}, "lengths"),
    ({"lengths": 0}, "lengths"),
    ({"lengths": [1, 0]}, "lengths"),
    ({"lengths": [1, 2.5]}, "lengths"),
    ({"lengths": 13}, "lengths"),
    ({"lengths": 3, "longest": 2}, "lengths"),
    ({"longest": 13}, "longest"),
    ({"lengths": [1, 2, 3], "samples": 5}, "samples"),
    ({"samples": 0}, "samples"),
    ({"seed": -1}, "seed"),
]


@pytest.mark.parametrize(("bad", "argument"), BAD)
def test_bad_arguments_are_named(bad, argument):
    with pytest.raises(InputError) as error:
        implications(**{"lengths": 2, "samples": 10} | bad)
    assert error.value.argument == argument
