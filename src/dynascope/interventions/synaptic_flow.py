"""Synaptic flow of a masked network of any architecture, without overflow if rescaling can prevent it."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from dynascope.interventions.prunable import Flow, Prunable
from dynascope.theory.interventions import log_synaptic_flow
from dynascope.theory.interventions.synaptic_flow import chain_log_scores, logarithms
from dynascope.validation import require

__all__ = ["Remaining", "SynapticFlow"]

_EQUAL = 1e-9  # relative rounding error of sums over all weights of a layer
_DIGITS = 9  # of the logarithm of a score, so that equal scores stay equal in spite of rounding


class Remaining(NamedTuple):
    """The synaptic flow of a pruned network.

    Attributes:
        connected: For each layer, which weights are on a path from an input to an output.
        shares: Sum of the scores of each layer divided by R; one if the layer is a cut, less if the flow bypasses it,
            and more if the layer is used several times.
        path_exists: Whether a path from the inputs to the outputs remains.
    """

    connected: list[np.ndarray]
    shares: np.ndarray
    path_exists: bool


class SynapticFlow:
    """Scores |θ ∂R/∂θ| of the synaptic flow R, for all masks of a network.

    If each layer is a cut of the network, its scores sum to R. Dividing the weights of this layer by a constant then
    divides all scores of all layers by this constant, and their order is unchanged. The constants are chosen so that
    the signal neither explodes nor vanishes. If the layers also form a chain of matrices whose scores equal the closed
    form, the closed form replaces differentiation. Other networks, such as residual networks and networks with biases,
    are evaluated without constants.

    Args:
        network: The network.
    """

    def __init__(self, network: Prunable):
        self.network = network
        self.weights = [np.abs(each) for each in network.weights]

    def ranks(self, masks: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Numbers in the order of the scores of all layers; scores that agree to nine digits have equal numbers."""
        if self._kind in ("chain", "transposed chain"):
            return [np.round(each, _DIGITS, out=each) for each in self._log_scores(masks)]
        if self._kind == "cuts" and all(each.all() for each in masks):
            weights, flow = self._whole
        else:
            weights = self._masked(masks)
            weights = _balanced(weights) if self._kind == "cuts" else weights
            flow = self._flow(weights)
        return [_rounded(each) for each in _scores(flow, weights)]

    def _log_scores(self, masks: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Logarithms of the scores of a chain."""
        found = chain_log_scores(self._oriented(self._masked(masks)))
        return found if self._kind == "chain" else [each.T for each in found]

    def exists(self, masks: Sequence[np.ndarray]) -> bool:
        """Whether a path from the inputs to the outputs remains."""
        weights = self._masked(masks)
        if self._kind in ("chain", "transposed chain"):
            return bool(log_synaptic_flow(self._oriented(weights)) > -np.inf)
        return self.network.flow(_balanced(weights)).total > 0

    def remaining(self, masks: Sequence[np.ndarray]) -> Remaining:
        """Connected weights, shares and paths that remain in a pruned network."""
        if self._kind in ("chain", "transposed chain"):
            scores, total = self._log_scores(masks), log_synaptic_flow(self._oriented(self._masked(masks)))
            exists = total > -np.inf
            shares = [np.exp(each - total).sum() if exists else 0.0 for each in scores]
            return Remaining([each > -np.inf for each in scores], np.array(shares), bool(exists))
        weights = self._masked(masks)
        weights = _balanced(weights) if self._kind == "cuts" else weights
        flow = self._flow(weights)
        connected = [each > 0 for each in _scores(flow, weights)]
        return Remaining(connected, _shares(flow, weights), flow.total > 0)

    @functools.cached_property
    def defect(self) -> float:
        """Relative difference of the flow at the outputs and at the inputs and biases; zero if φ(z) = φ'(z) z."""
        # With balanced weights, signals are of order one, where no activation is saturated or nearly linear.
        balanced, flow = self._whole
        total = flow.total
        return abs(self.network.source(balanced) / total - 1) if total else 0.0

    @property
    def shares(self) -> np.ndarray:
        """Sum of the scores of each layer divided by R, for the unpruned network with balanced weights."""
        balanced, flow = self._whole
        return _shares(flow, balanced)

    @functools.cached_property
    def _whole(self) -> tuple[list[np.ndarray], Flow]:
        """Balanced weights of the unpruned network, and their flow."""
        balanced = _balanced(self.weights)
        return balanced, self.network.flow(balanced)

    @functools.cached_property
    def _kind(self) -> Literal["chain", "transposed chain", "cuts", "any"]:
        balanced, flow = self._whole
        if not (0 < flow.total < np.inf) or np.abs(_shares(flow, balanced) - 1).max() > _EQUAL:
            return "any"
        if any(each.ndim != 2 for each in balanced):
            return "cuts"
        expected, log_total = [logarithms(each) for each in _scores(flow, balanced)], np.log(flow.total)
        for turned in (False, True):
            matrices = [each.T if turned else each for each in balanced]
            if any(one.shape[1] != other.shape[0] for one, other in itertools.pairwise(matrices)):
                continue
            found = chain_log_scores(matrices)
            found = [each.T for each in found] if turned else found
            if all(_agree(*pair, log_total) for pair in zip(found, expected, strict=True)):
                return "transposed chain" if turned else "chain"
        return "cuts"

    def _masked(self, masks: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [weight * mask for weight, mask in zip(self.weights, masks, strict=True)]

    def _oriented(self, weights: list[np.ndarray]) -> list[np.ndarray]:
        return [each.T for each in weights] if self._kind == "transposed chain" else weights

    def _flow(self, weights: list[np.ndarray]) -> Flow:
        flow = self.network.flow(weights)
        require(
            np.isfinite(flow.total) and all(np.isfinite(each).all() for each in flow.gradient),
            "the synaptic flow of the network overflows",
            argument="network",
            value=float(flow.total),
            remedy="set biases to zero, scale down the weights, or choose another method",
        )
        return flow


def _balanced(weights: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Divide each layer by Σ|θ|/√count over its nonzero weights, so that its gain is about one."""
    return [each / (each.sum() / np.sqrt(max(np.count_nonzero(each), 1)) or 1.0) for each in weights]


def _shares(flow: Flow, weights: Sequence[np.ndarray]) -> np.ndarray:
    sums = np.array([np.sum(weight * slope) for weight, slope in zip(weights, flow.gradient, strict=True)])
    return sums / flow.total if flow.total else np.zeros(len(weights))


def _scores(flow: Flow, weights: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [weight * np.abs(slope) for weight, slope in zip(weights, flow.gradient, strict=True)]


def _rounded(values: np.ndarray) -> np.ndarray:
    """Round nonnegative numbers to 30 of their 52 binary digits, in place and much faster than logarithms."""
    bits = values.view(np.int64)
    bits += 1 << 21
    bits &= -(1 << 22)
    return values


def _agree(found: np.ndarray, expected: np.ndarray, log_total: float) -> bool:
    return bool(np.abs(np.exp(found - log_total) - np.exp(expected - log_total)).max() <= _EQUAL)
