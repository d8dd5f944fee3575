"""What every study must be; a study that is found takes part without further words."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import re

import legal_settings
import numpy as np
import pytest
import xarray as xr
from resumable import rows
from tiny_runs import TinyRun, tiny_run

from dynascope.cli.json_output import study_answer
from dynascope.comparison import Claim
from dynascope.comparison.verdict import HEADINGS
from dynascope.plot.figures import draw_chart
from dynascope.report.page import render_page
from dynascope.results import validate_record
from dynascope.results.judgement import Outcome
from dynascope.results.store import load, save
from dynascope.results.tree import to_tree
from dynascope.studies import Study, find_studies, find_study

every_study = pytest.mark.parametrize("study", find_studies().values(), ids=find_studies())


# Studies that run in two seconds, compilation included; the runs of all others are left out together with slow tests.
QUICK = {
    *("agf-linear", "diagonal-staircase", "learnability", "linear-staircase", "relu-alignment"),
    *("scaling-compute", "scaling-data", "scaling-parameters", "scaling-time"),
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(study, id=name, marks=() if name in QUICK else pytest.mark.slow)
        for name, study in find_studies().items()
    ],
)
def run(request) -> TinyRun:
    """One run of the study at its tiny fields, for all that is asked of it."""
    return tiny_run(request.param.name)


@pytest.fixture(scope="module")
def again(run) -> Study:
    """The study once more."""
    return type(run.study)(**run.study.tiny)


# Forecasts that are calibrated on networks of their own; and a series whose orders descend, which is no network.
DESCENDING = {"emergence-data", "emergence-parameters", "emergence-time", "lazy-rich-features"}


@pytest.fixture(scope="module")
def predicted_again(again) -> xr.Dataset:
    """What it predicts where nothing can be trained."""
    with pytest.MonkeyPatch.context() as patch:
        if again.name in DESCENDING:
            patch.setattr(type(again), "observed", lambda _: pytest.fail("it was observed"))
            return again.predict().record
        for name in ("dynascope.flows.gradient_flow", "dynascope.training.descend"):
            module = importlib.import_module(name)  # whose function may have the same name
            patch.setattr(module, "gather", lambda *_, **__: pytest.fail("it was trained"))
        return again.predict().record


def agreement(tree: xr.DataTree) -> dict[str, dict]:
    """All that is compared, identities too."""
    return {**tree.quantities, **tree.checks}


# What it declares.


@every_study
def test_it_is_a_frozen_dataclass_whose_fields_all_have_plain_defaults(study):
    parameters = dataclasses.asdict(study())
    assert json.loads(json.dumps(parameters, allow_nan=False)) == parameters
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(study(), next(iter(parameters)), 1)


@every_study
def test_its_docstring_explains_every_field_and_no_other(study):
    _, _, attributes = inspect.getdoc(study).partition("\nAttributes:\n")
    explained = dict(re.findall(r"^    (\w+): (\S.*)$", attributes, re.MULTILINE))
    assert list(explained) == [field.name for field in dataclasses.fields(study)]


@every_study
def test_it_is_found_under_the_name_of_its_file(study):
    assert find_study(study.name) is study
    assert study.__module__.removesuffix(".study").rpartition(".")[2] == study.name.replace("-", "_")
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", study.name)


@every_study
def test_its_paper_its_cost_and_its_tiny_fields_are_declared(study):
    assert re.fullmatch(r"\d{4}\.\d{4,5}", study.reference.arxiv)
    assert 0 < study.minutes < np.inf
    assert study.tiny
    assert set(study.tiny) <= {field.name for field in dataclasses.fields(study)}


@every_study
def test_its_tolerances_have_reasons(study):
    for tolerance, reason in study.tolerance.values():
        assert 0 <= tolerance < 1
        assert reason


# What it finds.


def test_it_agrees_at_its_tiny_fields(run):
    # Two seeds may be too few for a claim on networks of which only chance is known, never too few for a theory.
    allowed = {"agree", "undecided"} if run.study.deciding_claims else {"agree"}
    assert run.tree.verdict.outcome in allowed, run.tree.verdict.sentence


def test_nothing_that_it_compares_is_left_unjudged_at_its_tiny_fields(run):
    assert all(each.error is not None for each in agreement(run.tree).values())
    assert all(each.agrees and each.reason for each in agreement(run.tree).values())


def test_its_figures_are_drawn_from_what_it_finds(run):
    for chart in run.tree.charts:
        draw_chart(run.tree, chart)


def test_its_tolerances_are_those_by_which_it_is_judged(run):
    judged = agreement(run.tree)
    assert {*run.study.tolerance, *run.study.checks} <= set(judged)
    for name, (tolerance, reason) in run.study.tolerance.items():
        assert (judged[name].tolerance, judged[name].reason) == (tolerance, reason)


def test_both_sides_are_records_that_say_what_they_are(run):
    for record in (run.predicted, run.observed):
        validate_record(record)
        assert record.attrs["task"]
        assert record.attrs["scale"] == getattr(run.study, "scale", 1.0)
        # Neither a claim nor the interval of a median need be bounded on both sides, and such a median has no size.
        unbounded = {"least", "most"} | (
            {"change", "low", "high", "size"} if run.study.name == "grokking-modular" else set()
        )
        for name, values in record.data_vars.items():
            assert values.dtype.kind in "bU" or name in unbounded or np.isfinite(values).all()
        assert not any(np.isnan(record[name]).any() for name in unbounded - {"size"} if name in record)
    assert run.predicted.attrs["theory"]
    assert run.observed["loss"].dtype == np.float64


def test_its_tree_carries_the_claim_the_parameters_and_all_groups(run):
    assert list(to_tree(run.tree).children) == ["predicted", "observed", "residual"]
    assert run.tree.claim == run.study.reference.claim
    assert run.study.reference.arxiv in run.tree.reference
    assert {name: each.value for name, each in run.tree.parameters.items()} == run.study.parameters()
    assert run.tree.title
    assert run.tree.provenance.command.startswith(f"dynascope run {run.study.name}")
    assert run.tree.verdict.sentence


def test_it_predicts_without_training(run, predicted_again):
    assert predicted_again.sizes == run.predicted.sizes


def test_the_same_fields_give_the_same_numbers(run, again, predicted_again):
    assert again == run.study
    assert predicted_again.identical(run.predicted)


def test_its_tree_comes_back_from_the_store_identical(run, tmp_path):
    assert to_tree(load(save(run.tree, tmp_path / "study.zarr.zip"))).identical(to_tree(run.tree))


def test_its_page_shows_its_verdict(run):
    page = render_page(run.tree)
    assert HEADINGS[run.tree.verdict.outcome] in page
    assert page.count('type="application/json"') >= 1


def test_its_answer_to_machines_is_plain_json(run, tmp_path):
    answer = study_answer(run.study, run.tree, seconds=1.0, record=tmp_path)
    assert json.loads(json.dumps(answer, allow_nan=False)) == answer
    assert answer["warnings"] == []


@pytest.mark.slow
def test_it_does_not_disagree_at_two_other_legal_settings(run):
    # They are of the sizes of the run, so that its programs are found.
    draws = legal_settings.quick(rows(legal_settings.FILE), run.study.name)
    assert len(draws) == 2
    for draw in draws:
        row = legal_settings.found(run.study.name, draw)
        assert row["verdict"] in ("agree", "undecided"), row
        assert row["turns"] != "no"


# What would refute it.


def later(predicted: xr.Dataset) -> xr.Dataset:
    return predicted.assign(jump_time=1.5 * predicted["jump_time"])


def steeper(predicted: xr.Dataset) -> xr.Dataset:
    return predicted.assign(accelerated_time=1.5 * predicted["accelerated_time"])


def higher(predicted: xr.Dataset) -> xr.Dataset:
    """Every plateau but the first a tenth of the initial loss above where it is."""
    shift = 0.1 * float(predicted["loss_before"][0])
    before = predicted["loss_before"] + xr.where(predicted["jump"] > 1, shift, 0.0)
    return predicted.assign(loss_after=predicted["loss_after"] + shift, loss_before=before)


def with_one_jump_more(predicted: xr.Dataset) -> xr.Dataset:
    """The first drop in two halves, the first of them much earlier."""
    record = predicted.isel(jump=[0, *range(predicted.sizes["jump"])]).copy(deep=True)
    record["jump"] = np.arange(1, record.sizes["jump"] + 1)
    middle = float(predicted["loss_before"][0] + predicted["loss_after"][0]) / 2
    record["loss_after"][0], record["loss_before"][1] = middle, middle
    record["jump_time"][0] *= 0.2
    record["accelerated_time"][0] *= 0.2
    return record


def with_one_jump_less(predicted: xr.Dataset) -> xr.Dataset:
    """The first two drops in one."""
    record = predicted.isel(jump=slice(1, None)).copy(deep=True)
    record["loss_before"][0] = predicted["loss_before"][0]
    return record


def from_elsewhere(predicted: xr.Dataset) -> xr.Dataset:
    """Another loss at the start."""
    first = predicted["jump"] == predicted["jump"][0]
    return predicted.assign(loss_before=predicted["loss_before"].where(~first, 1.05 * predicted["loss_before"]))


REFUTATIONS = {
    "initial_loss": from_elsewhere,
    "jump_time": later,
    "slope": steeper,
    "level": higher,
    "missing_jumps": with_one_jump_more,
    "extra_jumps": with_one_jump_less,
}


def test_each_quantity_by_itself_can_refute_it(run):
    for quantity in agreement(run.tree):
        if quantity in REFUTATIONS:
            wrong = REFUTATIONS[quantity](run.predicted)
        else:
            name = quantity.removesuffix("_maximum")
            wrong = run.predicted.assign({name: 1.05 * run.predicted[name]})
        tree = run.study.compared(run.observed, validate_record(wrong))
        assert not agreement(tree)[quantity].agrees, quantity
        # A measurement that breaks an identity is at fault itself, and speaks neither for nor against the claim.
        identity = quantity in run.study.checks
        assert tree.verdict.outcome == ("undecided" if identity else "disagree")


def test_with_all_that_is_predicted_halved_or_doubled_it_never_agrees(run):
    # Identities are left alone, whose failure turns any verdict.
    compared = {quantity.removesuffix("_maximum") for quantity in run.tree.quantities}
    if {"jump_time", "slope"} & compared:
        compared = {"jump_time", "accelerated_time"}
    judged = compared & set(run.predicted.data_vars)
    if not judged:
        # Claims alone decide, on which nothing is predicted; their contraries are below.
        assert run.study.deciding_claims
        return
    # No parameters of the test: those of one study are to stay in the process that has its run.
    for factor in (0.5, 2.0):
        wrong = run.predicted.assign({name: factor * run.predicted[name] for name in judged})
        assert run.study.compared(run.observed, validate_record(wrong)).verdict.outcome != "agree", factor


def outcome_of(observed: xr.Dataset, claim: str, known: bool) -> Outcome:
    """What a record says of a claim by its numbers, or would if the measured value were known exactly."""
    row = {name: values.item() for name, values in observed.sel(hypothesis=claim).items() if not values.dims}
    if "direction" in row:
        sign = np.sign(row["change"]) if known else row["sign"]
        return "undecided" if sign == 0 else "holds" if sign == row["direction"] else "does not hold"
    low, high = 2 * (row["change"],) if known else (row["low"], row["high"])
    return Claim(claim, row["statement"], row["change"], low, high, row["least"], row["most"]).outcome


def contrary(observed: xr.Dataset, claim: str) -> xr.Dataset:
    """The record with the contrary of a claim: the effect has the other sign, or the number lies beyond a bound."""
    elsewhere = observed["hypothesis"] != claim
    if "direction" in observed:
        return observed.assign(direction=observed["direction"].where(elsewhere, -observed["direction"]))
    value, least, most = (observed[name].sel(hypothesis=claim).item() for name in ("change", "least", "most"))
    # Of an interval it is to lie on either side: below, unless it is above.
    above = np.isinf(least) or value > most
    least, most = (np.nextafter(most, np.inf), np.inf) if above else (-np.inf, np.nextafter(least, -np.inf))
    return observed.assign(
        least=observed["least"].where(elsewhere, least), most=observed["most"].where(elsewhere, most)
    )


def settled(observed: xr.Dataset, claim: str, outcome: Outcome, known: bool) -> xr.Dataset:
    """The record with this outcome of a claim; undecided other claims hold, since most of them decide the verdict."""
    here = observed["hypothesis"] == claim
    others = (observed["holds"] == "undecided") & ~here
    exact = others | (here & known)
    value = observed["change"].where(~others, 1.0)
    record = observed.assign(
        change=value,
        low=observed["low"].where(~exact, value),
        high=observed["high"].where(~exact, value),
        holds=observed["holds"].where(~others, "holds").where(~here, outcome),
        why_undecided=observed["why_undecided"].where(~exact, ""),
    )
    if "direction" in observed:
        return record.assign(direction=observed["direction"].where(~others, 1))
    return record.assign(least=observed["least"].where(~others, 0.0), most=observed["most"].where(~others, np.inf))


def test_the_contrary_of_each_claim_that_it_judges_turns_the_verdict(run):
    for claim in run.study.deciding_claims:
        holds = run.observed["holds"].sel(hypothesis=claim).item()
        # What so few seeds leave undecided is judged as if their mean were known exactly, which has to count as well.
        known = holds == "undecided"
        verdicts = {}
        for record in (run.observed, contrary(run.observed, claim)):
            outcome = outcome_of(record, claim, known)
            told = settled(record, claim, outcome, known)
            verdicts[outcome] = run.study.compared(told, run.predicted).verdict.outcome
        assert verdicts == {"holds": "agree", "does not hold": "disagree"}, claim
        assert known or outcome_of(run.observed, claim, known) == holds
