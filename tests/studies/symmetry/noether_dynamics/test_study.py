from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies.symmetry.noether_dynamics import experiment
from dynascope.studies.symmetry.noether_dynamics.study import NoetherDynamics
from dynascope.theory.symmetry import squared_norm_path

STUDY = NoetherDynamics(**NoetherDynamics.tiny)


@pytest.fixture(scope="module")
def observed():
    return tiny_run("noether-dynamics").observed


def outcomes(observed) -> dict[str, str]:
    return dict(zip(observed["hypothesis"].to_numpy(), observed["holds"].to_numpy(), strict=True))


@pytest.mark.slow
def test_both_closures_hold_where_they_are_claimed(observed):
    found = outcomes(observed)
    assert "does not hold" not in found.values()
    assert found["full batch: coherent"] == found["minibatches: white"] == "holds"
    tree = STUDY.compared(observed, STUDY.predict().record)
    assert tree.verdict.outcome == "agree"
    # What is drawn as predicted is the closure of that run.
    drawn = tree.predicted
    late = slice(len(drawn["step"]) // 2, None)
    ratio = (tree.observed["squared_norm"] / drawn["squared_norm"]).isel(step=late)
    assert abs(ratio.mean() - 1) < 0.05
    assert float((tree.observed["coherent_norm"] / drawn["squared_norm"]).isel(step=late).mean()) > 1.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "by", "refuted"),
    [
        ("growth_share", 3.0, ("full batch: coherent", "minibatches: white")),
        ("growth_share", 1 / 3, ("full batch: coherent", "minibatches: white")),
        ("equilibrium_share", 1.2, ("minibatches: norm at equilibrium",)),
        ("late_angle", 0.8, ("minibatches: angle of a step",)),
    ],
)
def test_each_claim_can_be_refuted(observed, name, by, refuted):
    found = {each: (values.dims, values.to_numpy()) for each, values in observed.items()}
    # Without the chance of the starts, of which there are three.
    axes, values = found[name]
    found[name] = axes, by * values.mean(axis=axes.index("start"), keepdims=True) + 0 * values
    claims = {claim.name: claim.outcome for claim in STUDY.claimed(found)}
    assert {each for each, outcome in claims.items() if outcome == "does not hold"} == set(refuted)


@pytest.mark.slow
def test_closures_by_another_power_of_one_less_momentum_are_refuted(monkeypatch):
    def wrong(initial, squared_gradients, sgd):
        return squared_norm_path(initial, (1 - sgd.momentum) * squared_gradients, sgd)

    monkeypatch.setattr(experiment, "squared_norm_path", wrong)
    found = dataclasses.replace(STUDY).observe().record
    assert outcomes(found)["full batch: coherent"] == "does not hold"


@pytest.mark.slow
def test_momentum_other_than_declared_is_a_fault_of_the_measurement(monkeypatch):
    law = experiment.quadratic_charge

    def wrong(initial, displacements, sgd):
        return law(initial, displacements, dataclasses.replace(sgd, momentum=0.999 * sgd.momentum))

    monkeypatch.setattr(experiment, "quadratic_charge", wrong)
    tree = dataclasses.replace(STUDY).run()
    assert tree.verdict.outcome == "undecided"
    assert not tree.checks["within_rounding"].agrees


def test_what_is_outside_of_the_domain_of_a_closure_is_not_judged():
    layers = 3
    shares = np.stack([np.full((3, layers), 0.5), np.full((3, layers), experiment.white_share(STUDY.momentum))])
    found = {
        "growth_share": (("run", "start", "layer"), shares),
        "equilibrium_share": (("start", "layer"), np.full((3, layers), 2.0)),
        "late_angle": (("start", "layer"), np.full((3, layers), STUDY.experiment.angle)),
        "startup_share": (("start", "layer"), np.full((3, layers), 0.3)),
        "remembered_share": (("start", "layer"), np.full((3, layers), 0.1)),
    }
    told = [claim.outcome for claim in STUDY.claimed(found)]
    assert told == ["undecided", "holds", "undecided", "undecided"]
    inside = {"startup_share": 0.1, "remembered_share": 0.01}
    found |= {name: (found[name][0], np.full((3, layers), share)) for name, share in inside.items()}
    told = [claim.outcome for claim in STUDY.claimed(found)]
    assert told == ["does not hold", "holds", "does not hold", "holds"]


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("decay_ratio", {"decay_ratio": 0.2}),
        ("decay_ratio", {"decay_ratio": 0.0}),
        ("momentum", {"momentum": 0.1}),
        ("batch_size", {"batch_size": 500}),
        ("starts", {"starts": 1}),
    ],
)
def test_bad_fields_are_named(argument, change):
    with pytest.raises(InputError) as caught:
        NoetherDynamics(**change)
    assert caught.value.argument == argument
