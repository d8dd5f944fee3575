from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies import find_study

ReluAlignment = find_study("relu-alignment")


def drawn(seed: int, data: str):
    draw = np.random.default_rng(seed)
    return ReluAlignment(data=data, scale=10.0 ** -int(draw.integers(8, 16)), seed=seed)


@pytest.fixture(scope="module")
def plane():
    study = ReluAlignment()
    return study, study.observe().record, study.predict().record


@pytest.fixture(scope="module")
def staircase():
    study = ReluAlignment(data="orthogonal")
    return study, study.observe().record, study.predict().record


@pytest.mark.slow
@pytest.mark.parametrize("data", ["plane", "orthogonal"])
@pytest.mark.parametrize("seed", [0])
def test_theory_and_experiment_agree_at_random_fields(seed, data):
    tree = drawn(seed, data).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


@pytest.mark.slow
def test_every_neuron_turns_to_the_extremal_direction_of_its_basin(plane):
    study, observed, predicted = plane
    assert predicted.sizes["neuron"] == study.width
    assert set(predicted["kind"].to_numpy()) == {"interior", "kink"}
    distances = np.linalg.norm(observed["direction"][-1] - predicted["extremal_direction"], axis=1)
    # Paths have arrived within 2e-5; steps of descent rattle about kinks by a few 1e-4.
    assert distances.max() < 1e-3
    # Sixty directions at the start, few at the end.
    assert len(np.unique(np.round(observed["direction"][0], 3), axis=0)) == study.width
    assert len(np.unique(np.round(predicted["extremal_direction"], 6), axis=0)) < 8


@pytest.mark.slow
def test_nothing_is_learned_while_neurons_turn(plane):
    _, observed, _ = plane
    assert abs(float(observed["loss"][-1] / observed["loss"][0]) - 1) < 1e-5


@pytest.mark.slow
def test_orthogonal_data_have_one_jump_for_each_sign(staircase):
    _, _, predicted = staircase
    assert predicted["learned"].to_numpy().tolist() == ["the positive targets", "the negative targets"]
    assert not predicted["slow"].any()
    # All targets are learned.
    assert float(predicted["loss_after"][-1]) == 0


@pytest.mark.slow
def test_orthogonal_data_agree_far_within_the_tolerances(staircase):
    study, *sides = staircase
    tree = study.compared(*sides)
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    errors = {name: each.error for name, each in tree.quantities.items()}
    # Seen are 0.005, 0.004 and 2e-4.
    assert errors["jump_time"] < 0.01
    assert errors["slope"] < 0.006
    assert errors["level"] < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(
    ("quantity", "wrong"),
    [
        ("jump_time", lambda record: record.assign(jump_time=1.2 * record["jump_time"])),
        ("slope", lambda record: record.assign(accelerated_time=1.05 * record["accelerated_time"])),
        ("level", lambda record: record.assign(loss_after=record["loss_after"] + 0.05 * record["loss_before"][0])),
    ],
)
def test_a_wrong_staircase_is_refuted(staircase, quantity, wrong):
    study, observed, predicted = staircase
    assert study.compared(observed, predicted).verdict.outcome == "agree"
    tree = study.compared(observed, wrong(predicted))
    assert tree.verdict.outcome == "disagree"
    assert not tree.quantities[quantity].agrees


@pytest.mark.slow
def test_paths_to_other_directions_are_refuted(plane):
    study, observed, predicted = plane
    # Every neuron as if it had started as its neighbour did.
    wrong = predicted.assign(direction=predicted["direction"].roll(neuron=1, roll_coords=False))
    tree = study.compared(observed, wrong)
    assert not tree.quantities["direction"].agrees
    assert tree.verdict.outcome == "disagree"


@pytest.mark.usefixtures("unchecked_types")
def test_unknown_data_are_rejected():
    with pytest.raises(InputError) as rejection:
        ReluAlignment(data="digits")
    assert rejection.value.argument == "data"


@pytest.mark.parametrize("data", ["plane", "orthogonal"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("scale", bad) for bad in (1.0, 1e-3, 0.0, -1.0, np.nan, np.inf)),
        *(("width", bad) for bad in (0, -1)),
        *(("samples", bad) for bad in (1, 0)),
        ("seed", -1),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(data, field, value):
    with pytest.raises(InputError) as refusal:
        ReluAlignment(**ReluAlignment.tiny | {"data": data} | {field: value})
    assert refusal.value.argument == field


def test_orthogonal_data_that_no_neuron_sees_are_refused_at_scales_below_their_rounding():
    study = ReluAlignment(data="orthogonal", scale=1e-14, samples=20, width=1)
    with pytest.raises(InputError) as rejection:
        study.predict()
    assert rejection.value.argument == "scale"
    dataclasses.replace(study, scale=1e-12).predict()


@pytest.mark.slow
def test_general_data_agree_with_alternating_gradient_flow_and_disagree_with_another_level():
    study = ReluAlignment(data="general", samples=4, width=10, scale=1e-6, seed=0)
    predicted, observed = study.predict().record, study.observe().record
    assert predicted.attrs["theory"] == "alternating gradient flow"
    tree = study.compared(observed, predicted)
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    levels = predicted["loss_after"].to_numpy().copy()
    levels[0] += 0.05 * predicted.attrs["initial_loss"]
    wrong = predicted.assign(loss_after=("jump", levels))
    assert study.compared(observed, wrong).verdict.outcome == "disagree"
