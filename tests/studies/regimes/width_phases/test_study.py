from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tiny_runs import tiny_run

from dynascope.comparison import report_claims
from dynascope.errors import InputError
from dynascope.studies import find_study
from dynascope.studies.regimes.width_phases.experiment import Experiment
from dynascope.theory.regimes.phases import distinct_starts, phase, phase_of_exponents, phase_table

WidthPhases = find_study("width-phases")
tiny = WidthPhases(**WidthPhases.tiny)
PARAMETRISATIONS = distinct_starts()


@pytest.fixture(scope="module")
def sides():
    run = tiny_run("width-phases")
    return run.observed, run.predicted


@pytest.mark.slow
def test_all_twenty_phases_of_the_table_follow_from_the_measured_exponents(sides):
    observed, _ = sides
    measured = {
        str(name): (float(kernel), float(speed))
        for name, kernel, speed in zip(
            observed["architecture"].values,
            observed["kernel_exponent"].values,
            observed["speed_exponent"].values,
            strict=True,
        )
    }
    assert len(measured) == 8
    for rows in phase_table().values():
        for each in rows.values():
            alone = dataclasses.replace(each, first_rate=0.0, second_rate=0.0)
            [name] = [name for name, entry in PARAMETRISATIONS.items() if entry == alone]
            kernel, speed = measured[name]
            # Common rates ~ κ^c multiply the speed by κ^c and leave the kernel's path as it is.
            assert phase_of_exponents(kernel, speed + each.first_rate) == phase(each).name


@pytest.mark.slow
def test_the_phases_are_recorded_on_both_sides(sides):
    observed, predicted = sides
    for name in ("phase", "phase_at_stable_rates"):
        assert observed[name].values.tolist() == predicted[name].values.tolist()
    assert predicted["phase"].values.tolist()[:5] == ["kernel", "frozen", "learning", "unstable", "unstable"]
    assert set(predicted["phase_at_stable_rates"].values) == {"kernel", "learning"}


@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["log_kernel_change", "log_learning_speed", "kernel_exponent", "speed_exponent"])
@pytest.mark.parametrize("architecture", ["Kaiming", "lazy", "Xavier, kernel"])
def test_a_wrong_prediction_for_one_parametrisation_turns_the_verdict(sides, quantity, architecture):
    observed, predicted = sides
    assert tiny.compared(observed, predicted).verdict.outcome == "agree"
    wrong = predicted[quantity] + 0.2 * (predicted["architecture"] == architecture)
    tree = tiny.compared(observed, predicted.assign({quantity: wrong}))
    failed = {name for name, each in tree.quantities.items() if not each.agrees}
    assert failed == {quantity, f"{quantity}_maximum"}


@pytest.mark.slow
def test_another_phase_than_that_of_the_diagram_is_refuted(sides):
    observed, predicted = sides
    seen = {name: observed[name].values.tolist() for name in ("phase", "phase_at_stable_rates")}
    told = {name: predicted[name].values.tolist() for name in seen}
    assert seen == told
    assert Experiment(tiny).phase_claim(seen).outcome == "holds"
    other = Experiment(tiny).phase_claim({**seen, "phase": ["frozen", *seen["phase"][1:]]})
    assert other.outcome == "does not hold"
    wrong = observed.assign(report_claims([other]))
    assert tiny.compared(wrong, predicted).verdict.outcome == "disagree"


@pytest.mark.slow
def test_the_records_keep_the_names_of_the_parametrisations(sides):
    tree = tiny.compared(*sides)
    for side in ("observed", "predicted", "residual"):
        assert getattr(tree, side)["architecture"].values.tolist() == list(PARAMETRISATIONS)
    assert tree.residual["log_kernel_change_residual"].dims == ("scaling_parameter", "architecture")


@pytest.mark.slow
def test_relu_networks_on_digits_keep_their_kernel_where_theory_says():
    # With fewer digits an exponent of the first seed lies half way between the phases.
    tree = dataclasses.replace(tiny, digits_samples=40, digits_seeds=1, seed=1).run()
    agreement = tree.quantities
    assert agreement["digits_keeps_kernel"].agrees
    assert "digits_log_kernel_change" in tree.charts[-1].variables
    assert tree.observed["digits_keeps_kernel"].values.tolist() == [1, 0, 0, 1, 1, 0, 0, 1]


@pytest.mark.slow
def test_tolerances_are_what_the_exact_exponents_miss_and_shrink_with_the_width(sides):
    _, predicted = sides
    wide = dataclasses.replace(tiny, scaling_parameters=[256.0, 512.0, 1024.0]).predict().record
    for name in ("kernel_exponent", "speed_exponent"):
        # Below the 2.5 % that were once allowed at all widths, and less the wider the networks are.
        assert wide.attrs[f"{name}_tolerance"] < predicted.attrs[f"{name}_tolerance"] < 0.025
        limits = predicted[name].to_numpy()
        halved = limits * np.where(np.arange(len(limits)) == np.flatnonzero(limits)[0], 0.5, 1.0)
        assert np.abs(halved - limits).max() > predicted.attrs[f"{name}_maximum_tolerance"] * np.abs(limits).max()


@pytest.mark.parametrize(
    "fields", [{"target": -0.1}, {"target": -15.9}, {"scaling_parameters": [20.0, 30.0, 40.0], "target": 1.8}]
)
def test_networks_too_narrow_for_their_target_to_show_a_limit_are_refused(fields):
    with pytest.raises(InputError) as refusal:
        dataclasses.replace(
            tiny, **{"scaling_parameters": [32.0, 64.0, 128.0], "target": 1.8, "seeds": 2} | fields
        ).predict()
    assert refusal.value.argument == "scaling_parameters"


@pytest.mark.slow
def test_digits_decide_nothing_half_way_between_the_phases(sides):
    study = dataclasses.replace(tiny, digits_seeds=1)
    observed, predicted = sides
    exponents, keeps = predicted["kernel_exponent"].to_numpy(), predicted["kernel_exponent"].to_numpy() < 0

    def judged(seen):
        both = {"digits_kernel_exponent": ("architecture", seen), "digits_keeps_kernel": ("architecture", seen < -0.5)}
        told = predicted.assign(digits_keeps_kernel=("architecture", keeps.astype(int)))
        measured = observed.assign(**{name: (dim, np.asarray(values, float)) for name, (dim, values) in both.items()})
        tree = study.compared(measured, study.with_tolerances(told))
        return tree.verdict.outcome, "digits_keeps_kernel" in tree.quantities

    assert judged(exponents) == ("agree", True)
    assert judged(exponents - 0.6 * (np.arange(8) == 1)) == ("agree", False)
    assert judged(exponents - 0.8 * (np.arange(8) == 1)) == ("disagree", True)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scaling_parameters", [32.0, 64.0]),
        ("scaling_parameters", [64.0, 32.0, 128.0]),
        ("scaling_parameters", [8.0, 16.0, 32.0]),
        ("fixed_width", 0),
        ("seeds", 0),
        ("target", 0.0),
        ("target", np.nan),
        ("seed", -1),
        ("scaling_parameters", [32.0, 64.0, 128.0]),
        ("fixed_width", 16),
        ("seeds", 1),
        ("digits_samples", 5),
        ("digits_seeds", -1),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as refusal:
        WidthPhases(**{**WidthPhases.tiny, "digits_seeds": 1, field: value})
    assert refusal.value.argument == field
