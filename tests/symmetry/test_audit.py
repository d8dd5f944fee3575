from __future__ import annotations

import audit as benchmark
import numpy as np
import pytest
import xarray as xr

from dynascope.errors import InputError
from dynascope.symmetry import Audit, Cause, Charge, Finding, Part, audit

NORM = Charge("scale", (Part("['w']", np.array([[0], [1]]), 1.0),), 2)
LAW = {"measured_charge": 1.0, "predicted_charge": 1.0, "charge_bound": 1e-9}


def recorded(**changes):
    series = {name: np.full((3, 2), value) for name, value in LAW.items()} | changes
    record = xr.Dataset({name: (("step", "charge"), each) for name, each in series.items()})
    return record.assign_coords(step=[0, 10, 30])


def test_a_run_that_keeps_its_laws_is_clean_and_says_by_how_much():
    found = audit(recorded(), [NORM])
    assert found.clean
    assert found.cause is None
    assert "2 laws" in str(found)
    assert "2 recorded steps" in str(found)
    assert "without any residual" in str(found)
    found = audit(recorded(measured_charge=np.full((3, 2), 1 + 5e-10)), [NORM])
    assert "residuals up to 5.0e-01 times the bound" in str(found)


def test_a_record_of_the_initialisation_alone_has_no_verdict():
    found = audit(recorded().isel(step=[0]), [NORM])
    assert not found.clean
    assert found.table == "no step was recorded, so no law was tested"
    assert "watched optimizer" in audit(recorded().isel(step=[0]).assign_attrs(changed_without_step=True), [NORM]).table


def test_weights_that_stay_zero_keep_their_law():
    assert audit(recorded(**{name: np.zeros((3, 2)) for name in LAW}), [NORM]).clean


def test_a_broken_law_is_told_with_its_step_and_its_size():
    measured = np.ones((3, 2))
    measured[2, 1] += 5e-8
    found = audit(recorded(measured_charge=measured), [NORM])
    [finding] = found.findings
    assert (finding.last_kept, finding.first_broken, finding.broken.tolist()) == (10, 30, [False, True])
    assert finding.times == pytest.approx(50, rel=1e-6)
    assert finding.cause is None
    assert "causes=True" in found.table
    assert "1 of 2 laws" in found.table
    assert "step 30" in found.table


def finding(*causes):
    return Finding(NORM, np.array([True]), 0, 1, 2.0, causes)


def test_a_finding_with_several_possible_causes_counts_for_the_one_that_others_support():
    weak = (
        Cause("lower precision", True, "", ("a",), ("dropout",)),
        Cause("dropout", True, "", ("a",), ("lower precision",)),
    )
    strong = Cause("lower precision", False, ""), Cause("dropout", True, "", ("b",))
    [cause] = Audit((finding(*weak), finding(*strong)), 2, 2, 2.0).causes
    assert str(cause) == "dropout: a b"
    [cause] = Audit((finding(*weak),), 1, 2, 2.0).causes
    assert str(cause) == "lower precision or dropout: a"


@pytest.mark.parametrize(
    ("record", "symmetries", "named"),
    [
        (xr.Dataset(), [NORM], "record"),
        (None, [NORM], "record"),
        (recorded().expand_dims("seed"), [NORM], "record"),
        (recorded(measured_charge=np.full((3, 2), np.nan)), [NORM], "record"),
        (recorded(), [], "symmetries"),
        (recorded(), [NORM, NORM], "symmetries"),
        (recorded(), 3, "symmetries"),
    ],
)
def test_what_cannot_be_audited_is_named(record, symmetries, named):
    with pytest.raises(InputError) as caught:
        audit(record, symmetries)
    assert caught.value.argument == named


# One run of the kinds that differ most in how they are told, and a clean one; the benchmark has five of every kind.
RUNS = {
    "clipping by value": "batch norm",
    "another decay of one group": "layer norm",
    "a tied weight copied": "tied",
    "a wrong sign in a custom backward": "batch norm",
    "none": "batch norm",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", RUNS)
def test_a_seeded_defect_is_found_and_named_and_nothing_else_is(kind):
    run = next(each for each in benchmark.runs() if each.kind == kind and each.network == RUNS[kind])
    found = benchmark.found(run)
    assert (found["found"], found["right"]) == ("no" if kind == "none" else "yes", "yes")
