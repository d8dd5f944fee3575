"""Learning rates of the parameters of a network of any framework."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from dynascope.validation import array_namespace, holds, require

__all__ = ["NO_PARAMETER", "layer_rates", "rated_by_entry"]

NO_PARAMETER = -1  # the number of a parameter where there is none


def layer_rates(
    tree: Any, parameters: Sequence[Any], rates: Any, convert: Callable[[Any, Any], Any], *, kind: str
) -> tuple[Any, ...] | None:
    """One rate, or an array of rates, for each parameter.

    Args:
        tree: Tree of the parameters, with the number of the parameter at each end; `NO_PARAMETER` where there is none.
        parameters: The parameters by their numbers.
        rates: A tree that is a prefix of that tree; None for no rates.
        convert: (rate, parameter) → the rate as an array of the precision of the parameter.
        kind: What the user calls an array.
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
        # A parameter in two places has one rate.
        first = found.setdefault(place, each)
        fits = fits and first.shape == each.shape and (first is each or holds(xp.all(first == each)))
    require(
        fits,
        "rates do not fit the parameters",
        argument="rates",
        value=jax.tree.map(np.shape, rates),
        remedy=f"give one finite number from zero, or one for each branch or {kind} of params, or {kind}s of their "
        "shapes",
    )
    return tuple(found[place] for place in range(len(parameters)))


def rated_by_entry(rates: Sequence[Any] | None) -> frozenset[int]:
    """The parameters with a rate for each entry, which need their gradients."""
    return frozenset(() if rates is None else (i for i, rate in enumerate(rates) if rate.ndim))
