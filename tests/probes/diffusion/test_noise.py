from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.probes.diffusion import gradient_noise

DRAW = np.random.default_rng(0)
SAMPLES = DRAW.normal(size=(40, 3)) * np.array([1.0, 2.0, 0.5]) + 1.0  # gradients of single samples
FULL = SAMPLES.mean(axis=0)
COVARIANCE = np.cov(SAMPLES.T, bias=True)


def batches(count: int, size: int, *, replacement: bool) -> np.ndarray:
    draw = np.random.default_rng(1)
    return np.stack([SAMPLES[draw.choice(40, size, replace=replacement)].mean(axis=0) for _ in range(count)])


def test_batches_of_one_sample_each_give_the_covariance():
    turn = np.linalg.qr(DRAW.normal(size=(3, 3)))[0]
    noise = gradient_noise(SAMPLES, FULL, batch_size=1, directions=turn)
    np.testing.assert_allclose(noise.variance, np.diag(turn @ COVARIANCE @ turn.T), rtol=1e-12)
    assert noise.trace == pytest.approx(np.trace(COVARIANCE))


@pytest.mark.parametrize("replacement", [True, False])
def test_larger_batches_give_it_within_their_error(replacement):
    found = gradient_noise(
        batches(4000, 10, replacement=replacement), FULL, batch_size=10, samples=None if replacement else 40
    )
    # Three comparisons at four standard errors.
    np.testing.assert_array_less(np.abs(found.variance - np.diag(COVARIANCE)), 4 * found.error)
    # Without the factor of batches without a sample twice it would be a quarter less.
    assert np.all(found.error < 0.03 * found.variance)


def test_one_batch_has_no_error():
    assert np.all(np.isinf(gradient_noise(SAMPLES[:1], FULL, batch_size=1).error))


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"full_gradient": FULL[:2]}, "full_gradient"),
        ({"batch_size": 40, "samples": 40}, "batch_size"),
        ({"directions": np.eye(2)}, "directions"),
    ],
)
def test_bad_input_is_refused_by_name(changes, argument):
    usual = {"batch_gradients": SAMPLES, "full_gradient": FULL, "batch_size": 2}
    with pytest.raises(InputError) as caught:
        gradient_noise(**usual | changes)
    assert caught.value.argument == argument
