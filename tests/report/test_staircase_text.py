"""What a page says of a user's staircase."""

import re

import numpy as np
import xarray as xr

from dynascope.report.staircase_text import (
    predicted_jumps_sentence,
    staircase_meaning,
    staircase_question,
)
from dynascope.results import Prediction, from_tree, make_record

TIME = np.linspace(0.0, 9.0, 50)
PREDICTED = make_record(
    {
        "jump_time": (["jump"], [3.0]),
        "accelerated_time": (["jump"], [3.0 / np.log(1e8)]),
        "loss_before": (["jump"], [1.0]),
        "loss_after": (["jump"], [0.0]),
    },
    {"jump": [1]},
    attributes={"task": "a table", "network": "linear", "scale": 1e-8},
)
OBSERVED = make_record(
    {"loss": (["time"], 1 / (1 + np.exp(8 * (TIME - 3))))}, {"time": TIME}, attributes={"scale": 1e-8}
)


def test_the_meaning_of_a_prediction_names_its_scale():
    facts = {"task": "a table", "network": "linear", "scale": 1e-8}
    assert "10⁻⁸" in staircase_meaning(from_tree(Prediction.of(PREDICTED)), facts)


def test_a_prediction_says_how_many_jumps_are_expected_and_when():
    assert "3" in predicted_jumps_sentence(from_tree(PREDICTED))
    never = PREDICTED.assign(jump_time=("jump", [np.inf]))
    assert "inf" not in predicted_jumps_sentence(from_tree(never))
    two = xr.concat([PREDICTED, PREDICTED.assign(jump_time=("jump", [5.0]))], "jump", join="outer")
    assert re.findall(r"\d", predicted_jumps_sentence(from_tree(two))) == ["2", "3", "5"]
    assert predicted_jumps_sentence(from_tree(OBSERVED)) == ""


def test_curves_and_nameless_data_are_left_alone():
    assert staircase_question(from_tree(OBSERVED), {"task": "a", "network": "b"}) == ""
    assert staircase_meaning(from_tree(Prediction.of(PREDICTED)), {"network": "b"}) == ""


def test_the_name_of_the_data_is_quoted():
    question = staircase_question(from_tree(Prediction.of(PREDICTED)), {"task": "white", "network": "linear"})
    assert 'from the task "white"' in question
