from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy.special import zeta
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies.scaling.scaling_parameters import ScalingParameters
from dynascope.theory.skills.multilinear import training_loss

TINY = ScalingParameters(**ScalingParameters.tiny)


@pytest.fixture(scope="module")
def observed():
    return tiny_run("scaling-parameters").observed


@pytest.mark.parametrize("seed", [0])
def test_random_tasks_follow_the_law_from_any_start(seed):
    draw = np.random.default_rng(seed)
    scale = float(10 ** draw.uniform(-1, 1))
    fewest = int(draw.integers(5, 20))
    study = ScalingParameters(
        exponents=[float(each) for each in np.sort(draw.uniform(0.25, 1, 2))],
        target_scale=scale,
        initial_strength=scale * float(10 ** draw.uniform(-6, -0.4)),
        skills=int(draw.integers(500, 5000)),
        fewest_neurons=fewest,
        most_neurons=20 * fewest,
        sizes=6,
    )
    tree = study.run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


def test_the_worst_of_fits_is_within_the_tolerance():
    # The fewest neurons and sizes that are allowed, and the least of skills.
    study = ScalingParameters(exponents=[0.25, 1.0], skills=101, fewest_neurons=5, most_neurons=100, sizes=3)
    tree = study.run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


def test_every_model_is_trained_to_the_loss_of_the_closed_form(observed):
    frequencies = np.arange(1.0, TINY.skills + 1) ** -1.8
    frequencies /= frequencies.sum()
    for neurons in observed["neurons"].to_numpy().tolist():
        exact = training_loss([np.inf], frequencies, target_scale=1.0, initial_strength=0.01, neurons=neurons)
        assert float(observed["loss"].sel(exponent=0.8, neurons=neurons)) == pytest.approx(exact[0], rel=1e-12)


def test_the_prefactor_of_the_paper_is_refuted(observed):
    # Half the square of the target takes α ζ(α + 1) for one.
    predicted = TINY.predict().record
    wrong = predicted.assign(prefactor=xr.full_like(predicted["prefactor"], 0.5))
    tree = TINY.compared(observed, wrong)
    assert not tree.quantities["prefactor"].agrees
    alpha = np.array(TINY.exponents)
    # As for the fit, with more skills in an infinite task.
    ratio = 0.5 / observed["prefactor"]
    np.testing.assert_allclose(ratio, alpha * (zeta(alpha + 1) - zeta(alpha + 1, TINY.skills + 1)), rtol=2e-3)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("exponents", {"exponents": [0.0]}),
        ("initial_strength", {"initial_strength": 0.6}),
        ("fewest_neurons", {"fewest_neurons": 4}),
        ("fewest_neurons", {"fewest_neurons": 7, "exponents": [0.5, 1.5]}),
        ("fewest_neurons", {"fewest_neurons": 100}),
        ("most_neurons", {"most_neurons": 5000}),
        ("sizes", {"sizes": 2}),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_before_anything_is_trained(monkeypatch, argument, change):
    name = "dynascope.studies.scaling.scaling_parameters.losses_of_sizes"
    monkeypatch.setattr(name, lambda *_, **__: pytest.fail("it was trained"))
    with pytest.raises(InputError) as refusal:
        ScalingParameters(**ScalingParameters.tiny | change).run()
    assert refusal.value.argument == argument
