"""Validation of the weights of consecutive layers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from dynascope.validation import array_namespace, require, require_finite_values

__all__ = ["check_chain"]


def check_chain(weights: Sequence[Any], *, least: int) -> Any:
    """Return the array namespace of the weight matrices, after checking that their shapes form a chain."""
    require(
        len(weights) >= least,
        f"weights has length {len(weights)}",
        argument="weights",
        value=len(weights),
        remedy=f"give a sequence of at least {least} matri{'ces' if least > 1 else 'x'}",
    )
    xp = array_namespace(*weights)
    shapes = [tuple(each.shape) for each in weights]
    fits = all(len(shape) in (2, 3) and min(shape) > 0 for shape in shapes) and all(
        one[:-2] == other[:-2] and one[-1] == other[-2] for one, other in itertools.pairwise(shapes)
    )
    require(
        fits,
        f"the shapes {', '.join(map(str, shapes))} are not those of consecutive layers",
        argument="weights",
        value=shapes,
        remedy="give matrices of shape (inputs, outputs), all with or all without a leading time axis",
    )
    for each in weights:
        require_finite_values("weights", each, floating=True)
    return xp
