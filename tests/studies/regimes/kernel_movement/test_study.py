from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.regimes.kernel_movement.claims import DECIDING, movement_claims
from dynascope.studies.regimes.kernel_movement.experiment import FRACTIONS, MEASURED
from dynascope.studies.regimes.kernel_movement.study import KernelMovement

SCALES = [0.25, 1.0, 4.0]


@pytest.fixture(scope="module")
def study():
    return KernelMovement(**KernelMovement.tiny)


@pytest.fixture(scope="module")
def sides(study):
    return study.observe(), study.predict()


def outcomes(found):
    return {each.name: each.outcome for each in movement_claims(found, SCALES, FRACTIONS)}


def made(*, power=1.0, final=0.01):
    """Measures that are powers of the relative scale, with small differences between seeds."""
    shape = (2, 2, len(SCALES), 4, len(FRACTIONS))
    rise = np.array(SCALES)[:, None, None] ** power * np.linspace(0.9, 1.1, 4)[:, None]
    found = {name: np.broadcast_to(0.1 * rise, shape) for name in MEASURED}
    found["test_loss"] = found["parameter_distance"] = 0.01 / found["kernel_distance"]
    return found | {"initial_loss": np.ones(shape[:-1]), "loss": np.full(shape[:-1], final)}


def test_claims_on_made_measures_follow_their_order():
    upwards, downwards = outcomes(made()), outcomes(made(power=-1.0))
    names = set(upwards) - {"norm_weakens"}
    assert {upwards[name] for name in names} == {"holds"}
    assert {downwards[name] for name in names} == {"does not hold"}


def test_the_value_of_a_claim_is_the_least_favourable_ratio():
    found = made()
    kernel = np.array(found["kernel_distance"])
    kernel[0, 1, -1] = 0.5 * kernel[0, 1, 1]  # at the second depth, half as large upstream as at one
    claims = {each.name: each for each in movement_claims(found | {"kernel_distance": kernel}, SCALES, FRACTIONS)}
    assert claims["kernel_at_half"].value == pytest.approx(np.log(0.5))
    assert claims["kernel_at_half"].outcome == "does not hold"
    assert claims["patterns_at_half"].value == pytest.approx(np.log(4))


def test_networks_that_did_not_learn_decide_nothing():
    assert set(outcomes(made(final=0.2)).values()) == {"undecided"}


@pytest.mark.slow
def test_patterns_change_sooner_upstream_and_the_contrary_is_refuted(study, sides):
    record = sides[0].record
    found = {name: record[name].to_numpy() for name in (*(set(MEASURED) - {"time"}), "loss", "initial_loss")}
    forwards = outcomes(found)
    assert {forwards["patterns_at_half"], forwards["patterns_at_tenth"], forwards["kernel_at_half"]} == {"holds"}
    assert "does not hold" not in {forwards[name] for name in DECIDING}
    backwards = outcomes({name: values[:, :, ::-1] for name, values in found.items()})
    assert {backwards[name] for name in ("patterns_at_half", "patterns_at_tenth")} == {"does not hold"}
    assert study.compare(*sides).verdict.outcome != "disagree"


@pytest.mark.slow
def test_layers_that_are_not_twins_break_the_check(study, sides):
    observed, predicted = sides
    assert np.abs(observed.record["twin_ratio"] - 1).max() < 1e-9
    wrong = observed.record.assign(twin_ratio=1.001 * observed.record["twin_ratio"])
    result = study.compared(wrong, predicted.record)
    assert not result.checks["twin_ratio"].agrees
    assert result.verdict.outcome == "undecided"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("relative_scales", [0.25, 0.5, 4.0]),
        ("relative_scales", [0.7, 1.0, 4.0]),
        ("relative_scales", [0.25, 0.5, 1.0]),
        ("kernel_samples", 61),
        ("output_scale", 1.0),
        ("depths", [0, 2]),
        ("seeds", 1),
    ],
)
def test_a_field_out_of_range_is_rejected_by_name(field, value):
    with pytest.raises(InputError) as rejection:
        KernelMovement(**KernelMovement.tiny | {field: value})
    assert rejection.value.argument == field
