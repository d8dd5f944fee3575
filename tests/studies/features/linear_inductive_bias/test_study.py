from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies import find_study

LinearInductiveBias = find_study("linear-inductive-bias")


@pytest.fixture(scope="module")
def predicted():
    return LinearInductiveBias().predict().record


@pytest.mark.slow
def test_one_model_fits_with_low_modes_and_the_other_with_high_modes(predicted):
    assert np.all(predicted["loss"][:, -1] < 1e-10 * predicted["loss"][:, 0])
    mean_mode = (predicted["utilization"] * predicted["mode"]).sum("mode")
    assert float(mean_mode[0]) < 4 < 7 < float(mean_mode[1])


@pytest.mark.slow
def test_the_fits_go_through_the_points(predicted):
    study = LinearInductiveBias()
    x, y = predicted.attrs["points"], predicted.attrs["labels"]
    modes = np.sqrt(2) * np.sin(2 * np.pi * np.outer(x, np.arange(1, study.modes + 1)))
    for coefficients in predicted["coefficients"][:, -1].to_numpy():
        np.testing.assert_allclose(modes @ coefficients, y, atol=1e-7)


def test_on_the_population_the_most_intense_modes_are_learned_first(predicted):
    # Time at which half of each mode has been learned.
    half = np.argmax(predicted["population_coefficients"].to_numpy() > 0.5, axis=1)
    assert np.all(np.diff(half[0]) >= 0)
    assert np.all(np.diff(half[1]) <= 0)
    assert np.all(np.ptp(half, axis=1) > 20)


def test_learnabilities_sum_to_the_number_of_points():
    for draws in (1, 7):
        study = LinearInductiveBias(draws=draws)
        np.testing.assert_allclose(np.sum(study._mean_learnability(), axis=1), study.samples, rtol=1e-10)


def test_theory_approximates_the_mean_learnability_for_four_points(predicted):
    # The theory is asymptotic and assumes Gaussian features: its error at n = 4 on a line is a little over a tenth.
    np.testing.assert_allclose(LinearInductiveBias()._mean_learnability(), predicted["learnability"], atol=0.13)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("samples", bad) for bad in (1, 10, 0)),
        *(("exponent", bad) for bad in (0.0, 7.0, np.nan)),
        *((name, 0) for name in ("modes", "draws", "positions")),
        ("times", 1),
        ("seed", -1),
    ],
)
def test_a_field_out_of_range_is_rejected_by_name(field, value):
    with pytest.raises(InputError) as refusal:
        LinearInductiveBias(**{field: value})
    assert refusal.value.argument == field
