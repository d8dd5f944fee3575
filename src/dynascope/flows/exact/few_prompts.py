"""The expected loss of linear attention as that on a few prompts, for flows that are written for samples."""

from __future__ import annotations

import numpy as np

from dynascope.tasks.in_context import InContextRegression
from dynascope.tasks.task import Task

__all__ = ["few_prompts"]

_ROUND_OFF = 1e-12  # of the largest variance


def few_prompts(task: InContextRegression) -> Task:
    """Prompts on which every linear attention has the loss that it has in expectation.

    In the eigenbasis e_a of Σ, with eigenvalues σ_a, and γ_a those of C, the loss is

        L(P) = ½ Σ_ab (√(γ_a σ_b) e_aᵀ P e_b − δ_ab σ_a^(3/2) / √γ_a)² + ½ Σ_a (σ_a − σ_a³/γ_a),

    so that there is a prompt of one example √γ_a e_a and the query √σ_b e_b for each pair, and one of zeros.

    Args:
        task: In-context regression in expectation.

    Returns:
        Task of at most d² + 1 prompts.

    Example:
        >>> from dynascope.networks.linear_attention import LinearAttention
        >>> task, network = InContextRegression([1.0, 0.7, 0.4], 20), LinearAttention(3, 4)
        >>> prompts = few_prompts(task)
        >>> error = np.asarray(network(prompts.inputs)) - prompts.targets
        >>> len(prompts.inputs), bool(np.isclose(np.mean(error**2) / 2, task.loss(network)))
        (10, True)
    """
    variances, axes = np.linalg.eigh(np.asarray(task.covariance, np.float64))
    kept = variances > _ROUND_OFF * variances[-1]
    variances, axes = variances[kept], axes[:, kept].T
    moments = np.einsum("ai,ij,aj->a", axes, np.asarray(task.context_moment, np.float64), axes)
    count = len(variances) ** 2 + 1
    prompts = np.zeros((count, 2, axes.shape[1] + 1))
    example, query = np.divmod(np.arange(count - 1), len(variances))
    # The loss is a mean over prompts, and this sum is none.
    prompts[:-1, 0, :-1] = np.sqrt(count * moments[example])[:, None] * axes[example]
    prompts[:-1, 0, -1] = 1.0
    prompts[:-1, 1, :-1] = np.sqrt(variances[query])[:, None] * axes[query]
    targets = np.zeros((count, 1))
    targets[:-1, 0] = np.where(example == query, np.sqrt(count * variances[example] ** 3 / moments[example]), 0.0)
    targets[-1, 0] = np.sqrt(count * max(np.sum(variances - variances**3 / moments), 0.0))
    return Task(prompts.reshape(count, -1), targets, name=task.name)
