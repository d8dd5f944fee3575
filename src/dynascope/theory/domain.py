"""What each theory covers: the network, the data and the start that it assumes, and what it gives.

The statement stands on the function itself, so that the table "Which theory covers my case?" cannot fall behind it.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, Protocol, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from dynascope.theory.assumptions import SMALL_START, Assumption
from dynascope.theory.finite_answers import finite_answers
from dynascope.theory.second_moment import MEASURED, require_moment
from dynascope.validation import is_traced

__all__ = ["Domain", "covers", "find_domains", "warn_of_large_scale"]

_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer", covariant=True)
_COVARIANCE = inspect.Parameter(
    "covariance", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="ArrayLike | None"
)
_EXPLAINED = """    covariance: E[x xᵀ] of the inputs, shape (d, d), by which to check them: too far from {assumed} they
        are refused, and nearer by they are warned of. Without it nothing is checked.
"""


class Covering(Protocol[_Arguments, _Answer]):
    """A function that says what it covers, and which takes the covariance of the inputs if it assumes any."""

    domain: Domain

    @overload
    def __call__(self, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Answer: ...

    @overload
    def __call__(self, *arguments: Any, covariance: ArrayLike | None, **named: Any) -> _Answer: ...


@dataclasses.dataclass(frozen=True)
class Domain:
    """What a theory function covers.

    Attributes:
        network: Network, such as "two-layer linear, any widths".
        data: What the inputs and targets must be, such as "whitened inputs, any targets".
        start: What the initial weights must be, such as "λ-balanced".
        gives: What the function returns of the training, in a few words.
        exact: Whether it is exact in its domain, or the leading order of a limit.
        reference: Source, such as "arXiv:2409.14623".
        assumes: What of it can be measured, such as `assumptions.WHITE_INPUTS`.
    """

    network: str
    data: str
    start: str
    gives: str
    exact: bool
    reference: str
    assumes: tuple[Assumption, ...] = ()


def covers(
    *,
    network: str,
    data: str,
    start: str,
    gives: str,
    reference: str,
    exact: bool = True,
    infinite: bool = False,
    assumes: tuple[Assumption, ...] = (),
) -> Callable[[Callable[_Arguments, _Answer]], Covering[_Arguments, _Answer]]:
    """State on a public function of `dynascope.theory` what it covers; the words are those of `Domain`.

    What it answers to known values is a number, or `InputError` is raised; only with `infinite` may it be ∞. Where it
    assumes something of the second moment of inputs that it is not given itself, it takes that as `covariance`, and
    checks it. One of a small start warns of a `scale` beyond which it says little.

    Example:
        >>> @covers(network="linear", data="any", start="zero", gives="the loss", reference="folklore")
        ... def loss_of_regression(): ...
        >>> loss_of_regression.domain.start
        'zero'
    """

    def state(function: Any) -> Any:
        checked: Any = function if hasattr(function, "units") else finite_answers(infinite=infinite)(function)
        if any(each.name in MEASURED for each in assumes):
            checked = _of_a_covariance(checked, assumes)
        small = next((each for each in assumes if each == SMALL_START), None)
        if small is not None and "scale" in inspect.signature(function).parameters:
            checked = _of_a_small_scale(checked, small)
        checked.domain = Domain(network, data, start, gives, exact, reference, assumes)
        return checked

    return state


def _of_a_covariance(function: Callable[..., Any], assumes: tuple[Assumption, ...]) -> Callable[..., Any]:
    """The function, which takes E[x xᵀ] too, and checks it."""
    name = f"{function.__module__.split('.')[-2]}.{function.__name__}"

    @functools.wraps(function)
    def call(*positional: Any, covariance: Any = None, **named: Any) -> Any:
        if covariance is not None:
            require_moment(covariance, assumes, name)
        return function(*positional, **named)

    parameters = list(inspect.signature(function).parameters.values())
    place = len(parameters) - (parameters[-1].kind is inspect.Parameter.VAR_KEYWORD)
    parameters.insert(place, _COVARIANCE)
    signature: Any = call
    signature.__signature__ = inspect.signature(function).replace(parameters=parameters)
    assumed = " and ".join(each.name for each in assumes if each.name in MEASURED)
    call.__doc__ = _explained(inspect.cleandoc(function.__doc__ or ""), _EXPLAINED.format(assumed=assumed))
    return call


def warn_of_large_scale(name: str, scale: Any, assumed: Assumption = SMALL_START) -> None:
    """Warn who called the caller of a scale of the start beyond which a theory of small starts says little.

    Args:
        name: What to call the theory.
        scale: The factor on the weights, or several. Of values that JAX traces nothing is known, and nothing is said.
        assumed: The small start, as the theory assumes it.
    """
    if is_traced(scale):
        return
    largest = float(np.max(np.asarray(scale)))
    if largest > assumed.almost:
        told = f"{name} assumes a {assumed.name}, and the scale is {largest:.3g}, beyond {assumed.almost:g}"
        warnings.warn(f"{told}: {assumed.growth}: {assumed.remedy}", stacklevel=3)


def _of_a_small_scale(function: Callable[..., Any], assumed: Assumption) -> Callable[..., Any]:
    """The function, which warns of a scale beyond which a theory of small starts says little."""
    name = f"{function.__module__.split('.')[-2]}.{function.__name__}"
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        answer = function(*positional, **named)  # which refuses what is no scale, however it was given
        given = signature.bind(*positional, **named)
        given.apply_defaults()
        warn_of_large_scale(name, given.arguments["scale"], assumed)
        return answer

    return call


def _explained(documentation: str, entry: str) -> str:
    """The docstring with a further argument, the last but those that are passed on."""
    head, arguments, rest = re.split(
        r"(?<=^Args:\n)((?: .*\n|\n(?= ))*)", documentation, maxsplit=1, flags=re.MULTILINE
    )
    passed_on = re.search(r"^    options:", arguments, re.MULTILINE)
    place = passed_on.start() if passed_on else len(arguments)
    return head + arguments[:place] + entry + arguments[place:] + rest


def find_domains() -> dict[str, Domain]:
    """The domain of every function of `dynascope.theory` that states one, by the name under which to call it.

    Example:
        >>> all(name.startswith("theory.") for name in find_domains())
        True
    """
    theory = importlib.import_module("dynascope.theory")
    found = {}
    for module in pkgutil.walk_packages(theory.__path__, f"{theory.__name__}."):
        held = vars(importlib.import_module(module.name))
        for name, value in held.items():
            domain = getattr(value, "domain", None)
            if isinstance(domain, Domain) and value.__module__ == module.name:
                found[f"{_public_home(module.name, name)}.{name}".removeprefix("dynascope.")] = domain
    return dict(sorted(found.items()))


def _public_home(module: str, name: str) -> str:
    """The package that offers the function, if its module's does, or the module."""
    package = module.rpartition(".")[0]
    offered = package != "dynascope.theory" and name in getattr(importlib.import_module(package), "__all__", ())
    return package if offered else module
