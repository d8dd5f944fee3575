from __future__ import annotations

import numpy as np
import pytest

from dynascope.networks import TwoLayer
from dynascope.probes.alignment.line import LineLayers
from dynascope.studies.linear_networks.line_alignment.starts import (
    PARAMETRISED,
    STARTS,
    line_starts,
    parametrised_start,
    parametrised_starts,
)
from dynascope.studies.power_fit import fitted_exponent
from dynascope.theory import LayerRates, line_inputs
from dynascope.theory.regimes import phase


def test_layers_start_as_they_are_called_and_lie_as_far_apart_as_is_said():
    direction, disturbance = np.array([0.6, 0.8]), 0.3
    first, second = line_starts(direction, -2.0, 20, disturbance, np.random.default_rng(0))
    probe = LineLayers((0.6, 0.8))
    seen = {}
    for name, inputs, outputs in zip(STARTS, first, second, strict=True):
        network = TwoLayer(2, 20, 1, activation="linear").with_neurons(np.column_stack([inputs.T, outputs]))
        seen[name] = {each: float(values) for each, (_, values) in probe(network).items()}
    # The target falls along the line, and is learned by layers that point against each other.
    expected = {"large orthogonal": 0.0, "nearly parallel": -np.cos(disturbance), "parallel": -1.0}
    for name, alignment in expected.items():
        np.testing.assert_allclose(seen[name]["alignment"], alignment, atol=1e-6)
    np.testing.assert_allclose(seen["opposite"]["alignment"], np.cos(disturbance), atol=1e-6)
    np.testing.assert_allclose(seen["parallel"]["second_norm"], 1.5 * 2**0.5, rtol=1e-6)
    assert seen["small"]["second_norm"] < 0.5


@pytest.mark.parametrize(("name", "second_change"), [("Xavier+", 0.0), ("Kaiming+", 0.5)])
def test_parametrised_starts_have_the_exponents_of_the_table(name, second_change):
    # Medians over draws of the exact solution; the relative change of the NTK is that of ‖u‖² + ‖v‖² at γ = 1.
    entry, widths, draw = parametrised_starts()[name], [256, 1024, 4096], np.random.default_rng(0)
    assert (entry.multiplier, entry.first_rate) == {"Xavier+": (0.0, 0.0), "Kaiming+": (-1.0, 1.0)}[name]
    assert (phase(entry).name, phase(entry).kernel_exponent) == ("learning", 0.0)
    direction = np.array([0.6, 0.8])
    data = line_inputs.LineData(direction, 1.0, 1.3)
    kernel, second = [], []
    for width in widths:
        starts = [parametrised_start(name, 1.0, (2, width), draw) for _ in range(60)]
        first, last = (np.stack(each) for each in zip(*starts, strict=True))
        end = line_inputs.line_limit(line_inputs.LineNetwork(first, last, rates=LayerRates(1.0, 1.0)), data)
        power = [np.sum((direction @ w) ** 2, axis=-1) + np.sum(u**2, axis=-1) for w, u in ((first, last), end[:2])]
        kernel.append(np.median(power[1] / power[0] - 1))
        second.append(np.median(np.linalg.norm(end.second - last, axis=-1) / np.linalg.norm(last, axis=-1)))
    np.testing.assert_allclose(fitted_exponent(np.array(widths), np.array(kernel))[0], 0.0, atol=0.05)
    np.testing.assert_allclose(fitted_exponent(np.array(widths), np.array(second))[0], second_change, atol=0.05)


@pytest.mark.parametrize("name", PARAMETRISED)
def test_a_parametrised_start_computes_the_function_of_its_parametrisation(name):
    # Absorbing √γ into both layers multiplies their learning rates by γ; the product γη does not depend on the width.
    width, entry = 50, parametrised_starts()[name]
    size, direction = entry.at(width), np.array([0.6, 0.8])
    first, second = parametrised_start(name, -2.0, (2, width), np.random.default_rng(0))
    data, times = line_inputs.LineData(direction, 1.0, -2.0), np.array([0.0, 0.5, 3.0])
    absorbed = line_inputs.LineNetwork(first, second, rates=LayerRates(1.0, 0.5))
    root = np.sqrt(size.multiplier)
    rates = LayerRates(size.first_rate, 0.5 * size.second_rate)
    plain = line_inputs.LineNetwork(first / root, second / root, size.multiplier, rates)
    runs = [line_inputs.line_trajectory(each, data, times).strength for each in (absorbed, plain)]
    np.testing.assert_allclose(*runs, rtol=1e-12)
