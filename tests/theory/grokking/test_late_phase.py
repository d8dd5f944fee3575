from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory.grokking import (
    fitting_time,
    interpolant_path,
    late_curve,
    weight_product,
)


def test_the_products_of_the_weights_of_a_trained_network_decay_as_predicted(runs):
    for _, decay, times, u, v in runs:
        expected = weight_product(times, scale=1.0, weight_decay=decay)
        # The law is exact; the solver keeps each step within 1e-9.
        np.testing.assert_allclose(u * v, np.tile(expected, (20, 1)).T, rtol=1e-5)


def test_by_the_fitting_time_a_trained_network_has_fitted(runs):
    for data, _, _, u, v in runs:
        missed = np.linalg.norm((u**2 - v**2) @ data.inputs.T - data.targets, axis=1)
        assert missed[1] < 0.01 * missed[0]


def test_the_late_curve_is_that_of_a_trained_network(runs):
    errors = []
    for data, decay, times, u, v in runs:
        curve = late_curve(**data.arguments, times=times[1:], scale=1.0, weight_decay=decay)
        seen = np.sum((u[1:] ** 2 - v[1:] ** 2 - data.truth) ** 2, axis=1)
        errors.append([np.abs(seen - each).max() for each in (curve.test_error, curve.interpolant_error)])
    errors = np.reshape(errors, (2, 2, 2))
    assert errors[..., 0].max() < 0.005
    # Half the decay: half the error of the interpolant, a quarter of what the lag leaves, and higher orders.
    assert np.all(errors[:, 0, 1] / errors[:, 1, 1] > 1.7)
    assert np.all(errors[:, 0, 0] / errors[:, 1, 0] > 3)


def test_the_late_loss_is_that_of_a_trained_network(runs):
    data, decay, times, u, v = runs[1]
    middle = slice(100, 130)
    seen = np.mean(((u**2 - v**2)[middle] @ data.inputs.T - data.targets) ** 2, axis=1) / 2
    predicted = late_curve(**data.arguments, times=times[middle], scale=1.0, weight_decay=decay).loss
    # The next order is smaller by λ over the rates of fitting.
    np.testing.assert_allclose(predicted, seen, rtol=0.1)


def test_the_lag_is_what_the_network_misses(sparse):
    data = sparse(2)
    times = np.array([50.0, 50.01])
    curve = late_curve(**data.arguments, times=times, scale=1.0, weight_decay=0.01)
    multipliers = interpolant_path(data.inputs, data.targets, curve.products).multipliers
    missed = curve.coefficients[0] @ data.inputs.T - data.targets
    # A difference quotient at one per mille of b.
    np.testing.assert_allclose(missed, -10 / 4 * np.diff(multipliers, axis=0)[0] / 0.01, rtol=1e-3, atol=1e-7)
    assert curve.loss[0] == pytest.approx(np.mean(missed**2) / 2, rel=1e-9)


def test_decay_that_overtakes_the_fit_leaves_the_fitting_time_unknown(sparse):
    assert fitting_time(sparse(0).inputs, scale=0.01, weight_decay=1.0) is None


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("scale", lambda data: weight_product([1.0], scale=0.0, weight_decay=0.1)),
        ("weight_decay", lambda data: weight_product([1.0], scale=1.0, weight_decay=-0.1)),
        ("times", lambda data: weight_product([-1.0], scale=1.0, weight_decay=0.1)),
        ("remaining", lambda data: fitting_time(data.inputs, scale=1.0, weight_decay=0.1, remaining=1.0)),
        ("times", lambda data: late_curve(**data.arguments, times=[-1.0], scale=1.0, weight_decay=0.1)),
    ],
)
def test_bad_input_is_refused_by_name(sparse, argument, call):
    with pytest.raises(InputError) as refusal:
        call(sparse(0))
    assert refusal.value.argument == argument
