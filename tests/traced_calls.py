"""Calls of a function as rows of one compiled program, in which JAX sees no value: their answers and their slopes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from documented import Call, Member, is_floating, is_numeric, is_record, is_row, parts_of, replaced

from dynascope.compilation import jit

_ROWS = 5  # calls in a batch


class TracedCalls:
    """A function of its numbers in 64 bits, at calls that are changes of one.

    A number goes by its place: the name of an argument, or `argument.part` in a record, which may be one of records.

    Args:
        function: What is called.
        call: The call that is changed.
        names: The arguments that are traced, which the call may leave out.
        mapped: Whether the program has a batch of calls, or one.
        differentiated: Whether there are slopes.
    """

    def __init__(self, function: Member, call: Call, names: Iterable[str], *, mapped: bool, differentiated: bool):
        self.function, self.call, self.mapped = function, call._replace(wide=True), mapped
        found: dict[str, Any] = {}
        for name in names:
            found |= parts_of(name, function.arguments(call)[name])
        self.numbers = jax.tree.map(lambda value: np.asarray(value, float), found, is_leaf=is_numeric)
        one = jax.grad(self._total, has_aux=True) if differentiated else lambda numbers: ({}, self._parts(numbers))
        self._program = jit(jax.vmap(one) if mapped else one)

    @property
    def plain(self) -> dict[str, Any]:
        """The numbers but those of the data on a line, of which the direction is of norm one."""
        return {place: value for place, value in self.numbers.items() if not place.startswith("data.")}

    def change(self, values: dict[str, Any]) -> dict[str, Any]:
        """What arrays become, in the shapes that they have."""
        return {
            place: np.broadcast_to(np.asarray(value, float), self.numbers[place].shape)
            for place, value in values.items()
        }

    def alone(self, change: dict[str, Any]) -> list[np.ndarray]:
        """The parts of one answer, as users get it."""
        with jax.enable_x64(True):
            return jax.device_get(self._parts(self.numbers | change))

    def of(self, changes: Sequence[dict[str, Any]]) -> list[tuple[list[np.ndarray], dict[str, Any]]]:
        """The parts of each answer, and the slopes of their weighed sum, by one program."""
        calls = [self.numbers | change for change in changes]
        if not self.mapped:
            return [self._run(call) for call in calls]
        found = []
        for first in range(0, len(calls), _ROWS):
            batch = calls[first : first + _ROWS]
            together = self._run(jax.tree.map(lambda *each: np.stack(each), *batch, *batch[:1] * (_ROWS - len(batch))))
            found += [jax.tree.map(lambda leaf, row=row: leaf[row], together) for row in range(len(batch))]
        return found

    def _run(self, numbers: dict[str, Any]) -> tuple[list[np.ndarray], dict[str, Any]]:
        with jax.enable_x64(True):
            slopes, parts = jax.device_get(self._program(numbers))
        return parts, slopes

    def _total(self, numbers: dict[str, Any]) -> tuple[jax.Array, list[jax.Array]]:
        parts = self._parts(numbers)
        return weighed(parts, jnp), parts

    def _parts(self, numbers: dict[str, Any]) -> list[Any]:
        arguments: dict[str, Any] = {}
        for place, value in numbers.items():
            name, *path = place.split(".")
            # Records are made within the program, as users make them.
            arguments[name] = replaced(arguments.get(name, self.function.arguments(self.call).get(name)), path, value)
        leaves = jax.tree.leaves(self.function(self.call, **arguments))
        return [leaf for leaf in leaves if jnp.issubdtype(jnp.result_type(leaf), np.floating)]


def weighed(parts: Sequence[Any], numpy: Any = np) -> Any:
    """A sum of all numbers, but not the plain one, in which what is antisymmetric cancels."""
    flat = numpy.concatenate([numpy.ravel(part) for part in parts])
    return flat @ np.cos(np.arange(flat.size))


def is_traceable(value: Any) -> bool:
    """Whether an argument is made of numbers that are not whole."""
    if is_record(value):
        return hasattr(value, "_fields") and all(map(is_traceable, value))
    return is_floating(value) or (is_row(value) and all(map(is_floating, value)))
