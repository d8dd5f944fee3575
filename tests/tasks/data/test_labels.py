from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.tasks.data.labels import look_like_labels, one_hot


@given(st.lists(st.integers(-3, 3), min_size=3, max_size=30))
def test_the_encoding_can_be_undone(labels):
    classes = sorted(set(labels))
    if not 1 < len(classes) < len(labels):
        with pytest.raises(InputError, match="the target y has"):
            one_hot(np.array(labels), "y")
        return
    targets, names, _ = one_hot(np.array(labels), "y")
    assert names == tuple(f"y {label}" for label in classes)
    np.testing.assert_array_equal(targets.sum(axis=1), 1.0)
    np.testing.assert_array_equal(np.array(classes)[targets.argmax(axis=1)], labels)


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (["oak", "elm", "oak"], ("elm", "oak")),
        ([True, False, True], ("tree False", "tree True")),
        ([1.0, 2.0, 1.0], ("tree 1", "tree 2")),
        ([0.5, 2.0, 0.5], ("tree 0.5", "tree 2")),
        ([12345678, 12345679, 12345678], ("tree 12345678", "tree 12345679")),
    ],
)
def test_classes_are_named_by_their_labels(labels, names):
    assert one_hot(np.array(labels), "tree")[1] == names


def test_a_long_list_of_classes_is_cut_in_the_sentence_only():
    labels = np.repeat(np.arange(30), 2)
    targets, names, sentence = one_hot(labels, "y")
    assert (targets.shape, len(names)) == ((60, 30), 30)
    assert "10 more" in sentence


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (["a", "a"], "the target y has only one class"),
        (["a", "b"], "the target y has 2 classes in 2 samples"),
        (list(range(1001)) * 2, "the target y has 1001 classes in 2002 samples: .* at most 1000"),
    ],
)
def test_too_few_and_too_many_classes_are_refused(labels, problem):
    with pytest.raises(InputError, match=problem):
        one_hot(np.array(labels), "y")


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0, 1, 0, 1], True),
        ([0, 1, 0], False),
        (list(range(20)) * 2, True),
        (list(range(21)) * 2, False),
        (list(range(20)) + [0] * 19, False),
        ([5, 5, 5, 5], False),
    ],
)
def test_integers_are_labels_when_few_and_repeated(values, labels):
    assert look_like_labels(np.array(values)) is labels
