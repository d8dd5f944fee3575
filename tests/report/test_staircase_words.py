"""A page of a user's staircase asks and explains, and one that says so itself keeps its own words."""

import numpy as np
import xarray as xr

from dynascope.comparison import compare, unjudged
from dynascope.record import TreeView, make_record
from dynascope.report import render_page
from dynascope.report.staircase_words import (
    asked_of_a_staircase,
    expected_of_a_staircase,
    meaning_of_a_staircase,
    seen_in_a_staircase,
)

TIME = np.linspace(0.0, 9.0, 50)
PREDICTED = make_record(
    {
        "jump_time": (["jump"], [3.0]),
        "accelerated_time": (["jump"], [3.0 / np.log(1e8)]),
        "loss_before": (["jump"], [1.0]),
        "loss_after": (["jump"], [0.0]),
    },
    {"jump": [1]},
    attributes={"task": "a <table>", "network": "linear", "scale": 1e-8},
)
OBSERVED = make_record(
    {"loss": (["time"], 1 / (1 + np.exp(8 * (TIME - 3))))}, {"time": TIME}, attributes={"scale": 1e-8}
)


def told(tree):
    view = TreeView.of(tree)
    facts = {"task": "a {table}", "network": "linear", "scale": 1e-8}
    return asked_of_a_staircase(view, facts), meaning_of_a_staircase(view, facts)


def test_a_prediction_is_asked_for_and_explained():
    question, meaning = told(unjudged(PREDICTED))
    assert question == "What does a linear network learn from a {table}, in what order, and when?"
    assert "(10⁻⁸ here)" in meaning
    assert "trained" not in meaning


def test_a_prediction_says_how_many_jumps_are_expected_and_when():
    assert expected_of_a_staircase(TreeView.of(PREDICTED)) == "One jump is expected, at time 3."
    never = PREDICTED.assign(jump_time=("jump", [np.inf]))
    assert expected_of_a_staircase(TreeView.of(never)) == "No jump is expected."
    two = xr.concat([PREDICTED, PREDICTED.assign(jump_time=("jump", [5.0]))], "jump", join="outer")
    assert expected_of_a_staircase(TreeView.of(two)) == "2 jumps are expected, from time 3 to 5."
    assert expected_of_a_staircase(TreeView.of(OBSERVED)) == ""


def test_its_figure_says_between_which_losses_it_goes():
    assert seen_in_a_staircase(TreeView.of(unjudged(PREDICTED))).endswith("from 1 to 0, at each number.")
    assert "levels from 1 to 0" in seen_in_a_staircase(TreeView.of(compare(OBSERVED, PREDICTED)))
    assert seen_in_a_staircase(TreeView.of(OBSERVED)) == "No jump was predicted."


def test_a_run_beside_it_is_said_to_be_one():
    assert "the network that was trained" in told(compare(OBSERVED, PREDICTED))[1]


def test_curves_and_nameless_data_are_left_alone():
    assert asked_of_a_staircase(TreeView.of(OBSERVED), {"task": "a", "network": "b"}) == ""
    assert meaning_of_a_staircase(TreeView.of(unjudged(PREDICTED)), {"network": "b"}) == ""


def test_they_are_on_the_page_unless_the_tree_has_its_own():
    tree = compare(OBSERVED, PREDICTED)
    assert "learn from a &lt;table&gt;, in what order" in render_page(tree)
    tree.attrs["question"] = "Why?"
    page = render_page(tree)
    assert "Why?" in page
    assert "in what order" not in page
