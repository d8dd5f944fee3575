"""Splits an ensemble into cache-sized blocks, and into one part per core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

__all__ = ["each_member", "equal_parts", "members_of", "working_memory"]

_CACHE = 2**20  # assumed cache size of a core in bytes


def each_member(member: Callable[[Any], Any], arguments: Any, *, many: bool, needed: int) -> Any:
    """Apply a traceable function to every ensemble member, one cache-sized block at a time.

    If the intermediate results of a block fit into the cache of a core, processing by blocks is several times faster
    than a single batch.

    Args:
        member: Function of the arguments of one member.
        arguments: Arguments of all members, with a leading axis over members unless there is a single network.
        many: Whether the arguments have a leading axis over members.
        needed: Size of the intermediate results of one member, in bytes.
    """
    if not many:
        return member(arguments)
    members = len(jax.tree.leaves(arguments)[0])
    blocks = min(members, -(-members * needed // _CACHE)) if jax.default_backend() == "cpu" else 1
    split = members_of(arguments, equal_parts(members, max(blocks, 1)))
    results = jax.lax.map(jax.vmap(member), split)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:members], results)


def working_memory(function: Callable[[Any], Any], weights: Any) -> int:
    """Size of all intermediate results of a gradient evaluation, in bytes."""
    program = jax.make_jaxpr(jax.grad(function))(weights)
    return sum(out.aval.size * out.aval.dtype.itemsize for line in program.eqns for out in line.outvars)


def equal_parts(members: int, parts: int) -> np.ndarray:
    """Indices of the members in each part; the last part is padded with copies of the last member."""
    length = -(-members // parts)
    return np.minimum(np.arange(parts * length), members - 1).reshape(parts, length)


def members_of(tree: Any, rows: Any) -> Any:
    """Select members from arrays with a leading axis over members."""
    return jax.tree.map(lambda leaf: leaf[rows], tree)
