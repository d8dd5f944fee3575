"""Learning rates of the parameters of a network in any framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from dynascope.validation import array_namespace, holds, require

__all__ = ["NO_PARAMETER", "layer_rates", "rated_by_entry"]

NO_PARAMETER = -1  # marks leaves of a tree that are not parameters


def layer_rates(
    tree: Any, parameters: Sequence[Any], rates: Any, convert: Callable[[Any, Any], Any], *, kind: str
) -> tuple[Any, ...] | None:
    """Return one rate, or an array of rates, for each parameter.

    Args:
        tree: Tree of the parameters with their indices as leaves, and `NO_PARAMETER` for leaves that are not
            parameters.
        parameters: The parameters by index.
        rates: A tree that is a prefix of `tree`; None for no rates.
        convert: (rate, parameter) → the rate as an array in the precision of the parameter.
        kind: The framework's name for an array, used in messages.
    """
    if rates is None:
        return None
    places = jax.tree.leaves(tree)
    try:
        spread = jax.tree.leaves(jax.tree.broadcast(rates, tree))
    except ValueError:
        spread = []
    found: dict[int, Any] = {}
    fits = len(spread) == len(places)
    for rate, place in zip(spread, places, strict=False):
        if place == NO_PARAMETER:
            continue
        try:
            each = convert(rate, parameters[place])
        except (TypeError, ValueError, OverflowError, RuntimeError):
            fits = False
            break
        xp = array_namespace(each)
        fits = fits and each.shape in ((), parameters[place].shape)
        fits = fits and holds(xp.all((each >= 0) & xp.isfinite(each)))
        # A parameter in two places must have the same rate in both.
        first = found.setdefault(place, each)
        fits = fits and first.shape == each.shape and (first is each or holds(xp.all(first == each)))
    require(
        fits,
        "rates does not match params",
        argument="rates",
        value=jax.tree.map(np.shape, rates),
        remedy=f"give one finite non-negative number, one such number for each branch or {kind} of params, or {kind}s "
        "of such numbers with the shapes of params",
    )
    return tuple(found[place] for place in range(len(parameters)))


def rated_by_entry(rates: Sequence[Any] | None) -> frozenset[int]:
    """Return the parameters with one rate per entry, whose gradients must be formed."""
    return frozenset(() if rates is None else (i for i, rate in enumerate(rates) if rate.ndim))
