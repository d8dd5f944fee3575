from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory import LayerRates
from dynascope.theory.line_inputs import LineData, LineNetwork, line_trajectory, tangent_kernel

FIRST = np.array([[0.3, 0.1], [-0.5, 0.2], [0.2, 0.4]]).T
SECOND = np.array([0.4, -0.2, 0.1])
RATES = {"multiplier": 1.5, "rates": LayerRates(2.0, 0.5)}
NETWORK = LineNetwork(FIRST, SECOND, **RATES)


def test_kernel_golden():
    data = LineData(np.array([0.6, 0.8]), 2.0, 0.6)
    run = line_trajectory(NETWORK, data, np.array([0.1, 0.3]), prefactor=1.0)
    kernel = tangent_kernel(LineNetwork(run.first, run.second, **RATES), np.eye(2)[:1], np.eye(2)[1:])
    assert kernel.shape == (2, 1, 1)
    # Golden numbers are stored with 12 digits behind the point.
    np.testing.assert_allclose(kernel[1, 0, 0], 0.203098221735, rtol=0, atol=1e-11)


@pytest.mark.slow
def test_the_output_moves_by_the_kernel_also_across_the_line(line_samples):
    inputs, targets, data = line_samples(0.8)
    probes, step = np.array([[1.0, 0.2], [-0.3, 0.9]]), 1e-5
    run = line_trajectory(NETWORK, data, 0.5 + step * np.arange(-1, 2))
    outputs = 1.5 * np.einsum("nd,tdh,th->tn", probes, run.first, run.second)
    errors = 1.5 * np.einsum("nd,dh,h->n", inputs, run.first[1], run.second[1]) - targets
    kernel = tangent_kernel(LineNetwork(run.first[1], run.second[1], **RATES), probes, inputs)
    # The central difference is good to the square of its step; the prefactor ½ makes 2p = 1.
    np.testing.assert_allclose((outputs[2] - outputs[0]) / (2 * step), -kernel @ errors / len(inputs), atol=1e-8)


def test_the_kernel_is_symmetric_and_positive():
    kernel = tangent_kernel(NETWORK, np.random.default_rng(0).normal(size=(5, 2)))
    np.testing.assert_allclose(kernel, kernel.T, rtol=1e-12)
    # Of rank two, so that three eigenvalues are zero up to rounding.
    assert np.linalg.eigvalsh(kernel).min() > -1e-12


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((LineNetwork(FIRST, SECOND[:2]), np.eye(2)), "network.second"),
        ((LineNetwork(FIRST, SECOND), np.eye(3)), "inputs"),
        ((LineNetwork(FIRST, SECOND), np.eye(2), np.ones(2)), "other_inputs"),
        ((LineNetwork(FIRST, SECOND * np.nan), np.eye(2)), "network.second"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_refused_by_name(arguments, name):
    with pytest.raises(InputError) as refusal:
        tangent_kernel(*arguments)
    assert refusal.value.argument == name
