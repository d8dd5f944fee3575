from __future__ import annotations

import json

import pytest
import xarray as xr

from dynascope.errors import InputError
from dynascope.record import TreeView, make_record
from dynascope.report.facts import facts_of, how_it_was_done, parameters_of, read_json, warnings_of


def view(**attributes) -> TreeView:
    curve = {"loss": (["time"], [1.0, 0.5])}
    observed = make_record(
        curve,
        {"time": [0.0, 1.0]},
        attributes={
            "flow": "descent",
            "optimizer": "sgd",
            "learning_rate": 0.1,
            "batch_size": None,
            "warnings": ["a", "b"],
        },
    )
    predicted = make_record(curve, {"time": [0.0, 1.0]}, attributes={"theory": "exact", "warnings": ["b"]})
    tree = xr.DataTree.from_dict({"observed": observed, "predicted": predicted})
    tree.attrs |= {"study": "a-study", "parameters": json.dumps({"seed": 2, "batch_size": 0}), **attributes}
    return TreeView.of(tree)


def test_what_is_known_of_the_making_is_told_and_nothing_else():
    seen = view()
    assert how_it_was_done(seen, facts_of(seen)) == {
        "Theory": "exact",
        "Training": "descent, sgd, learning rate 0.1",
        "Seed": "2",
        "Repeat it by": "dynascope run a-study --seed 2 --batch-size 0",
        "Versions": f"dynascope {seen.tree['observed'].attrs['version']}",
    }


def test_what_the_tree_says_itself_comes_first():
    seen = view(
        command="dynascope run a-study", date="2026-11-22", versions='{"jax": "0.10"}', version="1.2", data_hash="ab12"
    )
    told = how_it_was_done(seen, facts_of(seen))
    assert told["Repeat it by"] == "dynascope run a-study"
    assert (told["Date"], told["Versions"], told["Hash of the data"]) == (
        "2026-11-22",
        "dynascope 1.2, jax 0.10",
        "ab12",
    )


def test_parameters_that_stand_for_something_are_said_in_words():
    assert parameters_of(facts_of(view())) == {"seed": "2", "batch size": "all samples in every step"}


def test_a_warning_of_both_sides_is_told_once():
    assert warnings_of(view()) == ["a", "b"]


@pytest.mark.parametrize("text", ["no json", '["a list"]'])
def test_what_should_be_an_object_and_is_not_is_bad_input(text):
    with pytest.raises(InputError, match="the attribute 'parameters' is not a JSON object"):
        read_json({"parameters": text}, "parameters", {})
