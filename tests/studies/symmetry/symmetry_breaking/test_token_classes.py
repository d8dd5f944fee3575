from __future__ import annotations

import string

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dynascope.studies.symmetry.symmetry_breaking.token_classes import token_classes
from dynascope.tasks import Vocabulary


def test_printable_characters_are_sorted_as_in_the_string_module():
    vocabulary = Vocabulary(string.printable)
    expected = {
        "letters": string.ascii_letters,
        "digits": string.digits,
        "space": string.whitespace,
        "punctuation": string.punctuation,
    }
    found = token_classes(vocabulary)
    assert {name: vocabulary.decode(np.flatnonzero(mask)) for name, mask in found.items()} == expected


@given(st.sets(st.characters(), min_size=1).map("".join))
def test_every_character_has_one_class_and_the_unknown_token_none(characters):
    counts = np.sum(list(token_classes(Vocabulary(characters)).values()), axis=0)
    assert counts[0] == 0
    np.testing.assert_array_equal(counts[1:], 1)
