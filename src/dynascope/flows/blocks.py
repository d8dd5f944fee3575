"""Members in blocks that stay in a core's cache, and in parts, one for each core."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

__all__ = ["each_member", "equal_parts", "members_of", "working_memory"]

_CACHE = 2**20  # bytes of fast memory that a core is assumed to have


def each_member(member: Callable[[Any], Any], arguments: Any, *, many: bool, needed: int) -> Any:
    """Apply a traceable function to the arguments of every member: block after block, batched within a block.

    A block whose intermediate results stay in a core's cache is several times faster than all members at once.

    Args:
        member: Function of the arguments of one member.
        arguments: Those of all members, with an axis over them in front; of a single network as they are.
        many: Whether there is such an axis.
        needed: Bytes of the intermediate results of one member.
    """
    if not many:
        return member(arguments)
    members = len(jax.tree.leaves(arguments)[0])
    blocks = min(members, -(-members * needed // _CACHE)) if jax.default_backend() == "cpu" else 1
    split = members_of(arguments, equal_parts(members, max(blocks, 1)))
    results = jax.lax.map(jax.vmap(member), split)
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[:members], results)


def working_memory(function: Callable[[Any], Any], weights: Any) -> int:
    """Bytes of all intermediate results of one gradient of a function of the weights."""
    program = jax.make_jaxpr(jax.grad(function))(weights)
    return sum(out.aval.size * out.aval.dtype.itemsize for line in program.eqns for out in line.outvars)


def equal_parts(members: int, parts: int) -> np.ndarray:
    """Numbers of the members in each part; what the last one lacks is filled up with copies of the last member."""
    length = -(-members // parts)
    return np.minimum(np.arange(parts * length), members - 1).reshape(parts, length)


def members_of(tree: Any, rows: Any) -> Any:
    """What belongs to some members, of arrays with an axis over all in front."""
    return jax.tree.map(lambda leaf: leaf[rows], tree)
