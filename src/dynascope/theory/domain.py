"""The domain of each theory: the network, data and initial weights it assumes, and the quantity it returns.

Each function declares its domain, so that the table "Which theory covers my case?" stays up to date.
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
_EXPLAINED = """    covariance: E[x xᵀ] of the inputs, shape (d, d), to check the assumption of {assumed}: a large
        deviation raises `InputError`, and a small one issues a warning. None skips the check.
"""


class Covering(Protocol[_Arguments, _Answer]):
    """A function with a declared domain; it accepts the covariance of the inputs if the domain restricts the inputs."""

    domain: Domain

    @overload
    def __call__(self, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Answer: ...

    @overload
    def __call__(self, *arguments: Any, covariance: ArrayLike | None, **named: Any) -> _Answer: ...


@dataclasses.dataclass(frozen=True)
class Domain:
    """The domain of a theory function.

    Attributes:
        network: Network, such as "two-layer linear, any widths".
        data: Requirements on the inputs and targets, such as "whitened inputs, any targets".
        start: Requirements on the initial weights, such as "λ-balanced".
        gives: Short description of the returned quantity.
        exact: Whether the result is exact in the domain, or the leading order of a limit.
        reference: Source, such as "arXiv:2409.14623".
        assumes: Measurable assumptions, such as `assumptions.WHITE_INPUTS`.
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
    """Declare the domain of a public function of `dynascope.theory`; the arguments are the attributes of `Domain`.

    The decorated function raises `InputError` if its result is NaN or, unless `infinite` is set, infinite. If the
    function assumes white or uncorrelated inputs, it gains an optional argument `covariance`, which is checked against
    this assumption. If the function assumes small initial weights, it warns if `scale` is large.

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
    """Add an argument `covariance`, E[x xᵀ], to a function, and check it against the domain of the function."""
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
    """Warn if a theory of small initial weights is unreliable at the given scale.

    Args:
        name: Name of the theory, for the message.
        scale: One or more factors that multiply the weights. Values that JAX traces are not checked.
        assumed: The assumption of the theory about its initial weights.
    """
    if is_traced(scale):
        return
    largest = float(np.max(np.asarray(scale)))
    if largest > assumed.almost:
        problem = f"{name} assumes a {assumed.name}, but the scale is {largest:.3g}, which is above {assumed.almost:g}"
        warnings.warn(f"{problem}: {assumed.growth}; {assumed.remedy}", stacklevel=3)


def _of_a_small_scale(function: Callable[..., Any], assumed: Assumption) -> Callable[..., Any]:
    """Make a function warn if its `scale` is too large for a theory of small initial weights."""
    name = f"{function.__module__.split('.')[-2]}.{function.__name__}"
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        answer = function(*positional, **named)  # rejects invalid scales first
        given = signature.bind(*positional, **named)
        given.apply_defaults()
        warn_of_large_scale(name, given.arguments["scale"], assumed)
        return answer

    return call


def _explained(documentation: str, entry: str) -> str:
    """Insert an entry for an additional argument into the docstring, before `**options`."""
    head, arguments, rest = re.split(
        r"(?<=^Args:\n)((?: .*\n|\n(?= ))*)", documentation, maxsplit=1, flags=re.MULTILINE
    )
    passed_on = re.search(r"^    options:", arguments, re.MULTILINE)
    place = passed_on.start() if passed_on else len(arguments)
    return head + arguments[:place] + entry + arguments[place:] + rest


def find_domains() -> dict[str, Domain]:
    """The domains of all functions of `dynascope.theory` that declare one, keyed by public name.

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
    """The package that exports the function, or its module if no package does."""
    package = module.rpartition(".")[0]
    offered = package != "dynascope.theory" and name in getattr(importlib.import_module(package), "__all__", ())
    return package if offered else module
