from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.interventions import mirror_misalignment, noise_misalignment


def test_the_stationary_angle_of_the_mirror_has_its_reference_value():
    assert mirror_misalignment(np.ones((48, 48)), 50, feedback_rate=0.1).angle == pytest.approx(12.8, abs=0.05)


@pytest.mark.slow
def test_the_weight_mirror_fluctuates_as_predicted_over_three_thousand_steps():
    draw, rate, batch = np.random.default_rng(0), 0.1, 50
    w = draw.normal(size=(48, 48)) / 7
    alpha, beta, b, squared, angles = 0.7, 1.4, 0.5 * w, [], []
    for step in range(3100):
        x = draw.normal(size=(batch, 48))
        b = b - rate * (beta * b - alpha * x.T @ (x @ w) / batch)
        if step >= 100:
            squared.append(np.sum((b - w / 2) ** 2))
            angles.append(np.degrees(np.arccos(np.sum(b * w) / np.linalg.norm(b) / np.linalg.norm(w))))
    found = mirror_misalignment(w, batch, feedback_rate=rate, amplification=alpha, decay=beta)
    # Neighbouring steps are correlated over about 1/(ηβ) of them, which leaves an error of about half a per cent.
    assert np.mean(squared) == pytest.approx(float(found.squared_distance), rel=0.02)
    assert np.mean(angles) == pytest.approx(float(found.angle), rel=0.02)


def test_noisy_updates_of_symmetric_alignment_fluctuate_as_predicted():
    draw, rate, noise = np.random.default_rng(1), 0.1, 0.3
    w = draw.normal(size=(40, 30)) / 5
    b, squared = w.copy(), []
    for step in range(3100):
        b = b - rate * (b - w + noise * draw.normal(size=w.shape))
        squared.append(np.sum((b - w) ** 2) if step >= 100 else np.nan)
    found = noise_misalignment(w, np.ones_like(w), feedback_rate=rate, noise=noise)
    assert float(found.squared_distance) == pytest.approx(rate / (2 - rate) * noise**2 * w.size, rel=1e-12)
    assert np.nanmean(squared) == pytest.approx(float(found.squared_distance), rel=0.02)


@given(rates=st.lists(st.floats(0.1, 1.9), min_size=3, max_size=3), noise=st.floats(0, 2))
def test_noise_adds_up_over_modes(rates, noise):
    found = noise_misalignment(np.ones((3, 1)), np.reshape(rates, (3, 1)), feedback_rate=1.0, noise=noise)
    each = [
        float(noise_misalignment([[1.0]], [[rate]], feedback_rate=1.0, noise=noise).squared_distance) for rate in rates
    ]
    assert float(found.squared_distance) == pytest.approx(sum(each), rel=1e-12)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: mirror_misalignment(np.ones((3, 2)), 5, feedback_rate=2.0), "feedback_rate"),
        (lambda: mirror_misalignment(np.zeros((3, 2)), 5, feedback_rate=0.1), "weights"),
        (lambda: mirror_misalignment(np.ones((3, 2)), 0, feedback_rate=0.1), "batch_size"),
        (lambda: noise_misalignment(np.ones((3, 2)), np.ones((2, 3)), feedback_rate=0.1, noise=1.0), "rates"),
        (lambda: noise_misalignment(np.ones((3, 2)), np.ones((3, 2)), feedback_rate=0.1, noise=-1.0), "noise"),
    ],
)
def test_bad_input_is_rejected_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
