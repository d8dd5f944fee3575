from __future__ import annotations

import jax
import numpy as np

from dynascope.compilation import jit
from dynascope.groups import encoding_from_frequencies
from dynascope.networks import TwoLayer
from dynascope.studies.staircases.loss_parts import loss_parts
from dynascope.tasks.algebra.modular_addition import ModularAddition


def test_the_parts_of_all_frequencies_make_up_the_loss():
    p, encoding = 6, encoding_from_frequencies(6, {1: 1.0, 2: 0.5, 3: 0.7})
    turns = 2 * np.pi / p * np.subtract.outer(np.arange(p), np.arange(p))
    projections = [(1 if 2 * each % p == 0 else 2) / p * np.cos(each * turns) for each in range(4)]
    np.testing.assert_allclose(sum(projections), np.eye(p), atol=1e-15)
    task, network = ModularAddition(encoding), TwoLayer(2 * p, 5, p, activation="quadratic", seed=1)
    with jax.enable_x64(True):
        read = loss_parts(task, encoding, projections)
        both = jit(lambda network: (read(network), task.loss(network)))
        parts, loss = jax.device_get(both(network))
        # Sums of some hundred numbers of order one.
        np.testing.assert_allclose(parts.sum(), loss, rtol=1e-13)
        # A network that gives nothing leaves the power of each frequency.
        power = [encoding @ each @ encoding / 2 for each in projections]
        np.testing.assert_allclose(both(network.weighted(np.zeros(5)))[0], power, atol=1e-15)
