from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory.features.overfitting import OverfittingSetup, overfitting_error
from dynascope.theory.features.spectrum import training_flow

PRINTED = 100 / 1995
BENIGN, MALIGNANT = OverfittingSetup(), OverfittingSetup(target_mode=10)
PRINTED_BENIGN, PRINTED_MALIGNANT = (dataclasses.replace(each, tail_intensity=PRINTED) for each in (BENIGN, MALIGNANT))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setup", "golden"),
    [
        (PRINTED_BENIGN, [0.975837418318, 1.064314495131, 0.506114516675, 0.13559362802]),
        (PRINTED_MALIGNANT, [0.975837418318, 1.064314495131, 0.048856855848, 0.487216747548]),
        (BENIGN, [0.010019569584, 1.104116227636, 0.990079826287, 0.009424788441]),
        (MALIGNANT, [0.010019569584, 1.104116227636, 0.04764391021, 0.510077299893]),
    ],
)
def test_the_golden_numbers_come_out(setup, golden):
    found = overfitting_error(setup)
    numbers = found.effective_ridge, found.overfitting_coefficient, found.target_learnability, found.clean_mse
    np.testing.assert_allclose(numbers, golden, rtol=1e-9)
    assert found.test_loss == found.clean_mse / 2
    assert found.noisy_mse == pytest.approx(found.clean_mse + 0.09)


def test_the_corrected_tail_separates_signal_from_noise_and_the_printed_one_does_not():
    corrected, printed = overfitting_error(BENIGN), overfitting_error(PRINTED_BENIGN)
    assert corrected.warnings == ()
    assert corrected.tail_rate == pytest.approx(0.01)
    assert corrected.fitting_window == pytest.approx((1 / 1.01, 100))
    assert "one phase" in printed.warnings[0]
    assert printed.tail_rate == pytest.approx(1)
    assert (corrected.strong_learnability > 0.98, printed.strong_learnability < 0.6) == (True, True)


def test_the_learnabilities_share_the_samples():
    found = overfitting_error(BENIGN)
    assert 5 * found.strong_learnability + 1995 * found.tail_learnability == pytest.approx(100)


def test_in_the_window_it_is_a_regression_on_the_strong_modes():
    assert overfitting_error(BENIGN).window_mse == pytest.approx(0.09 * 5 / 95)
    assert overfitting_error(MALIGNANT).window_mse == pytest.approx((0.09 + 0.5) * 100 / 95 - 0.09)


@pytest.fixture(scope="module")
def flows():
    """Training and its clean error at the start, in the window and at the end, for Gaussian features."""
    found = {}
    for setup in (BENIGN, MALIGNANT):
        errors, strengths, rates = [], [], []
        for seed in range(24):
            draw = np.random.default_rng(seed)
            features = draw.normal(size=(setup.samples, setup.modes)) * setup.intensity**0.5
            target = setup.target_coefficients
            y = features @ (target / setup.intensity**0.5) + 0.3 * draw.normal(size=setup.samples)
            flow = training_flow(np.array([0.0, 10.0, 1e5]), features, y)
            learned = flow.weights * setup.intensity**0.5
            errors.append(np.sum((learned - target) ** 2, axis=1))
            strengths.append(learned[-1, setup.target_mode - 1] / setup.target_coefficient)
            rates.append(np.median(flow.intensity[setup.strong_modes :]))
        found[setup.is_benign] = np.mean(errors, axis=0), np.mean(strengths), np.mean(rates)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("setup", [BENIGN, MALIGNANT], ids=["benign", "malignant"])
def test_training_on_gaussian_features_has_these_errors_rates_and_coefficients(setup, flows):
    (_, window, end), strength, rate = flows[setup.is_benign]
    theory = overfitting_error(setup)
    # Three standard errors of 24 draws.
    assert end == pytest.approx(theory.clean_mse, rel=0.3 if setup.is_benign else 0.03)
    assert strength == pytest.approx(theory.target_learnability, abs=0.03)
    # By time 10 the tail has begun to fit a tenth of the rest.
    assert window == pytest.approx(theory.window_mse, rel=0.4 if setup.is_benign else 0.05)
    assert rate == pytest.approx(theory.tail_rate, rel=0.1)


def test_a_target_of_zero_is_noise_alone():
    found = overfitting_error(dataclasses.replace(BENIGN, target_coefficient=0.0))
    assert found.clean_mse == pytest.approx(0.09 * (found.overfitting_coefficient - 1))


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("samples", {"samples": 5}),
        ("samples", {"samples": 2000}),
        ("samples", {"samples": 0}),
        ("target_mode", {"target_mode": 0}),
        ("target_mode", {"target_mode": 2001}),
        ("target_coefficient", {"target_coefficient": np.inf}),
        ("noise_variance", {"noise_variance": -0.1}),
        ("tail_intensity", {"tail_intensity": 0.0}),
        ("strong_modes", {"strong_modes": 0}),
        ("modes", {"modes": -1}),
    ],
)
def test_a_set_up_out_of_range_is_refused_by_name(argument, change):
    with pytest.raises(InputError) as refusal:
        OverfittingSetup(**change)
    assert refusal.value.argument == argument
