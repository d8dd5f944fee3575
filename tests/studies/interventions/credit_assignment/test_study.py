from __future__ import annotations

import pytest
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies.interventions.credit_assignment import runs, study
from dynascope.studies.interventions.credit_assignment.claims import DECIDING
from dynascope.studies.interventions.credit_assignment.study import CreditAssignment
from dynascope.theory.interventions import mirror_misalignment

TINY = dict(CreditAssignment.tiny)


@pytest.fixture(scope="module")
def tiny():
    return tiny_run("credit-assignment")


@pytest.mark.slow
def test_every_claim_decides_and_the_angle_of_the_mirror_is_predicted(tiny):
    assert {name for name, each in tiny.tree.claims.items() if each.decides} == set(DECIDING)
    assert tiny.tree.quantities["mirror_angle"].agrees
    assert tiny.tree.claims["angle, symmetric alignment < weight mirror"].outcome == "holds"


@pytest.mark.slow
def test_another_stationary_angle_turns_the_verdict(tiny, monkeypatch):
    def wrong(weights, batch_size, *, feedback_rate):
        return mirror_misalignment(weights, batch_size, feedback_rate=2 * feedback_rate)

    monkeypatch.setattr(study, "mirror_misalignment", wrong)
    chosen = CreditAssignment(**TINY)
    tree = chosen.compared(tiny.observed, chosen.predict().record)
    assert not tree.quantities["mirror_angle"].agrees
    assert tree.verdict.outcome == "disagree"


@pytest.mark.slow
def test_backpropagation_is_exact_in_the_record(tiny):
    exact = tiny.observed.sel(rule="backpropagation")
    # The angle is the arc cosine of a number in single precision.
    assert float(exact["weight_angle"].max()) < 0.1
    assert float(exact["gradient_angle"].max()) < 0.1


def test_rules_of_the_grid_have_a_strength():
    for name in runs.GRID_RULES:
        rule = runs.CREDIT_RULES[name]
        stronger = runs._strengthened(rule, 2.0)
        assert (stronger == rule) == (name == "backpropagation")


@pytest.mark.parametrize(
    ("change", "argument"), [({"steps": 61}, "steps"), ({"grid_depth": 5}, "grid_depth"), ({"seeds": 1}, "seeds")]
)
def test_bad_fields_are_rejected_by_name(change, argument):
    with pytest.raises(InputError) as caught:
        CreditAssignment(**{**TINY, **change})
    assert caught.value.argument == argument
