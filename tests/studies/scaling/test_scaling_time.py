from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import xarray as xr

from dynascope.errors import InputError
from dynascope.studies.scaling.scaling_time import ScalingTime
from dynascope.tasks.parity.skills import skill_frequencies
from dynascope.theory.skills.multilinear import training_loss

TINY = ScalingTime(**ScalingTime.tiny)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_random_tasks_follow_the_law_from_any_start_at_any_rate(seed):
    draw = np.random.default_rng(seed)
    scale = float(10 ** draw.uniform(-1, 1))
    study = ScalingTime(
        exponents=[float(each) for each in np.sort(draw.uniform(0.25, 1, 2))],
        target_scale=scale,
        initial_strength=scale * float(10 ** draw.uniform(-3, -0.7)),
        learning_rate=float(10 ** draw.uniform(-3, 0)),
        skills=int(draw.integers(8000, 12_000)),
    )
    tree = study.run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


@pytest.mark.slow
def test_skills_that_start_near_their_half_follow_the_law_too():
    tree = ScalingTime(exponents=[0.6, 1.5], initial_strength=0.45, skills=5000).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


def test_the_trained_loss_is_that_of_the_closed_form_before_the_law_holds_too():
    observed = TINY.observe()
    for alpha in TINY.exponents:
        exact = training_loss(
            observed["time"],
            skill_frequencies(TINY.skills, alpha),
            target_scale=TINY.target_scale,
            initial_strength=TINY.initial_strength,
        )
        # The accuracy of the integration, relative to the first loss.
        np.testing.assert_allclose(observed["loss"].sel(exponent=alpha), exact, rtol=1e-7, atol=1e-12)


def test_without_the_loss_of_missing_skills_the_exponent_is_too_large():
    tree = TINY.run()
    observed, expected = tree.observed, tree.predicted["decay_exponent"].to_numpy()
    raw = observed["uncorrected_exponent"].to_numpy() / expected - 1
    assert np.all(raw > 0.03)
    # More so the slower the frequencies decay.
    assert np.all(np.diff(raw) < 0)


def test_a_power_law_without_end_is_refuted():
    predicted = TINY.predict().record
    tree = TINY.compared(
        TINY.observe().record, predicted.assign(loss_over_law=xr.ones_like(predicted["loss_over_law"]))
    )
    assert tree.verdict.outcome == "disagree"


@pytest.mark.parametrize("change", [{"initial_strength": 0.011}, {"learning_rate": 1.02}, {"target_scale": 1.01}])
def test_theory_of_slightly_another_model_is_refuted(change):
    observed, predicted = TINY.observe(), dataclasses.replace(TINY, **change).predict()
    error = np.abs(observed["prefactor"].to_numpy() / predicted["prefactor"].to_numpy() - 1)
    assert error.max() > TINY.tolerance["prefactor_maximum"][0]


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("exponents", {"exponents": []}),
        ("exponents", {"exponents": [0.5, 0.5]}),
        ("exponents", {"exponents": [-0.5]}),
        ("target_scale", {"target_scale": 0.0}),
        ("initial_strength", {"initial_strength": 0.6}),
        ("initial_strength", {"initial_strength": 1e-70}),
        ("learning_rate", {"learning_rate": -1.0}),
        ("skills", {"skills": 100}),
        ("skills", {"skills": 0}),
        ("times", {"times": 3}),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_before_anything_is_trained(monkeypatch, argument, change):
    monkeypatch.setattr(
        "dynascope.studies.scaling.scaling_time.losses_in_time", lambda *_, **__: pytest.fail("it was trained")
    )
    with pytest.raises(InputError) as refusal:
        ScalingTime(**ScalingTime.tiny | change).run()
    assert refusal.value.argument == argument
