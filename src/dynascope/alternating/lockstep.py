"""Run several Python generators concurrently, and batch their calls to the same compiled program."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from dynascope.compilation import filter_jit
from dynascope.flows.progress import report_progress

__all__ = ["Call", "run_together"]

_Result = TypeVar("_Result")


class Call(NamedTuple):
    """A computation requested by a run.

    Attributes:
        program: Traceable function of (common, *own, *static).
        own: Arrays of the run.
        static: Hashable arguments that are compile-time constants.
    """

    program: Callable[..., Any]
    own: tuple[Any, ...]
    static: tuple[Any, ...] = ()


def run_together(runs: Sequence[Generator[Call, Any, _Result]], common: Any, *, together: int = 1) -> list[_Result]:
    """Run generators to completion; each yields `Call`s and receives their results as NumPy arrays.

    Pending calls to the same program with arrays of equal shapes are computed in one batch. If there are several runs,
    `flows.progress_listener` receives the number of completed runs.

    Args:
        runs: The generators.
        common: First argument of all programs, shared by all runs.
        together: Number of calls per batch; smaller batches are padded to this size, so that only one size is compiled.

    Returns:
        The return values of the generators.

    Example:
        >>> import operator
        >>> def halved_until_small(value):
        ...     while value > 1:
        ...         value = yield Call(operator.mul, (value,))
        ...     return float(value)
        >>> run_together([halved_until_small(np.asarray(x)) for x in (5.0, 12.0)], 0.5, together=2)
        [0.625, 0.75]
    """
    results: dict[int, _Result] = {}
    waiting: dict[int, Call] = {}

    def send(place: int, value: Any) -> None:
        try:
            waiting[place] = runs[place].send(value)
        except StopIteration as end:
            results[place] = end.value
            if len(runs) > 1:
                report_progress(len(results), len(runs), "members")

    for place in range(len(runs)):
        send(place, None)
    while waiting:
        groups: dict[Any, list[int]] = {}
        for place, call in waiting.items():
            groups.setdefault(_kind(call), []).append(place)
        chosen = max(groups.values(), key=len)[:together]
        calls = [waiting.pop(place) for place in chosen]
        for place, value in zip(chosen, _computed(calls, common, together), strict=True):
            send(place, value)
    return [results[place] for place in range(len(runs))]


def _kind(call: Call) -> Any:
    leaves, structure = jax.tree.flatten(call.own)
    return call.program, call.static, structure, tuple((np.shape(leaf), str(leaf.dtype)) for leaf in leaves)


def _computed(calls: list[Call], common: Any, together: int) -> list[Any]:
    program, _, static = calls[0]
    if together == 1:
        return [jax.device_get(_alone(program, common, calls[0].own, static))]
    filled = calls + [calls[-1]] * (together - len(calls))
    own = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *(call.own for call in filled))
    leaves, structure = jax.tree.flatten(jax.device_get(_batch(program, common, own, static)))
    return [structure.unflatten([leaf[place] for leaf in leaves]) for place in range(len(calls))]


@filter_jit
def _alone(program: Callable[..., Any], common: Any, own: tuple[Any, ...], static: tuple[Any, ...]) -> Any:
    return program(common, *own, *static)


@filter_jit
def _batch(program: Callable[..., Any], common: Any, own: tuple[Any, ...], static: tuple[Any, ...]) -> Any:
    return jax.vmap(lambda mine: program(common, *mine, *static))(own)
