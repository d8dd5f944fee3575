from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import xarray as xr
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies.staircases.multi_index.study import MultiIndexStaircase

TINY: dict[str, Any] = dict(MultiIndexStaircase.tiny)
UNKNOWN: dict[str, Any] = {"theory": "oracle"}
OTHER: dict[str, Any] = TINY | {"strengths": [1.0, 0.4]}
GENERAL = TINY | {"theory": "alternating-flow"}


def assert_learned_in_the_predicted_order(tree):
    strengths = np.array(tree.observed["index_strength"])
    final = strengths[-1]
    half = [int(np.argmax(np.abs(strengths[:, r]) > np.abs(final[r]) / 2)) for r in range(len(final))]
    predicted = tree.predicted["index_strength"].to_numpy()
    # At the end the network has the strengths of the target.
    np.testing.assert_allclose(final[np.argsort(half)], predicted, atol=1e-3)


@pytest.fixture(scope="module")
def tiny():
    run = tiny_run("multi-index")
    return run.study, run.observed, run.predicted


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_the_closed_form_and_the_flow_agree_at_random_fields(seed):
    draw = np.random.default_rng(seed)
    study = MultiIndexStaircase(
        **TINY
        | {
            "strengths": [float(draw.uniform(0.8, 2)), float(draw.uniform(0.2, 0.5))],
            "scale": 10.0 ** -int(draw.integers(6, 11)),
            "seed": seed,
        }
    )
    tree = study.run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    # Between the scales, a factor 1e8 apart, what the times leave out cancels.
    assert float(np.abs(tree.residual["slope_error"]).max()) < 1e-3
    assert_learned_in_the_predicted_order(tree)


@pytest.mark.parametrize(("strengths", "flat"), [([1.0, 0.3], True), ([0.58, 0.38], False)])
def test_a_plateau_whose_ends_may_meet_says_nothing_of_its_level(strengths, flat):
    predicted = MultiIndexStaircase(**TINY | {"strengths": strengths, "scale": 5e-7}).predict()
    between = np.diff(predicted["jump_time"])
    assert bool(between[0] > predicted["settling_time"][0]) is flat
    assert predicted["settling_time"][-1] == 0


@pytest.mark.slow
def test_the_general_prediction_agrees_with_the_flow_and_with_the_closed_form():
    tree = MultiIndexStaircase(**GENERAL | {"strengths": [1.0, 0.4]}).run()
    predicted = tree.predicted
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    # A cost phase ends when the loss hardly falls any more, or where the neurons have begun to leave the saddle.
    np.testing.assert_allclose(predicted["loss_after"], predicted["closed_form_level"], atol=1e-4)
    # Half an e-fold of the eighteen between the scales.
    np.testing.assert_allclose(predicted["accelerated_time"], predicted["closed_form_time"], rtol=0.05)
    assert_learned_in_the_predicted_order(tree)


@pytest.mark.slow
def test_the_general_prediction_holds_where_there_is_no_closed_form():
    tree = MultiIndexStaircase(**GENERAL | {"strengths": [1.0, -0.4], "seed": 2}).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert "closed_form_time" not in tree.predicted
    assert_learned_in_the_predicted_order(tree)


@pytest.mark.slow
def test_the_theory_of_other_strengths_is_refuted(tiny):
    study, observed, _ = tiny
    other = MultiIndexStaircase(**OTHER)
    tree = study.compared(observed, other.predict().record)
    assert tree.verdict.outcome == "disagree"


@pytest.mark.slow
def test_the_exchanged_order_is_refuted(tiny):
    study, observed, predicted = tiny
    predicted = predicted.copy(deep=True)
    # The weaker direction first: the level between is that of the stronger one alone.
    level = 1.0**2 + 1.0**2 / 3
    predicted["loss_after"][0], predicted["loss_before"][1] = level, level
    assert study.compared(observed, predicted).verdict.outcome == "disagree"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("scale", bad) for bad in (1.0, 2.0, 0.0, -1.0, np.nan, np.inf, 1e-30)),
        *(("dimension", bad) for bad in (0, -1)),
        *(("strengths", bad) for bad in ([], [0.0], [1.0, np.nan], [1.0, 0.5, 0.2, 0.1])),
        *(("degree", bad) for bad in (0, 1)),
        *(("width", bad) for bad in (0, 1)),
        ("seed", -1),
    ],
)
@pytest.mark.parametrize("fields", [TINY, GENERAL], ids=["closed-form", "alternating-flow"])
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(fields, field, value):
    with pytest.raises(InputError) as refusal:
        MultiIndexStaircase(**fields | {field: value})
    assert refusal.value.argument == field


@pytest.mark.parametrize(("fields", "argument"), [({"degree": 3}, "theory"), ({"strengths": [1.0, -0.5]}, "strengths")])
def test_the_closed_form_refuses_what_it_does_not_cover(fields, argument):
    with pytest.raises(InputError) as refusal:
        MultiIndexStaircase(**TINY | fields).predict()
    assert refusal.value.argument == argument


@pytest.mark.usefixtures("unchecked_types")
def test_an_unknown_theory_is_rejected():
    with pytest.raises(InputError) as rejection:
        MultiIndexStaircase(**UNKNOWN)
    assert rejection.value.argument == "theory"


@pytest.mark.parametrize(("jumps", "sloped"), [((2, 2), True), ((3, 1), False)])
def test_slopes_are_told_only_where_both_scales_have_the_same_jumps(monkeypatch, jumps, sloped):
    study = MultiIndexStaircase(**MultiIndexStaircase.tiny)
    records = dict(zip((study.scale, study.second_scale()), jumps, strict=True))
    monkeypatch.setattr(
        MultiIndexStaircase, "_staircase", lambda _, scale: xr.Dataset(coords={"jump": np.arange(records[scale])})
    )
    assert study.compares_slopes() is sloped


@pytest.mark.slow
def test_without_slopes_times_and_levels_are_judged_alone(monkeypatch):
    study = MultiIndexStaircase(**MultiIndexStaircase.tiny)
    monkeypatch.setattr(MultiIndexStaircase, "compares_slopes", lambda _: False)
    tree = study.run()
    assert tree.verdict.outcome == "agree"
    assert "slope" not in tree.quantities
