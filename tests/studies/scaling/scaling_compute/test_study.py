from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import zeta
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies.scaling.scaling_compute.study import ScalingCompute
from dynascope.studies.scaling.skill_training import train_skills
from dynascope.theory.scaling_laws import compute_optimum, plan, power_laws
from dynascope.theory.scaling_laws.finite_task import smooth_steps

TINY = ScalingCompute(**ScalingCompute.tiny)


def missing_strengths(missing):
    return missing


@pytest.fixture(scope="module")
def observed():
    return tiny_run("scaling-compute").observed


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_random_tasks_follow_the_law_from_any_start_at_any_rate(seed):
    draw = np.random.default_rng(seed)
    scale = float(10 ** draw.uniform(-1, 1))
    alpha = float(draw.uniform(0.25, 0.8))
    exponents = [alpha, alpha + float(draw.uniform(0.05, 0.2))]
    most = int(draw.integers(1000, 1500))
    model = {"target_scale": scale, "initial_strength": scale * float(10 ** draw.uniform(-3, -0.7))}
    rate = float(10 ** draw.uniform(-3, 0))
    theta = [compute_optimum(1.0, alpha, learning_rate=rate, **model).theta for alpha in exponents]
    study = ScalingCompute(
        exponents=exponents,
        **model,
        learning_rate=rate,
        least_compute=most * max(smooth_steps(alpha, learning_rate=rate, **model) for alpha in exponents),
        most_compute=min(each * (most / 2.1) ** (alpha + 2) for each, alpha in zip(theta, exponents, strict=True)),
        budgets=4,
        most_neurons=most,
        sizes=110,
    )
    tree = study.run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


@pytest.mark.slow
def test_a_model_of_its_own_learns_as_the_first_skills_of_the_largest_one(observed):
    losses = observed["model_loss"].isel(compute=2).sel(exponent=0.8)
    compute = float(losses["compute"])
    for neurons in losses["neurons"].to_numpy()[[5, 20]].tolist():
        frequencies = np.arange(1.0, neurons + 1) ** -1.8 / zeta(1.8)
        steps = np.array([compute / neurons])
        missing = train_skills(frequencies, steps, missing_strengths, target_scale=1.0, initial_strength=0.01)[0]
        loss = frequencies @ missing**2 / 2 + zeta(1.8, neurons + 1) / zeta(1.8) / 2
        # Both are integrated to a few digits less than all, in different steps.
        assert float(losses.sel(neurons=neurons)) == pytest.approx(loss, rel=1e-8)


def test_the_best_model_is_between_those_that_are_the_best_of_all(observed):
    losses = observed["model_loss"]
    best, neurons = losses.argmin("neurons"), losses["neurons"]
    found = observed["optimal_neurons"]
    assert np.all(found > neurons[best - 1])
    assert np.all(found < neurons[best + 1])
    assert np.all(observed["loss"] <= losses.min("neurons"))


def test_the_best_model_has_time_for_its_skills_and_no_more(observed):
    # The rarest skill with a neuron is half learned at ln c/(2 η S P(N)), and rarer ones later.
    for alpha in TINY.exponents:
        best = observed.sel(exponent=alpha)
        half = math.log(99) * zeta(alpha + 1) / 2 * best["optimal_neurons"] ** (alpha + 1)
        np.testing.assert_array_less(0.5, best["optimal_time"] / half)
        np.testing.assert_array_less(best["optimal_time"] / half, 1.0)


def test_the_sum_of_the_laws_in_time_and_in_neurons_is_refuted(observed):
    # It has the right exponents: equation 4.39 of the thesis, and what `plan` says without a contrast.
    predicted = TINY.predict().record
    laws = [power_laws(alpha, target_scale=1.0, initial_strength=0.01) for alpha in TINY.exponents]
    plans = [plan(observed["compute"].to_numpy(), time=law.time, parameters=law.parameters) for law in laws]
    wrong = predicted.assign(loss=(("exponent", "compute"), np.array([each.loss for each in plans])))
    assert TINY.compared(observed, wrong).verdict.outcome == "disagree"
    excess = np.array([each.loss for each in plans]) / observed["loss"] - 1
    assert np.all(excess > 0.5)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("exponents", {"exponents": [-1.0]}),
        ("learning_rate", {"learning_rate": 0.0}),
        ("least_compute", {"least_compute": -1.0}),
        ("least_compute", {"least_compute": 1e5}),
        ("least_compute", {"fewest_neurons": 50, "sizes": 100}),
        ("most_compute", {"most_compute": 1e6}),
        ("most_compute", {"most_compute": 1e10}),
        ("budgets", {"budgets": 2}),
        ("fewest_neurons", {"fewest_neurons": 1000}),
        ("sizes", {"sizes": 20}),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_before_anything_is_trained(monkeypatch, argument, change):
    name = "dynascope.studies.scaling.scaling_compute.study.losses_of_models"
    monkeypatch.setattr(name, lambda *_, **__: pytest.fail("it was trained"))
    with pytest.raises(InputError) as refusal:
        ScalingCompute(**ScalingCompute.tiny | change).run()
    assert refusal.value.argument == argument
