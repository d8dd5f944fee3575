"""What is computed of several symmetries in one program, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from dynascope.validation import is_traced

__all__ = ["in_turn"]


def in_turn(symmetries: Sequence[Any], function: Callable[..., Any], *trees: Any) -> list[Any]:
    """What a function of a symmetry and trees of parameters gives for each symmetry.

    In a compiled program one begins when the one before is done. Those that share parameters would else share their
    squares, which are as many numbers, and have them stored.
    """
    leaves, structure = jax.tree.flatten(trees)
    traced = [place for place, leaf in enumerate(leaves) if is_traced(leaf)]
    found = []
    for each in symmetries:
        if found and traced:
            later, _ = jax.lax.optimization_barrier(([leaves[place] for place in traced], found[-1]))
            for place, leaf in zip(traced, later, strict=True):
                leaves[place] = leaf
        found.append(function(each, *jax.tree.unflatten(structure, leaves)))
    return found
