from __future__ import annotations

import numpy as np

from dynascope.networks import TwoLayer
from dynascope.probes.alignment.line import LineLayers
from dynascope.studies.linear_networks.line_alignment.starts import STARTS, line_starts


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
