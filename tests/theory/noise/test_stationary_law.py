from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import (
    discrete_stationary_moments,
    equipartition_ratio,
    langevin_stationary_moments,
    stationary_law,
)

ONE = {"curvature": 2.0, "noise": 0.7, "sgd": SGD(0.05, momentum=0.9, weight_decay=0.1, batch_size=8)}


def test_variances_are_the_published_ones():
    found = langevin_stationary_moments(**ONE)
    got = [float(found.position_variance), float(found.velocity_variance)]
    np.testing.assert_allclose(got, [0.010416666667, 0.460526315789], rtol=0, atol=6e-13)
    assert float(stationary_law(0.0, 0.0, **ONE).frequency) == pytest.approx(6.649099662044, abs=6e-13)


@given(curvature=st.floats(0.01, 3), momentum=st.floats(0, 0.95), rate=st.floats(0.01, 0.1), decay=st.floats(0, 0.1))
def test_both_clocks_keep_equipartition_and_differ_by_the_factor_of_the_warning(curvature, momentum, rate, decay):
    chosen = {"curvature": curvature, "sgd": SGD(rate, momentum=momentum, weight_decay=decay)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        flow = langevin_stationary_moments(noise=0.3, **chosen)
    steps, ratio = discrete_stationary_moments(noise=0.3, **chosen), equipartition_ratio(**chosen)
    for each in (flow, steps):
        assert each.velocity_variance / each.position_variance == pytest.approx(float(ratio), rel=1e-13)
    lost = 1 - rate * (curvature + decay) / (2 * (1 + momentum))
    assert flow.position_variance == pytest.approx(float(steps.position_variance) * lost, rel=1e-12)
    assert steps.covariance == pytest.approx(rate / 2 * float(steps.velocity_variance), rel=1e-14)


def test_noise_like_the_hessian_spreads_weights_alike_in_all_directions():
    curvature = np.array([3.0, 0.2, 1e-9])
    found = langevin_stationary_moments(
        SGD(0.01, momentum=0.5, batch_size=4), curvature=curvature, noise=0.5 * curvature
    )
    np.testing.assert_allclose(found.position_variance, 0.01 * 0.5 / (2 * 4 * 0.5), rtol=1e-13)
    assert found.velocity_variance.sum() == pytest.approx(0.5 * curvature.sum() / (4 * 0.75), rel=1e-13)


@pytest.mark.parametrize(("share", "warned"), [(0.199, False), (0.201, True)])
def test_continuous_time_warns_of_large_steps(share, warned):
    chosen = {"curvature": [1.0, share * 1.5 / 0.1], "noise": 0.1, "sgd": SGD(0.1, momentum=0.5)}
    for call in (lambda: langevin_stationary_moments(**chosen), lambda: stationary_law(0.0, 0.0, **chosen)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
        assert [("10 % lower" in str(each.message)) for each in caught] == [True] * warned


def test_the_density_is_normalised_and_has_the_variances():
    a, b = np.meshgrid(np.linspace(-0.8, 0.8, 401), np.linspace(-5, 5, 401), indexing="ij")
    law = stationary_law(a, b, **ONE)
    cell = (a[1, 0] - a[0, 0]) * (b[0, 1] - b[0, 0])
    # Sums over a grid of a Gaussian are exact to rounding, up to tails at seven deviations.
    assert law.density.sum() * cell == pytest.approx(1, abs=1e-9)
    assert (a**2 * law.density).sum() * cell == pytest.approx(0.010416666667, abs=1e-9)
    relative = np.exp(-law.inverse_temperature * law.modified_loss)
    np.testing.assert_allclose(law.density / law.density.max(), relative, rtol=1e-12)


def test_the_modified_loss_of_a_linear_regression_has_the_published_form():
    rho, decay, rate, beta, residual, batch = 2.0, 0.1, 0.05, 0.9, 0.35, 8
    law = stationary_law(0.3, -0.4, **ONE)  # s = 0.7 = 0.35 · 2
    published = 0.5 * (rho + decay) / rho * 0.3**2 + 0.5 * rate * (1 + beta) / (2 * rho) * 0.4**2
    assert residual * float(law.modified_loss) == pytest.approx(published, rel=1e-13)
    assert law.inverse_temperature / residual == pytest.approx(2 * batch * (1 - beta) / (rate * residual), rel=1e-13)


def test_the_current_has_no_source_and_goes_round_ellipses():
    step = 1e-5

    def current(a, b):
        law = stationary_law(a, b, **ONE)
        return np.array([law.position_current, law.velocity_current])

    out = (current(0.1 + step, 0.5)[0] - current(0.1 - step, 0.5)[0]) / (2 * step)
    up = (current(0.1, 0.5 + step)[1] - current(0.1, 0.5 - step)[1]) / (2 * step)
    assert out + up == pytest.approx(0, abs=1e-6 * abs(out))
    # Along the ellipse ω²a² + b², whose gradient is at right angles to it.
    along, square = current(0.1, 0.5), float(stationary_law(0.0, 0.0, **ONE).frequency) ** 2
    assert along @ [square * 0.1, 0.5] == pytest.approx(0, abs=1e-12 * np.abs(along).max())
    assert along[0] > 0


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"noise": 0.0}, "noise"),
        ({"curvature": -0.1}, "curvature"),
        ({"sgd": SGD(2.0)}, "learning_rate"),
        ({"sgd": SGD(0.1, batch_size=8, samples=8)}, "noise"),
        ({"curvature": [1.0, 2.0], "position": [1.0, 2.0, 3.0]}, "position"),
    ],
)
def test_bad_input_is_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        stationary_law(**{"position": 0.0, "velocity": 0.0} | ONE | changes)
    assert caught.value.argument == argument
