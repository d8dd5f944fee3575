from __future__ import annotations

import math

import numpy as np
import pytest
import xarray as xr
from tiny_runs import tiny_run

from dynascope.errors import InputError
from dynascope.studies.scaling.scaling_data import ScalingData
from dynascope.theory.scaling_laws.resources import data_spread

TINY = ScalingData(**ScalingData.tiny)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0])
def test_random_tasks_follow_the_law_from_any_start(seed):
    draw = np.random.default_rng(seed)
    scale = float(10 ** draw.uniform(-1, 1))
    exponents = [float(each) for each in np.sort(draw.uniform(0.25, 1, 2))]
    fewest = int(draw.integers(300, 600))
    # Small exponents are fitted worse, and the losses of large ones vary more.
    needed = max(data_spread(fewest, alpha) * max(1.0, (alpha + 1) / (3 * alpha)) for alpha in exponents)
    study = ScalingData(
        exponents=exponents,
        target_scale=scale,
        initial_strength=scale * float(10 ** draw.uniform(-6, -0.4)),
        fewest_samples=fewest,
        most_samples=20 * fewest,
        sizes=4,
        training_sets=math.ceil((5 * needed / 0.03) ** 2),
        seed=seed,
    )
    tree = study.run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence


@pytest.fixture(scope="module")
def observed():
    return tiny_run("scaling-data").observed


@pytest.mark.slow
def test_the_error_of_the_mean_is_what_the_number_of_sets_was_chosen_for(observed):
    relative = observed["standard_error"] / observed["loss"] * math.sqrt(TINY.training_sets)
    for alpha in TINY.exponents:
        expected = [data_spread(samples, alpha) for samples in observed["samples"].to_numpy().tolist()]
        # The spread of 320 numbers is known to 4 %, and the law of large numbers of skills to less.
        np.testing.assert_allclose(relative.sel(exponent=alpha), expected, rtol=0.16)


@pytest.mark.slow
def test_a_figure_has_the_power_law_and_the_errors_of_its_points(observed):
    predicted = TINY.predict()
    # The same quotient, up to the rounding of a product.
    np.testing.assert_allclose(predicted["loss"], predicted["loss_over_law"] * predicted["power_law"], rtol=1e-14)
    errors = observed["loss_over_law_standard_error"] / observed["loss_over_law"]
    np.testing.assert_allclose(errors, observed["standard_error"] / observed["loss"], rtol=1e-14)


@pytest.mark.slow
def test_a_law_of_the_exponent_of_the_frequencies_is_refuted(observed):
    predicted = TINY.predict().record
    wrong = predicted.assign(decay_exponent=xr.DataArray(TINY.exponents, dims="exponent"))
    assert not TINY.compared(observed, wrong).quantities["decay_exponent"].agrees


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("exponents", {"exponents": [0.1]}),
        ("initial_strength", {"initial_strength": 0.6}),
        ("fewest_samples", {"fewest_samples": 0}),
        ("fewest_samples", {"fewest_samples": 2000}),
        ("training_sets", {"training_sets": 10}),
        ("training_sets", {"training_sets": 70, "exponents": [0.2]}),
        ("sizes", {"sizes": 2}),
        ("seed", {"seed": -1}),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_before_anything_is_trained(monkeypatch, argument, change):
    monkeypatch.setattr(
        "dynascope.studies.scaling.scaling_data.losses_of_training_sets", lambda *_, **__: pytest.fail("it was trained")
    )
    with pytest.raises(InputError) as refusal:
        ScalingData(**ScalingData.tiny | change).run()
    assert refusal.value.argument == argument
