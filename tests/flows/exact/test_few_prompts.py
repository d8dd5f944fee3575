from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.flows.exact.few_prompts import few_prompts
from dynascope.networks import LinearAttention, MergedAttention
from dynascope.tasks import InContextRegression


@pytest.mark.parametrize("length", [2.0, 31.0, np.inf])
@pytest.mark.parametrize("network", [LinearAttention, MergedAttention])
def test_the_loss_is_the_expected_one(network, length):
    root = np.random.default_rng(0).normal(size=(3, 2))
    # Of inputs in a plane, too.
    for covariance in (root.T @ root, root @ root.T):
        task = InContextRegression(covariance, length)
        prompts = few_prompts(task)
        assert prompts.samples == 5
        with jax.enable_x64(True):
            for scale in (1e-3, 0.7):
                attention = network(len(covariance), 4, scale=scale, seed=1)
                error = np.asarray(attention(prompts.inputs)) - prompts.targets
                np.testing.assert_allclose(np.mean(error**2) / 2, float(task.loss(attention)), rtol=1e-9)
