from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies.noise.limiting_dynamics import regression_laws
from dynascope.studies.noise.limiting_dynamics.claims import LIMITING_CLAIMS
from dynascope.studies.noise.limiting_dynamics.study import LimitingDynamics
from dynascope.theory import SGD


@pytest.fixture(scope="module")
def run():
    return tiny_run("limiting-dynamics")


def outcomes(study) -> dict[str, str]:
    return {claim.name: claim.outcome for claim in study.claimed(study.trained())}


def with_runs_of(study):
    """The same fields and the same runs, with a theory that is evaluated again."""
    other = dataclasses.replace(study)
    vars(other.experiment)["sgd"] = study.experiment.sgd
    return other


@pytest.mark.slow
def test_all_is_as_theory_says(run):
    observed = run.observed
    assert run.tree.verdict.outcome == "agree"
    told = dict(zip(observed["hypothesis"].to_numpy(), observed["holds"].to_numpy(), strict=True))
    assert told == dict.fromkeys(LIMITING_CLAIMS, "holds")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("law", "refuted"),
    [
        ("finite_data_moments", "SGD: moments"),
        ("langevin_moments", "Langevin: moments"),
        ("langevin_stationary_moments", "SGD: stationary variances"),
        ("stationary_law", "SGD: modified loss"),
    ],
)
def test_batches_of_another_size_refute_it(run, monkeypatch, law, refuted):
    right = getattr(regression_laws, law)

    def wrong(*given, **named):
        larger = (
            dataclasses.replace(each, batch_size=each.batch_size + 4) if isinstance(each, SGD) else each
            for each in given
        )
        return right(*larger, **named)

    monkeypatch.setattr(regression_laws, law, wrong)
    # Whether the law of small steps is good enough is told by the exact one.
    monkeypatch.setattr(regression_laws.RegressionLaws, "off", np.zeros(2))
    assert outcomes(with_runs_of(run.study))[refuted] == "does not hold"


@pytest.mark.slow
def test_another_friction_refutes_equipartition_and_currents(run, monkeypatch):
    right = regression_laws.equipartition_ratio
    monkeypatch.setattr(regression_laws, "equipartition_ratio", lambda *of, **named: 1.5 * right(*of, **named))
    monkeypatch.setattr(regression_laws.RegressionLaws, "circulation", -run.study.experiment.laws.circulation)
    told = outcomes(with_runs_of(run.study))
    assert (told["SGD: equipartition"], told["SGD: currents"]) == ("does not hold", "does not hold")
    assert told["SGD: moments"] == "holds"


@pytest.mark.slow
def test_what_rests_on_small_steps_is_not_judged_where_they_are_large(run, monkeypatch):
    monkeypatch.setattr(regression_laws.RegressionLaws, "off", np.array([0.0, 0.2]))
    told = list(outcomes(with_runs_of(run.study)).values())
    assert told == ["holds", "holds", *["undecided"] * 4]


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("learning_rate", {"learning_rate": 0.5, "curvatures": [4.0, 0.02], "momentum": 0.0}),
        ("learning_rate", {"learning_rate": 0.0001}),
        ("samples", {"samples": 20, "curvatures": list(np.linspace(0.1, 1, 20))}),
        ("curvatures", {"curvatures": [1.0]}),
        ("runs", {"runs": 10}),
    ],
)
def test_bad_fields_are_named(argument, change):
    with pytest.raises(InputError) as caught:
        LimitingDynamics(**change)
    assert caught.value.argument == argument
