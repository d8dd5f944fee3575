"""What each theory covers: the network, the data and the start that it assumes, and what it gives.

The statement stands on the function itself, so that the table "Which theory covers my case?" cannot fall behind it.
"""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any, TypeVar

from dynascope.arguments import in_units
from dynascope.theory.assumptions import Assumption

__all__ = ["Domain", "covers", "find_domains"]

_Function = TypeVar("_Function", bound=Callable[..., Any])


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
) -> Callable[[_Function], _Function]:
    """State on a public function of `dynascope.theory` what it covers; the words are those of `Domain`.

    What it answers to known values is a number, or `InputError` is raised; only with `infinite` may it be ∞.

    Example:
        >>> @covers(network="linear", data="any", start="zero", gives="the loss", reference="folklore")
        ... def loss_of_regression(): ...
        >>> loss_of_regression.domain.start
        'zero'
    """

    def state(function: _Function) -> _Function:
        checked: Any = function if hasattr(function, "units") else in_units(infinite=infinite)(function)
        checked.domain = Domain(network, data, start, gives, exact, reference, assumes)
        return checked

    return state


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
