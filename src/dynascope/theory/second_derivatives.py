"""Reject second derivatives of functions that implement only the first."""

from __future__ import annotations

import functools
from typing import Any

import jax
from jax import Array

from dynascope.errors import InputError

__all__ = ["once_differentiable"]


@functools.partial(jax.custom_jvp, nondiff_argnums=(1, 2))
def once_differentiable(value: Array, function: str, argument: str) -> Array:
    """Return the value unchanged, and raise `InputError` if JAX differentiates it; for use inside a custom derivative.

    Args:
        value: An array from which a first derivative is computed.
        function: Name of the differentiated function, for the message.
        argument: Name of the argument, for the error.

    Example:
        >>> float(once_differentiable(jax.numpy.array(2.0), "gram", "target_map"))
        2.0
    """
    return value


@once_differentiable.defjvp
def _(function: str, argument: str, primals: Any, tangents: Any) -> Any:
    raise InputError(
        f"{function} is differentiated twice, but supports only first derivatives",
        argument=argument,
        remedy="use finite differences of the first derivative",
    )
