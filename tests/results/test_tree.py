from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from dynascope.comparison import compare, report_claims
from dynascope.results import (
    Chart,
    Claim,
    Comparison,
    Observation,
    Parameter,
    Prediction,
    Quantity,
    Verdict,
    from_tree,
    load,
    make_record,
)
from dynascope.results.tree import to_tree

TIME = {"time": [0.0, 1.0, 2.0]}
THEORY = make_record(
    {"loss": (["time"], [1.0, 0.5, 0.25])}, TIME, attributes={"theory": "an example", "warnings": ["w"]}
)
RUN = make_record({"loss": (["time"], [1.0, 0.5, 0.24])}, TIME)


@pytest.fixture
def compared() -> Comparison:
    run = RUN.assign(report_claims([Claim("A", "It is small.", 1.0, 0.0, 3.0, most=2.0)]))
    found = dataclasses.replace(
        compare(run, THEORY, claims=["A"]), title="A title", parameters={"width": Parameter(3, "Neurons.", "three")}
    )
    quantities = {**found.quantities, "lost": Quantity(math.inf, 0.1, "why"), "open": Quantity(math.nan, 0.1)}
    charts = (Chart("loss", residual=True, symbols={"seed": "s"}),)
    return dataclasses.replace(found, quantities=quantities, charts=charts)


def test_a_comparison_comes_back_from_its_tree(compared):
    found = from_tree(to_tree(compared))
    assert isinstance(found, Comparison)
    assert (found.verdict, found.checks, found.claims, found.charts) == (
        *(compared.verdict, compared.checks, compared.claims, compared.charts),
    )
    assert (found.title, found.parameters, found.provenance) == (
        *(compared.title, compared.parameters, compared.provenance),
    )
    for name, each in compared.quantities.items():
        np.testing.assert_equal(dataclasses.astuple(found.quantities[name]), dataclasses.astuple(each))
    for side in ("predicted", "observed", "residual"):
        assert getattr(found, side).identical(getattr(compared, side))


@pytest.mark.parametrize(("record", "kind"), [(THEORY, Prediction), (RUN, Observation)])
def test_a_record_alone_is_a_prediction_or_an_observation(record, kind):
    found = from_tree(record)
    assert type(found) is kind
    assert found.verdict is None
    assert found.warnings == record.attrs.get("warnings", [])
    assert from_tree(found) is found


def test_a_result_draws_reports_and_saves_itself(compared, tmp_path):
    assert len(compared.plot().axes) == 2
    assert compared.to_html(tmp_path / "page.html").read_text("utf-8").startswith("<!doctype html>")
    assert load(compared.save(tmp_path / "a.zarr.zip")).verdict == compared.verdict
    assert compared.to_dataframe().loc["lost", "agrees"] == np.False_
    assert "A title" in repr(compared)
    assert compared.verdict.sentence in repr(compared)
    assert "A title" in compared._repr_html_()


def test_the_table_of_a_staircase_has_a_row_for_each_jump():
    jumps = {"jump_time": (["jump"], [1.0, 2.0]), "accelerated_time": (["jump"], [0.1, 0.2])}
    levels = {"loss_before": (["jump"], [1.0, 0.5]), "loss_after": (["jump"], [0.5, 0.0])}
    found = from_tree(make_record({**jumps, **levels}, {"jump": [1, 2]}, attributes={"theory": "t", "scale": 1e-8}))
    assert found.to_dataframe()["loss_after"].tolist() == [0.5, 0.0]


def test_two_sides_that_were_never_compared_have_no_verdict():
    tree = to_tree(compare(RUN, THEORY))
    for name in ("verdict", "verdict_sentence", "agreement", "checks", "claims", "share_of_fall"):
        tree.attrs.pop(name, None)
    found = from_tree(tree)
    assert found.verdict is None
    assert not isinstance(found, Comparison)
    assert list(found.sides) == ["observed", "predicted"]
    assert repr(found)


def test_what_was_left_undecided_keeps_its_reason():
    found = from_tree(to_tree(dataclasses.replace(compare(RUN, THEORY), verdict=Verdict("undecided", "Too rough."))))
    assert (found.verdict.outcome, found.verdict.sentence) == ("undecided", "Too rough.")
