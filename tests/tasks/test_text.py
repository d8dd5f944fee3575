from __future__ import annotations

import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dynascope.errors import InputError
from dynascope.networks import language_model
from dynascope.tasks import Vocabulary, python_documentation, text_task
from dynascope.training import Descent, descend

TEXT = python_documentation(20_000)


def windows_of(task):
    """The characters of all training and held-out windows."""
    parts = []
    for part in (task.train, task.test):
        rows = np.column_stack([part.inputs, part.labels[:, -1]])
        parts.append([task.vocabulary.decode(row) for row in rows])
    return parts


@given(st.integers(1, 40), st.floats(0.05, 0.6), st.integers(0, 100))
def test_windows_are_disjoint_pieces_of_the_text(context, held_out, seed):
    text = TEXT[:2_000]
    task = text_task(text, context, held_out=held_out, seed=seed, vocabulary=Vocabulary.of(text))
    train, test = windows_of(task)
    pieces = [text[start : start + context + 1] for start in range(0, len(text) - context, context + 1)]
    assert sorted(train + test) == sorted(pieces)
    assert len(test) == round(held_out * len(pieces))


def test_labels_are_the_next_characters():
    task = text_task(TEXT, 30)
    for part in (task.train, task.test):
        np.testing.assert_array_equal(part.inputs[:, 1:], part.labels[:, :-1])
        assert part.inputs.shape == part.labels.shape == (part.samples, 30)
        assert part.inputs.dtype == np.int32
        assert part.output_dimension == task.vocabulary.size


def test_the_vocabulary_is_that_of_the_training_windows():
    # The only "z" is held out with some seed, and the only "y" is in a window of its own.
    text = "abcde" * 40 + "abzde" + "abcye"
    seeds = [
        seed for seed in range(50) if "z" in "".join(windows_of(text_task(text, 4, seed=seed, minimum_count=1))[0])
    ]
    assert 0 < len(seeds) < 50
    unknown = next(seed for seed in range(50) if seed not in seeds)
    task = text_task(text, 4, seed=unknown, minimum_count=1)
    assert "z" not in task.vocabulary.characters
    assert np.count_nonzero(np.column_stack([task.test.inputs, task.test.labels[:, -1]]) == 0) >= 1


def test_rare_characters_are_unknown():
    text = "abcd " * 50 + "q" + "abcd " * 10
    assert "q" not in text_task(text, 4).vocabulary.characters
    task = text_task(text, 4, minimum_count=1, held_out=0.04, seed=0)
    assert "q" in task.vocabulary.characters


def test_the_seed_determines_the_held_out_windows():
    first, again, other = (text_task(TEXT, 30, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.test.inputs, again.test.inputs)
    assert first.train.attributes() == again.train.attributes()
    assert windows_of(first)[1] != windows_of(other)[1]


def test_a_file_gives_the_task_of_its_text(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text(TEXT, "utf-8")
    of_file, of_text = text_task(path, 30), text_task(TEXT, 30)
    np.testing.assert_array_equal(of_file.train.inputs, of_text.train.inputs)
    assert "book.txt" in of_file.train.description[0]


@pytest.mark.slow
def test_a_language_model_learns_more_than_the_frequencies_of_characters():
    task = text_task(TEXT, 16)
    network = language_model(task.vocabulary.size, 16, width=32, heads=2, blocks=1)
    method = Descent(
        steps=200, optimizer=optax.adam, learning_rate=1e-2, loss="cross_entropy", batches=32, test=task.test
    )
    trained = descend(task.train, network, method)
    frequencies = np.bincount(task.train.labels.ravel(), minlength=task.vocabulary.size) / task.train.labels.size
    entropy = stats.entropy(frequencies)
    # The network predicts from the characters before, so it is better than the best constant prediction.
    assert trained.test_loss[-1] < entropy - 0.3
    assert trained.test_accuracy[-1] > frequencies.max() + 0.05


BAD = [
    ({"text": ""}, "text"),
    ({"text": "too short", "context": 30}, "text"),
    ({"text": 3}, "text"),
    ({"context": 0}, "context"),
    ({"context": 20_000}, "text"),
    ({"held_out": 0.0}, "held_out"),
    ({"held_out": 1e-4}, "held_out"),
    ({"held_out": 0.99999}, "held_out"),
    ({"minimum_count": 10**6}, "minimum_count"),
    ({"seed": -1}, "seed"),
]


@pytest.mark.parametrize(("bad", "argument"), BAD)
def test_bad_arguments_are_named(bad, argument):
    with pytest.raises(InputError) as error:
        text_task(**{"text": TEXT, "context": 30} | bad)
    assert error.value.argument == argument


def test_a_short_text_is_rejected_with_its_length_and_a_context_that_fits():
    text = "a short text of forty characters in all."
    with pytest.raises(InputError, match=r"40 characters.* context \+ 1 = 65.*at least 260.*at most 9\.") as error:
        text_task(text)
    assert error.value.value == 40
    assert text_task(text, 9, held_out=0.5).train.samples == 2
