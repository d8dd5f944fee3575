from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.grokking.grokking_imbalance.claims import DECIDING
from dynascope.studies.grokking.grokking_imbalance.study import GrokkingImbalance

TINY = GrokkingImbalance(**GrokkingImbalance.tiny)


@pytest.fixture(scope="module")
def sides():
    return TINY.observe(), TINY.predict()


@pytest.mark.slow
def test_projections_other_than_one_fail_the_check(sides):
    observed, predicted = (each.record for each in sides)
    assert TINY.compared(observed, predicted).checks["two_layer_projection"].agrees
    wrong = predicted.assign(two_layer_projection=1.001 * predicted["two_layer_projection"])
    result = TINY.compared(observed, wrong)
    assert not result.checks["two_layer_projection"].agrees
    assert result.verdict.outcome == "undecided"


@pytest.mark.slow
@pytest.mark.parametrize(("ratio", "verdict"), [(0.5, "agree"), (2.0, "disagree")])
def test_the_times_to_grok_decide_the_verdict(sides, ratio, verdict):
    shape = sides[0].record["test_step"].shape
    even = np.full(shape, 100.0)
    times = even * np.array([1.0, 1.0, ratio])[:, None]
    reached = np.ones(shape, bool)
    found = {"test_step": times, "train_step": even, "fitted": reached, "generalised": reached}
    claims = {each.name: each for each in TINY.claimed(found)}
    record = sides[0].record.copy()
    for name, values in {"change": "value", "low": "low", "high": "high", "holds": "outcome"}.items():
        record[name] = ("hypothesis", [getattr(claims[str(each)], values) for each in record["hypothesis"].values])
    record["why_undecided"] = ("hypothesis", [claims[str(each)].why_undecided for each in record["hypothesis"].values])
    result = TINY.compared(record, sides[1].record)
    assert result.verdict.outcome == verdict
    assert {name for name, each in result.claims.items() if each.decides} == set(DECIDING)


@pytest.mark.slow
def test_recorded_times_match_the_recorded_accuracies(sides):
    record = sides[0].record
    steps, learned = record["recorded_step"], record["accuracy"] >= TINY.threshold
    first = steps.where(learned).min("record")
    expected = first.fillna(steps.max("record")).transpose(*record["train_step"].dims)
    np.testing.assert_array_equal(record["train_step"], expected)
    np.testing.assert_array_equal(record["fitted"], learned.any("record"))


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("p", {"p": 2}),
        ("train_fraction", {"train_fraction": 0.2}),
        ("train_fraction", {"train_fraction": 0.83}),
        ("relative_scales", {"relative_scales": [0.5, 2.0, 4.0]}),
        ("relative_scales", {"relative_scales": [1.0, 2.0, 4.0]}),
        ("relative_scales", {"relative_scales": [0.2, 0.5, 1.0]}),
        ("transformer_width", {"transformer_width": 10}),
        ("learning_rates", {"learning_rates": [0.1] * 3}),
        ("weight_decays", {"weight_decays": [0.1] * 5}),
        ("weight_decays", {"weight_decays": [1000.0] * 4}),
        ("steps", {"steps": [200, 200, 200, 205]}),
        ("seeds", {"seeds": 1}),
        ("threshold", {"threshold": 1.5}),
    ],
)
def test_a_field_out_of_range_is_rejected_by_name(argument, change):
    with pytest.raises(InputError) as refusal:
        dataclasses.replace(TINY, **change)
    assert refusal.value.argument == argument
