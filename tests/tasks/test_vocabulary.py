from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.tasks import Vocabulary


@given(st.text(min_size=1))
def test_decoding_inverts_encoding(text):
    vocabulary = Vocabulary.of(text)
    tokens = vocabulary.encode(text)
    assert tokens.min() >= 1
    assert tokens.max() < vocabulary.size == len(set(text)) + 1 == len(vocabulary.names)
    assert vocabulary.decode(tokens) == text
    assert [vocabulary.names[token] for token in tokens] == list(text)


@given(st.text("abcde", min_size=1), st.integers(1, 5))
def test_characters_below_the_minimum_count_become_unknown(text, least):
    frequent = {one for one in text if text.count(one) >= least}
    if not frequent:
        with pytest.raises(InputError) as error:
            Vocabulary.of(text, minimum_count=least)
        assert error.value.argument == "minimum_count"
        return
    vocabulary = Vocabulary.of(text, minimum_count=least)
    tokens = vocabulary.encode(text, unknown=True)
    np.testing.assert_array_equal(tokens == 0, [one not in frequent for one in text])
    assert vocabulary.decode(tokens) == "".join(one if one in frequent else "�" for one in text)


def test_the_first_character_outside_the_vocabulary_is_named():
    with pytest.raises(InputError, match=r"'é'.*unknown=True") as error:
        Vocabulary("caf").encode("caféß")
    assert error.value.argument == "text"


def test_an_empty_text_has_no_tokens():
    tokens = Vocabulary("a").encode("")
    assert (tokens.shape, tokens.dtype) == ((0,), np.int32)
    assert Vocabulary("a").decode(tokens) == ""


BAD = [
    (lambda: Vocabulary(""), "characters"),
    (lambda: Vocabulary("aba"), "characters"),
    (lambda: Vocabulary.of(""), "text"),
    (lambda: Vocabulary.of("a", minimum_count=0), "minimum_count"),
    (lambda: Vocabulary("ab").decode([3]), "tokens"),
    (lambda: Vocabulary("ab").decode([-1]), "tokens"),
    (lambda: Vocabulary("ab").decode([0.5]), "tokens"),
    (lambda: Vocabulary("ab").decode(np.array([[1, 2]])), "tokens"),
]


@pytest.mark.parametrize(("call", "argument"), BAD)
def test_bad_arguments_are_named(call, argument):
    with pytest.raises(InputError) as error:
        call()
    assert error.value.argument == argument
