from __future__ import annotations

import numpy as np
import pytest
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies import find_study

ModularAddition = find_study("modular-addition")


@pytest.fixture(scope="module")
def tiny():
    return tiny_run("modular-addition")


def drawn(seed: int):
    draw = np.random.default_rng(seed)
    return ModularAddition(
        p=9,
        frequencies=[1, 2, 4],
        amplitudes=[0.8, float(draw.uniform(0.5, 0.6)), float(draw.uniform(0.33, 0.4))],
        width=30,
        scale=10.0 ** -int(draw.integers(4, 12)),
        seed=seed,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_theory_and_experiment_agree_at_random_fields(seed):
    tree = drawn(seed).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert tree.residual["observed_jump_time"].notnull().all()


@pytest.mark.slow
def test_theory_and_experiment_agree_in_the_plain_clock():
    tree = ModularAddition(**ModularAddition.tiny | {"clock": "plain", "scale": 0.05}).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert not tree.predicted["slow"].any()
    # Nothing grows sooner than a neuron that is aligned from the start.
    assert np.all(tree.predicted["onset_time"] >= tree.predicted["earliest_onset"] * (1 - 1e-9))


@pytest.mark.slow
def test_the_theory_of_another_encoding_is_refuted(tiny):
    weaker = ModularAddition(**ModularAddition.tiny | {"amplitudes": [1.0, 0.5]})
    tree = tiny.study.compared(tiny.observed, weaker.predict().record)
    assert tree.verdict.outcome == "disagree"


def test_the_order_is_that_of_the_utilities():
    # Frequency 8 of 16 is its own conjugate and comes first, though its coefficient is not the largest.
    study = ModularAddition(p=16, frequencies=[3, 8], amplitudes=[1.1, 0.5], width=12)
    assert study.predict()["frequency_learned"].values.tolist() == [8, 3]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("scale", bad) for bad in (1.0, 2.0, 0.0, -1.0, np.nan, np.inf)),
        *(("p", bad) for bad in (2, 0)),
        *(("width", bad) for bad in (0, 11)),
        *(("amplitudes", bad) for bad in ([1.0], [1.0, np.nan], [1.0, 0.5, 0.2])),
        ("frequencies", [1, 1]),
        ("seed", -1),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as refusal:
        ModularAddition(**ModularAddition.tiny | {field: value})
    assert refusal.value.argument == field


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"clock": "sundial"}, "clock"),
        # Training would take too long.
        ({"clock": "plain", "scale": 1e-6}, "scale"),
        # Predicted times would be too inaccurate.
        ({"scale": 0.2}, "scale"),
        ({"clock": "plain", "scale": 0.1}, "scale"),
    ],
)
def test_a_clock_that_is_unknown_or_does_not_fit_the_scale_is_rejected(fields, argument):
    with pytest.raises(InputError) as rejection:
        ModularAddition(**ModularAddition.tiny | fields)
    assert rejection.value.argument == argument


@pytest.mark.slow
def test_training_from_a_large_scale_lasts_until_all_is_learned():
    fields = {"p": 13, "frequencies": [6], "amplitudes": [0.67], "width": 12, "scale": 0.01}
    tree = ModularAddition(**fields).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
