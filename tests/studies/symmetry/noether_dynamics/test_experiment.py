from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.studies.symmetry.noether_dynamics.experiment import NormPaths, train_normalised, white_share
from dynascope.studies.symmetry.noether_dynamics.network import ScaleInvariantMLP
from dynascope.tasks import Labelled
from dynascope.theory import SGD
from dynascope.theory.symmetry import equilibrium_squared_norm

DRAW = np.random.default_rng(0)
DATA = Labelled(DRAW.normal(size=(20, 5)), DRAW.integers(0, 3, 20))


@pytest.mark.slow
def test_steps_lengthen_layers_and_keep_to_the_exact_law():
    networks = [ScaleInvariantMLP((5, 4, 3), seed=each) for each in range(2)]
    with jax.enable_x64(True):
        run = train_normalised(DATA, networks, SGD(0.01, momentum=0.5), steps=40, recorded=[0, 40])
    assert run.norms.shape == run.within_rounding.shape == (40, 2, 2)
    assert run.loss.shape == (2, 2)
    assert np.allclose(run.norms[0, 1], [np.sum(each**2) for each in networks[1].weights])
    assert np.all(np.diff(run.norms, axis=0) > 0)
    assert run.within_rounding.all()
    # Without decay all of the start is remembered.
    assert np.array_equal(run.decayed, np.broadcast_to(run.norms[0], run.decayed.shape))
    assert np.all(run.squared_angles > 0)
    assert np.all(run.white[1:] < run.coherent[1:])


def test_shares_are_those_of_the_closures():
    steps = np.arange(101.0)[:, None, None]
    ones, zero = np.ones((1, 1, 1)), np.zeros((101, 1, 1))
    coherent = np.sqrt(4 * np.exp(-0.01 * steps) + 3 * steps)
    decayed = 2 * np.exp(-0.005 * steps)
    norms = np.sqrt(decayed**2 + 0.25 * 3 * steps)
    run = NormPaths(norms, zero, zero, coherent, norms, decayed, zero == 0, ones[0])
    assert np.allclose(run.growth_share, 0.25)
    assert np.allclose(run.share_of_first(9.5), 0.1)
    assert np.allclose(run.remembered_share, np.mean((decayed**2 / norms**2)[50:]))


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_the_share_of_independent_gradients_is_that_of_the_equilibria(momentum):
    # At vanishing ηλ.
    sgd = SGD(1e-6, weight_decay=1e-6, momentum=momentum)
    white, coherent = (equilibrium_squared_norm(2.0, sgd, closure=each) for each in ("white", "coherent"))
    assert white**2 / coherent**2 == pytest.approx(white_share(momentum), rel=1e-9)
