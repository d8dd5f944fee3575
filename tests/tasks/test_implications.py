from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    longest = length + extra
    data = implications(length, 20, longest=longest, letters=longest + 1, seed=seed)
    assert data.inputs.shape == (20, 4 * longest + 4)
    for text, label in zip(texts(data), data.labels, strict=True):
        clauses, (first, second) = parsed(text.lstrip("."))
        assert (follows(clauses, (first, second)) is not None) == label
        assert (follows(clauses, (second, first)) is not None) == 1 - label
        assert len(clauses) == len(set(clauses)) == length


def test_answers_are_balanced_for_each_length():
    data = implications([1, 2, 4], 1001, seed=5)
    lengths = np.array([text.count(">") - 1 for text in texts(data)])
    counts = [np.bincount(data.labels[lengths == length], minlength=2) for length in (1, 2, 4)]
    assert np.ptp(counts) <= 1


def test_the_documented_share_of_questions_is_about_inner_symbols():
    inner = []
    for text in texts(implications(4, 4000, seed=1)):
        clauses, question = parsed(text)
        lefts, rights = zip(*clauses, strict=True)
        inner.append(all(each in lefts and each in rights for each in question))
    # (k − 1)(k − 2)/(k(k + 1)) = 3/10, up to four standard deviations.
    assert abs(np.mean(inner) - 0.3) < 4 * np.sqrt(0.3 * 0.7 / 4000)


def test_clauses_are_shuffled():
    place = np.zeros(3)
    for text in texts(implications(3, 4000, seed=2)):
        clauses, _ = parsed(text)
        (start,) = {left for left, _ in clauses} - {right for _, right in clauses}
        place[[left for left, _ in clauses].index(start)] += 1 / 4000
    np.testing.assert_allclose(place, 1 / 3, atol=4 * np.sqrt(2 / 9 / 4000))


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
    ({"lengths": 8}, "lengths"),
    ({"lengths": 3, "longest": 2}, "lengths"),
    ({"longest": 8}, "longest"),
    ({"letters": 27}, "letters"),
    ({"lengths": [1, 2, 3], "samples": 5}, "samples"),
    ({"samples": 0}, "samples"),
    ({"seed": -1}, "seed"),
]


@pytest.mark.parametrize(("bad", "argument"), BAD)
def test_bad_arguments_are_named(bad, argument):
    with pytest.raises(InputError) as error:
        implications(**{"lengths": 2, "samples": 10} | bad)
    assert error.value.argument == argument
