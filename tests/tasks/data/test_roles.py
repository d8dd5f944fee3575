from __future__ import annotations

import pandas as pd
import pytest

from dynascope.errors import InputError
from dynascope.tasks.data.columns import Column
from dynascope.tasks.data.names import listed
from dynascope.tasks.data.roles import split_columns

COLUMNS = {name: Column.of([0.0]) for name in ("height", "girth", "age", "kind")}


@pytest.mark.parametrize("drop", ["girth", ["girth"], ("girth", "girth")])
def test_columns_that_are_dropped_are_neither_inputs_nor_targets(drop):
    inputs, targets, _ = split_columns(COLUMNS, ["kind", "age"], drop, source="trees.csv")
    assert (list(inputs), list(targets)) == (["height"], ["kind", "age"])


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("target", "drop", "argument", "problem"),
    [
        ("age", "grith", "drop", "trees.csv has no column 'grith': choose 'girth' or another of 'height'"),
        ("age", ["age"], "drop", "'age' is a target and dropped: name it once"),
        ("age", ["height", "girth", "kind"], "target", "every column of trees.csv is dropped or a target"),
        (None, "age", "target", "no target column of trees.csv is named"),
        (pd.Series([1.0]), (), "target", "target is of the type Series: name columns of the table"),
        ("age", pd.Index(["kind"]), "drop", "drop is of the type Index: name columns of the table"),
    ],
)
def test_names_that_leave_nothing_to_learn_are_refused(target, drop, argument, problem):
    with pytest.raises(InputError, match=problem) as caught:
        split_columns(COLUMNS, target, drop, source="trees.csv")
    assert caught.value.argument == argument


@pytest.mark.usefixtures("unchecked_types")
def test_columns_that_are_numbered_may_be_named_by_numbers():
    inputs, targets, _ = split_columns({str(i): Column.of([0.0]) for i in range(4)}, 3, [0], source="table")
    assert (list(inputs), list(targets)) == (["1", "2"], ["3"])


def test_long_lists_are_cut():
    assert listed(map(str, range(14))).endswith("'11' and 2 more")
