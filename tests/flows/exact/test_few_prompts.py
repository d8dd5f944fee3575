from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from jax.tree_util import Partial

from dynascope import flows
from dynascope.flows.exact.few_prompts import explicit_steps, few_prompts
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LinearAttention, MergedAttention])
@pytest.mark.parametrize("variances", [[1.0, 0.6, 0.2], [3.0, 1.0, 0.5]])
def test_explicit_steps_are_those_that_the_curvature_asks_for_once_all_is_learned(kind, variances):
    task, network, duration = InContextRegression(variances, 20.0), kind(3, 12), 3e3
    with jax.enable_x64(True):
        run = flows.gradient_flow(
            task,
            network,
            flows.GradientFlow(
                duration=duration,
                solver=flows.Solver(relative_tolerance=1e-4, max_steps=10**6),
                save=[0.0, duration],
                statistics={"curvature": (Partial(_curvature, task), ())},
            ),
            scale=0.1,
        )
    # All is learned, so that the curvature is that of the end.
    assert float(run["loss"][-1]) - (sum(variances) - float(np.sum(_most(task)))) / 2 < 1e-3
    # Stability of explicit solvers ends between 2 and 3.3 over the curvature; heads share what they learn unequally.
    steps = duration * float(run["curvature"][-1]) / 2.5
    assert 0.5 < explicit_steps(task, network, duration) / steps < 2


def _most(task):
    """The part of tr Σ that attention can explain, σ_a³/γ_a each."""
    return np.diag(task.covariance) ** 3 / np.diag(task.context_moment)


def _curvature(task, network):
    weights, tree = ravel_pytree(network)
    return jnp.linalg.eigvalsh(jax.hessian(lambda flat: task.loss(tree(flat)))(weights))[-1]
