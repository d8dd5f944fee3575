"""A few prompts that reproduce the expected loss of linear attention exactly, for flows that require samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynascope.networks.linear_attention import MergedAttention
from dynascope.tasks.in_context import InContextRegression
from dynascope.tasks.task import Task

__all__ = ["explicit_steps", "few_prompts"]

_ROUND_OFF = 1e-12  # of the largest variance
_STABLE = 2.5  # largest stable explicit step times the curvature, to within a third


def few_prompts(task: InContextRegression) -> Task:
    """Construct prompts on which the loss of every linear attention network equals its expected loss.

    In the eigenbasis e_a of Σ, with the eigenvalues σ_a of Σ and γ_a of C, the loss is

        L(P) = ½ Σ_ab (√(γ_a σ_b) e_aᵀ P e_b − δ_ab σ_a^(3/2) / √γ_a)² + ½ Σ_a (σ_a − σ_a³/γ_a),

    so one prompt suffices for each pair (a, b), with the example √γ_a e_a and the query √σ_b e_b, plus a prompt of
    zeros.

    Args:
        task: In-context regression.

    Returns:
        A task with at most d² + 1 prompts.

    Example:
        >>> import jax
        >>> from dynascope.networks.linear_attention import LinearAttention
        >>> task, network = InContextRegression([1.0, 0.7, 0.4], 20), LinearAttention(3, 4)
        >>> prompts = few_prompts(task)
        >>> outputs, loss = jax.jit(lambda network: (network(prompts.inputs), task.loss(network)))(network)
        >>> error = np.asarray(outputs) - prompts.targets
        >>> len(prompts.inputs), bool(np.isclose(np.mean(error**2) / 2, loss))
        (10, True)
    """
    variances, axes, moments = _spectrum(task)
    count = len(variances) ** 2 + 1
    prompts = np.zeros((count, 2, axes.shape[1] + 1))
    example, query = np.divmod(np.arange(count - 1), len(variances))
    # The task's loss is a mean over prompts, so the factor `count` converts the sum above.
    prompts[:-1, 0, :-1] = np.sqrt(count * moments[example])[:, None] * axes[example]
    prompts[:-1, 0, -1] = 1.0
    prompts[:-1, 1, :-1] = np.sqrt(variances[query])[:, None] * axes[query]
    targets = np.zeros((count, 1))
    targets[:-1, 0] = np.where(example == query, np.sqrt(count * variances[example] ** 3 / moments[example]), 0.0)
    targets[-1, 0] = np.sqrt(count * max(np.sum(variances - variances**3 / moments), 0.0))
    return Task(prompts.reshape(count, -1), targets, name=task.name)


def explicit_steps(task: InContextRegression, network: Any, duration: float) -> float:
    """Estimate how many explicit solver steps stability requires at the solution, to within a factor of two.

    Consider a rank-one head that has learned e_a, with P_aa = σ_a/γ_a = v k q and three equal factors. The curvature of
    this head is 3 γ_a σ_a P_aa^(4/3). Merged heads share a value v with v² = ‖P‖, and their curvature is ‖P‖ max γσ + Σ
    γ_a σ_a P_aa²/‖P‖.

    Args:
        task: In-context regression.
        network: `LinearAttention` or `MergedAttention`.
        duration: Gradient-flow time.

    Example:
        >>> from dynascope.networks.linear_attention import LinearAttention
        >>> f"{explicit_steps(InContextRegression([1.0, 0.7, 0.4], 20), LinearAttention(3, 4), 1000.0):.0f}"
        '1144'
    """
    variances, _, moments = _spectrum(task)
    learned, steep = variances / moments, moments * variances
    if isinstance(network, MergedAttention):
        size = np.linalg.norm(learned)
        curvature = size * np.max(steep) + np.sum(steep * learned**2) / size
    else:
        curvature = np.max(3 * steep * learned ** (4 / 3))
    return duration * float(curvature) / _STABLE


def _spectrum(task: InContextRegression) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The non-zero eigenvalues of Σ, their eigenvectors, and the eigenvalues of C."""
    variances, axes = np.linalg.eigh(np.asarray(task.covariance, np.float64))
    kept = variances > _ROUND_OFF * variances[-1]
    variances, axes = variances[kept], axes[:, kept].T
    return variances, axes, np.einsum("ai,ij,aj->a", axes, np.asarray(task.context_moment, np.float64), axes)
