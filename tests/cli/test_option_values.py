from __future__ import annotations

import dataclasses

import pytest

from dynascope.cli.option_values import changed_options, option_words
from dynascope.cli.parsing import parsed
from dynascope.cli.predict import Predict
from dynascope.cli.which import Which


@pytest.mark.parametrize("command", [Predict, Which])
@pytest.mark.parametrize(
    "words", [[], ["--network", "relu", "--scale", "0.001", "--drop", "a", "b"], ["--raw", "--learning-rate", "0.1"]]
)
def test_the_words_of_the_changed_options_give_them_again(command, words):
    read = parsed(command, ["predict", "t.csv", *words], words=1)
    changed = changed_options(read, without=("source",))
    assert parsed(command, ["predict", "t.csv", *option_words(changed)], words=1) == read
    assert bool(changed) == bool(words)


def test_no_two_groups_have_an_option_of_the_same_name():
    def names(kind):
        for field in dataclasses.fields(kind):
            inner = field.default_factory
            yield from names(inner) if dataclasses.is_dataclass(inner) else [field.name]

    found = list(names(Predict))
    assert len(found) == len({*found})
