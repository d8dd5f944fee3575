from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from dynascope.cli.json_output import prediction_answer, study_answer
from dynascope.comparison import Claim, compare, report_claims
from dynascope.results import Prediction, make_record
from dynascope.results.store import load, save
from dynascope.results.tree import AnyResult
from dynascope.studies import Reference, Study
from dynascope.tasks import Task

LOG_INVERSE_SCALE = 10.0
SHARED = {"theory", "network", "scale", "convention", "initial_loss", "jumps", "warnings", "curve", "check", "seconds"}
SHARED |= {"record", "version", "data"}


class Example(Study):
    """A study that is only named."""

    width: int = 3
    scale: float = 1e-8

    name = "example"
    reference = Reference(paper="A. Author", arxiv="1234.56789", claim="It rises.")
    minutes = 1.0


def staircase(*, time: float = 30.0, reason: str = "", network: str = "linear", **attributes) -> xr.Dataset:
    features = (
        {"singular_value": (("jump",), [2.0, 1.0])}
        if network == "linear"
        else {"coefficient": (("jump", "feature"), [[0.0, 0.0, -2.0], [0.5, 0.0, -2.5]])}
    )
    return make_record(
        {
            "jump_time": (("jump",), [10.0, time]),
            "accelerated_time": (("jump",), [1.0, time / LOG_INVERSE_SCALE]),
            "loss_before": (("jump",), [4.0, 1.0]),
            "loss_after": (("jump",), [1.0, 0.0]),
            "learned": (("jump",), np.array(["the first", "the “second”"])),
            "slow": (("jump",), np.array([False, bool(reason)])),
            "reason": (("jump",), np.array(["", reason])),
            **features,
        },
        {"jump": [1, 2]} | ({} if network == "linear" else {"feature": ["a", "b", "ç"]}),
        attributes={
            "theory": "a theory",
            "network": network,
            "scale": float(np.exp(-LOG_INVERSE_SCALE)),
            "initial_loss": 4.0,
            "warnings": ["read with care"],
            **attributes,
        },
    )


def run(*, last: float = 30.0, floor: float = 0.0, log_inverse_scale: float = LOG_INVERSE_SCALE) -> xr.Dataset:
    time = np.linspace(0.0, 60.0, 6001)
    stretch = log_inverse_scale / LOG_INVERSE_SCALE
    loss = floor + 3 / (1 + np.exp(5 * (time - 10 * stretch))) + 1 / (1 + np.exp(5 * (time - last * stretch)))
    return make_record(
        {"loss": (("time",), loss)}, {"time": time}, attributes={"scale": float(np.exp(-log_inverse_scale))}
    )


def strict(answer: dict) -> dict:
    """The answer after a passage through JSON, where NaN does not exist."""
    return json.loads(json.dumps(answer, allow_nan=False))


def predicted(tree: AnyResult) -> dict:
    answer = prediction_answer(tree, seconds=1.23456, record=Path("out", "x.zarr.zip"))
    assert strict(answer) == answer
    return answer


def test_the_loss_at_this_scale_is_told_with_its_error():
    curve = {"loss": ("time", np.array([2.0, 1.0]))}
    record = staircase().assign(curve).assign_coords(time=[0.0, 5.0]).assign_attrs(curve_error=0.01)
    assert predicted(Prediction.of(record))["curve"] == {"time": [0.0, 5.0], "loss": [2.0, 1.0], "error": 0.01}


def test_a_prediction_says_what_when_and_from_where():
    answer = predicted(Prediction.of(staircase()))
    assert answer.keys() == SHARED
    assert answer["check"] is None
    assert answer["curve"] is None
    assert answer["warnings"] == ["read with care"]
    assert answer["seconds"] == 1.235
    assert answer["record"] == str(Path("out", "x.zarr.zip"))
    assert answer["jumps"][1] == {
        "jump": 2,
        "accelerated_time": 3.0,
        "time": 30.0,
        "loss_before": 1.0,
        "loss_after": 0.0,
        "learned": {"description": "the “second”", "rank": 2, "singular_value": 1.0},
        "slow": False,
        "reason": "",
    }


def test_what_was_done_to_the_data_is_told_with_every_column():
    task = Task([[1.0], [3.0]], [[10.0], [30.0]], name="trees", feature_names=["age"]).standardised()
    tree = Prediction.of(staircase(**task.attributes()))
    data = strict(prediction_answer(tree, seconds=0.0, record=None, task=task))["data"]
    assert (data["task"], data["samples"], data["done"]) == ("trees", 2, list(task.description))
    assert data["inputs"] == [{"name": "age", "shift": 2.0, "factor": 1.0}]
    assert data["targets"] == [{"name": "y1", "shift": 20.0, "factor": pytest.approx(0.1)}]
    assert "inputs" not in predicted(tree)["data"]


def test_nothing_written_is_a_null_record():
    assert prediction_answer(Prediction.of(staircase()), seconds=0.0, record=None)["record"] is None


def test_a_diagonal_network_tells_its_active_coordinates_by_number_and_by_name():
    jumps = predicted(Prediction.of(staircase(network="diagonal")))["jumps"]
    assert jumps[0]["learned"] == {
        "description": "the first",
        "active": [2],
        "features": ["ç"],
        "coefficients": [-2.0],
    }
    assert jumps[1]["learned"]["active"] == [0, 2]
    assert jumps[1]["learned"]["coefficients"] == [0.5, -2.5]


def test_a_check_adds_what_was_observed_and_the_verdict():
    check = predicted(compare(run(), staircase()))["check"]
    told = {"verdict", "verdict_sentence", "share_of_fall"}
    assert check.keys() == {"jumps", "judged", "of", "agreement", "checks"} | told
    assert check["verdict"] == "agree"
    assert check["share_of_fall"] == pytest.approx(1.0)
    first, second = check["jumps"]
    assert second.keys() == {"jump", "time", "accelerated_time", "loss_before", "loss_after", "status"}
    # The step of the time axis is 0.01 and the drop is symmetric about its middle.
    assert second["time"] == pytest.approx(30.0, abs=1e-2)
    assert second["accelerated_time"] == pytest.approx(second["time"] / LOG_INVERSE_SCALE, rel=1e-12)
    assert second["loss_before"] == first["loss_after"] == pytest.approx(1.0, abs=1e-6)
    assert all(each.keys() == {"error", "tolerance", "agrees", "reason"} for each in check["agreement"].values())


def test_a_second_scale_adds_slopes():
    other = run(log_inverse_scale=1.5 * LOG_INVERSE_SCALE)
    check = predicted(compare(run(), staircase(), at_other_scale=other))["check"]
    # The curves were built so that times are 1 and 3 times log(1/scale).
    assert [jump["slope"] for jump in check["jumps"]] == pytest.approx([1.0, 3.0], rel=1e-3)
    assert "slope" in check["agreement"]


def test_a_jump_that_was_not_observed_is_null_with_a_warning_that_says_where_and_why():
    answer = predicted(compare(run(floor=0.8), staircase()))
    seen = answer["check"]["jumps"][1]
    assert seen["time"] is None
    assert seen["accelerated_time"] is None
    assert answer["check"]["verdict"] == "disagree"
    assert answer["check"]["agreement"]["jump_time"]["error"] is None
    warnings = " ".join(answer["warnings"])
    assert "check.jumps[1].time" in warnings
    assert "jump time" in warnings


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_numbers_that_are_not_finite_are_null_wherever_they_are(value):
    answer = predicted(Prediction.of(staircase(initial_loss=value)))
    assert answer["initial_loss"] is None
    assert answer["warnings"][-1].endswith(": initial_loss.")


def test_numbers_that_are_not_finite_are_gathered_over_the_jumps():
    several = staircase().isel(jump=[0, 1, 1]).assign_coords(jump=[1, 2, 3])
    answer = predicted(Prediction.of(several.assign(loss_after=("jump", [1.0, np.nan, np.nan]))))
    assert answer["warnings"][-1].endswith(": jumps[1 and 2].loss_after.")
    # Of a list within the list every place is named.
    wide = staircase(network="diagonal")
    coefficients = np.array([[0.0, 0.0, np.nan], [0.5, 0.0, np.inf]])
    answer = predicted(Prediction.of(wide.assign(coefficient=(("jump", "feature"), coefficients))))
    told = "jumps[0].learned.coefficients[0], jumps[1].learned.coefficients[1]"
    assert answer["warnings"][-1].endswith(f": {told}.")


def test_a_slow_jump_has_its_reason_and_a_warning():
    answer = predicted(compare(run(last=50.0), staircase(reason="only 3 relaxation times")))
    assert answer["jumps"][1]["slow"] is True
    assert answer["jumps"][1]["reason"] == "only 3 relaxation times"
    assert any("Jump 2" in warning and "only 3 relaxation times" in warning for warning in answer["warnings"])


def test_many_slow_jumps_have_one_warning_with_their_numbers():
    count = 200
    levels = 2.0 ** -np.arange(count + 1)
    few = staircase().isel(jump=[0]).drop_vars("singular_value")
    many = few.isel(jump=np.zeros(count, int)).assign_coords(jump=np.arange(1, count + 1))
    reasons = [""] + [f"it lasts {1.5 + k} relaxation times" for k in range(count - 1)]
    many = many.assign(
        loss_before=("jump", levels[:-1]),
        loss_after=("jump", levels[1:]),
        slow=("jump", [bool(each) for each in reasons]),
        reason=("jump", reasons),
    )
    first, slow = predicted(Prediction.of(many))["warnings"]
    assert first == "read with care"
    assert re.findall(r"[\d.]*\d", slow) == ["2", "200", "1.5", "199.5"]


def test_a_study_says_why_a_claim_is_undecided():
    said = report_claims(
        [
            Claim("A", "Few neurons are enough.", 6, most=8),
            Claim("B", "The loss falls.", 1.0, most=2.0).if_known(False, "two of three networks did not learn"),
        ]
    )
    coordinates = {"time": [0.0, 1.0], "hypothesis": said.pop("hypothesis")[1]}
    curve = make_record({"loss": (("time",), [1.0, 0.5]), **said}, coordinates)
    answer = study_answer(Example(), compare(curve, curve, claims=["A", "B"]), seconds=0.0, record=None)
    assert answer["claims"] == {"A": "holds", "B": "undecided"}
    assert answer["undecided"] == {"B": "two of three networks did not learn"}


def test_the_answer_of_a_stored_record_is_the_answer_of_the_record(tmp_path):
    for tree in (Prediction.of(staircase(network="diagonal")), compare(run(floor=0.8), staircase(reason="slow"))):
        assert predicted(load(save(tree, tmp_path / "x.zarr.zip"))) == predicted(tree)


@pytest.mark.parametrize(("last", "verdict"), [(30.0, "agree"), (50.0, "disagree")])
def test_a_study_answers_with_parameters_agreement_and_verdict(last, verdict):
    tree = compare(run(last=last), staircase())
    answer = study_answer(Example(width=7), tree, seconds=2.0, record=Path("x.zarr.zip"))
    assert strict(answer) == answer
    assert answer.keys() == {
        *("study", "parameters", "agreement", "checks", "claims"),
        *("verdict", "verdict_sentence", "share_of_fall", "undecided"),
        *("seconds", "record", "version", "warnings"),
    }
    assert answer["undecided"] == {}
    assert answer["study"] == "example"
    assert answer["parameters"] == {"width": 7, "scale": 1e-8}
    assert answer["verdict"] == verdict
    assert answer["agreement"]["jump_time"]["agrees"] is (verdict == "agree")
    assert answer["warnings"] == ["read with care"]


def test_a_study_says_what_it_could_not_judge():
    tree = compare(run(), staircase(reason="slow").isel(jump=[1]))
    warnings = study_answer(Example(), tree, seconds=0.0, record=None)["warnings"]
    assert any("jump time" in warning for warning in warnings)
    assert any("Jump 2" in warning for warning in warnings)


def test_a_study_of_curves_needs_no_staircase():
    curve = make_record({"loss": (("time",), [1.0, 0.5])}, {"time": [0.0, 1.0]})
    answer = study_answer(Example(), compare(curve, curve), seconds=0.0, record=None)
    assert answer["warnings"] == []
    assert answer["agreement"]["loss"]["error"] == 0.0


def test_parameters_that_are_not_finite_are_null():
    tree = compare(run(), staircase())
    answer = study_answer(Example(scale=np.nan), tree, seconds=0.0, record=None)
    assert answer["parameters"]["scale"] is None
    assert "parameters.scale" in answer["warnings"][-1]
