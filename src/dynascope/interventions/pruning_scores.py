"""Scores of weights for pruning: SynFlow, SNIP, GraSP, magnitude and random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from dynascope.interventions.prunable import Prunable
from dynascope.interventions.rounds import Masks
from dynascope.interventions.synaptic_flow import SynapticFlow

__all__ = ["NEEDS_DATA", "Method", "score_of"]

Method: TypeAlias = Literal["synflow", "snip", "grasp", "magnitude", "random"]
NEEDS_DATA: tuple[Method, ...] = ("snip", "grasp")

_TEMPERATURE = 200.0  # of the public code of GraSP


def score_of(method: Method, network: Prunable, seed: int, flow: SynapticFlow) -> Callable[[Masks], Masks]:
    """The scores of a method as a function of the masks of all layers; the largest scores are kept.

    - "synflow": numbers in the order of |θ ∂R/∂θ|, with the synaptic flow R (arXiv:2006.05467).
    - "snip": |θ g|, with the gradient g of the loss (arXiv:1810.02340).
    - "grasp": θ Hg, with the Hessian H of the loss (arXiv:2002.07376).
    - "magnitude": |θ|.
    - "random": independent uniform numbers.

    Args:
        method: Name of the method.
        network: The network.
        seed: Seed of the random scores.
        flow: The synaptic flow of the network.
    """

    def masked(masks: Masks) -> Masks:
        return [weight * mask for weight, mask in zip(network.weights, masks, strict=True)]

    def times(weights: Sequence[np.ndarray], slopes: Sequence[np.ndarray]) -> Masks:
        return [weight * slope for weight, slope in zip(weights, slopes, strict=True)]

    def synflow(masks: Masks) -> Masks:
        return flow.ranks(masks)

    def snip(masks: Masks) -> Masks:
        weights = masked(masks)
        return [np.abs(each) for each in times(weights, network.gradient(weights))]

    def grasp(masks: Masks) -> Masks:
        weights = masked(masks)
        return times(weights, network.curvature_product(weights, _TEMPERATURE))

    def magnitude(masks: Masks) -> Masks:
        return [np.abs(each) for each in masked(masks)]

    def random(masks: Masks) -> Masks:  # the same numbers in every round
        return [np.random.default_rng([seed, layer]).uniform(size=mask.shape) for layer, mask in enumerate(masks)]

    scores = {"synflow": synflow, "snip": snip, "grasp": grasp, "magnitude": magnitude, "random": random}
    return scores[method]
