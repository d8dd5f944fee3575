"""Cost of calls to public functions of `dynascope.theory`, relative to their compiled kernels.

Each function is called as in the example of its docstring. A row contains the time of this call in microseconds, the
time of its compiled programs alone, called with the same NumPy arguments, and the ratio of the two. Functions that
compile nothing, because they use NumPy, are counted but not listed. `python benchmarks/call_costs.py` takes about three
minutes.
"""

from __future__ import annotations

import contextlib
import doctest
import functools
import io
import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from dynascope.compilation import precision

ROUNDS, SECONDS = 9, 0.01  # number of rounds, of which the fastest counts, and seconds per round
KERNELS: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []
_compile = precision.jit


def recorded(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Return the compiled function, with a record of its calls."""
    compiled = _compile(function, **options)

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        leaves = jax.tree.leaves((arguments, named))
        if not any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
            KERNELS.append((compiled, arguments, named))
        return compiled(*arguments, **named)

    vars(call)["lower"] = vars(compiled)["lower"]
    return call


precision.jit = recorded  # before the import of the theory, which compiles its kernels
from dynascope import theory  # noqa: E402


def microseconds(*calls: Callable[[], Any]) -> list[float]:
    """Return the shortest time of each call over all rounds, after one call that compiles; the calls alternate."""
    least = [math.inf] * len(calls)
    for call in calls:
        call()
    for _ in range(ROUNDS):
        for place, call in enumerate(calls):
            count, begun = 0, time.perf_counter()
            while (elapsed := time.perf_counter() - begun) < SECONDS:
                call()
                count += 1
            least[place] = min(least[place], 1e6 * elapsed / count)
    return least


def cost_of(function: Callable[..., Any]) -> tuple[float, float] | None:
    """Return the microseconds of the call in the docstring and of its kernels; None if it compiles nothing."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def noted(*arguments: Any, **named: Any) -> Any:
        calls.append((arguments, named))
        return function(*arguments, **named)

    for example in doctest.DocTestFinder(recurse=False).find(function, function.__name__):
        example.globs[function.__name__] = noted
        with contextlib.redirect_stdout(io.StringIO()):
            doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(example)
    if not calls:
        return None
    arguments, named = calls[0]
    if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves((arguments, named))):
        return None
    KERNELS.clear()
    function(*arguments, **named)
    kernels = list(KERNELS)
    if not kernels:
        return None

    def alone() -> None:
        with jax.enable_x64(True):
            for kernel, given, options in kernels:
                jax.tree.map(np.asarray, kernel(*given, **options))

    whole, compiled = microseconds(lambda: function(*arguments, **named), alone)
    return whole, compiled


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    ratios, without = [], 0
    print(f"{'function':58}{'call':>10}{'kernels':>10}{'ratio':>7}")
    for room in theory.__all__:
        subject = getattr(theory, room)
        for name in getattr(subject, "__all__", ()):
            function = getattr(subject, name)
            if isinstance(function, type) or not callable(function):
                continue
            cost = cost_of(function)
            if cost is None:
                without += 1
                continue
            ratios.append(cost[0] / cost[1])
            print(f"{f'{room}.{name}':58}{cost[0]:10.0f}{cost[1]:10.0f}{ratios[-1]:7.1f}", flush=True)
    print(
        f"{len(ratios)} functions, {sum(ratio > 5 for ratio in ratios)} with a ratio above 5; {without} compile nothing"
    )
