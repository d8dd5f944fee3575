from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies import find_study

LinearStaircase = find_study("linear-staircase")


def drawn(seed: int):
    draw = np.random.default_rng(seed)
    return LinearStaircase(
        # Beyond six neurons, the weights of each, the flow is that of six bundles, for which there is a program.
        **LinearStaircase.tiny
        | {
            "samples": int(draw.integers(40, 200)),
            "width": int(draw.integers(6, 40)),
            "scale": 10.0 ** -int(draw.integers(10, 41)),
            "condition": float(draw.uniform(1, 4)),
            "seed": seed,
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_theory_and_experiment_agree_at_random_fields(seed):
    tree = drawn(seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert tree.residual["observed_jump_time"].notnull().all()


@pytest.mark.slow
def test_a_narrow_network_stops_at_its_rank():
    study = LinearStaircase(**LinearStaircase.tiny | {"width": 1})
    tree = study.run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert tree.predicted.sizes["jump"] == 1
    # The data has rank two, so one neuron leaves the second strength unexplained.
    assert tree.observed["loss"][-1] > 0.01 * tree.observed["loss"][0]


@pytest.mark.slow
def test_fewer_samples_than_inputs_are_fitted_on_their_range():
    study = LinearStaircase(**LinearStaircase.tiny | {"samples": 4, "inputs": 6})
    tree = study.run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


def test_the_last_plateau_of_noiseless_data_is_zero():
    predicted = drawn(0).predict()
    assert float(predicted["loss_after"][-1]) < 1e-12 * float(predicted["loss_before"][0])


def test_the_digits_have_nine_jumps():
    # Ten centred classes sum to zero.
    predicted = LinearStaircase().predict().record
    assert predicted.sizes["jump"] == 9
    assert predicted.attrs["task"] == "digits"


@pytest.mark.parametrize(
    ("scale", "width", "tolerance"), [(1e-12, 6, 0.05), (0.01, 6, 0.119), (1e-3, 3, 0.217), (0.01, 3, 0.24)]
)
def test_slopes_between_larger_scales_and_of_few_neurons_are_known_less_well(scale, width, tolerance):
    predicted = LinearStaircase(**LinearStaircase.tiny | {"scale": scale, "width": width}).predict().record
    assert predicted.attrs["slope_tolerance"] == pytest.approx(tolerance, rel=5e-3)


@pytest.mark.slow
def test_the_smallest_numbers_there_are_will_do_as_a_scale():
    tree = LinearStaircase(**LinearStaircase.tiny | {"scale": 5e-324}).run()
    assert tree.verdict.outcome == "agree"
    # Offsets of a time are bounded, and it has grown as log(1/scale) = 744.
    assert tree.quantities["jump_time"].error < 0.01


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("scale", bad) for bad in (0.011, 1.0, 2.0, 0.0, -1.0, np.nan, np.inf)),
        *(("condition", bad) for bad in (0.0, 0.5, -1.0, np.nan, np.inf)),
        *(("width", bad) for bad in (0, -1)),
        *(("samples", bad) for bad in (1, 0)),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as refusal:
        LinearStaircase(**LinearStaircase.tiny | {field: value})
    assert refusal.value.argument == field
