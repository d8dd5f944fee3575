from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.regimes.student_teacher.claims import DECIDING, regime_claims
from dynascope.studies.regimes.student_teacher.experiment import DISTANCES
from dynascope.studies.regimes.student_teacher.study import StudentTeacher


@pytest.fixture(scope="module")
def study():
    return StudentTeacher(**StudentTeacher.tiny)


@pytest.fixture(scope="module")
def sides(study):
    return study.observe(), study.predict()


def outcomes(record, **changed):
    names = ("loss", "target_power", "teacher_alignment", *DISTANCES)
    found = {name: record[name].to_numpy() for name in names} | changed
    return {each.name: each.outcome for each in regime_claims(found, 1)}


@pytest.mark.slow
def test_the_regimes_are_ordered_as_claimed(study, sides):
    result = study.compare(*sides)
    assert result.verdict.outcome == "agree", result.verdict.sentence


@pytest.mark.slow
def test_the_contrary_theory_of_either_scale_is_refuted(sides):
    record = sides[0].record
    assert {outcomes(record)[name] for name in DECIDING} == {"holds"}
    backwards = {name: record[name].to_numpy()[:, ::-1] for name in DISTANCES}
    swapped = outcomes(record, **backwards)
    assert {swapped[each] for each in ("rapid_patterns", "rapid_parameters", "kernel_understates")} == {"does not hold"}
    upside_down = outcomes(record, **{name: record[name].to_numpy()[::-1] for name in DISTANCES})
    assert {upside_down[each] for each in ("lazy_kernel", "lazy_patterns")} == {"does not hold"}


@pytest.mark.slow
def test_students_that_did_not_learn_decide_nothing(sides):
    found = outcomes(sides[0].record, loss=np.ones_like(sides[0].record["loss"]))
    assert set(found.values()) == {"undecided"}


@pytest.mark.slow
def test_a_scale_that_is_not_conserved_breaks_the_check(study, sides):
    observed, predicted = sides
    wrong = predicted.record.assign(conserved_ratio=1.05 * predicted.record["conserved_ratio"])
    result = study.compared(observed.record, wrong)
    assert not result.checks["conserved_ratio"].agrees
    assert result.verdict.outcome == "undecided"


@pytest.mark.slow
def test_neurons_in_the_plane_turn_to_the_teacher_in_the_rich_corner_only(sides):
    rich, lazy = sides[0].record["teacher_alignment"].to_numpy()
    assert rich[0] == pytest.approx(lazy[0])
    assert rich[-1] > 0.9
    assert lazy[-1] < rich[0] + 0.1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("overall_scales", [0.3, 0.5, 2.0]),
        ("overall_scales", [0.1, 0.5, 1.0]),
        ("relative_scales", [0.0, 1.0]),
        ("width", 7),
        ("seeds", 1),
    ],
)
def test_a_field_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(InputError) as refusal:
        StudentTeacher(**StudentTeacher.tiny | {field: value})
    assert refusal.value.argument == field


def test_the_paper_sets_the_sizes_and_keeps_the_scales():
    study = StudentTeacher(paper=True, seeds=3)
    assert (study.setting.inputs, study.setting.samples, study.setting.width) == (100, 1000, 50)
    assert study.parameters()["inputs"] == 100
    assert study.setting.seeds == 3
