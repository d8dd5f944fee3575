"""Evaluates a function for several symmetries in one program, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from dynascope.validation import is_traced

__all__ = ["in_turn"]


def in_turn(symmetries: Sequence[Any], function: Callable[..., Any], *trees: Any) -> list[Any]:
    """Evaluate a function of a symmetry and parameter trees for each symmetry.

    In a compiled program, each evaluation starts after the previous one has finished. Without this order, the compiler
    would share squared parameters between symmetries and have to store all squares.
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
