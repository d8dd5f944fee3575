"""A function of keyword arguments, called once for each cell of a sweep."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dynascope import __version__
from dynascope.sweeps.entries import Outcome, attempt
from dynascope.sweeps.identity import require_names, source_digest
from dynascope.validation import require

__all__ = ["FunctionRun"]


@dataclasses.dataclass(frozen=True)
class FunctionRun:
    """A function of keyword arguments.

    Attributes:
        function: The function.
        fixed: Arguments that are equal in all cells.
    """

    function: Callable[..., Any]
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    batched: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the function."""
        return getattr(self.function, "__qualname__", type(self.function).__name__)

    def identity(self) -> dict[str, Any]:
        """The name of the function, the fixed arguments, and a digest of its source code."""
        fields = {name: str(value) for name, value in self.fixed.items()}
        return {"function": self.name, "fields": fields, "source": source_digest(self.function), "version": __version__}

    def check_names(self, names: Iterable[str]) -> None:
        """Require that the function accepts all arguments, and that none is missing."""
        given = [*names, *self.fixed]
        try:
            signature = inspect.signature(self.function)
        except (TypeError, ValueError):
            return
        kinds = {each.kind for each in signature.parameters.values()}
        known = [each.name for each in signature.parameters.values() if each.kind is not each.POSITIONAL_ONLY]
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            require_names(given, known, f"the function {self.name} has no argument")
        needed = [each.name for each in signature.parameters.values() if _is_needed(each) and each.name not in given]
        remedy = "give their values in over or as keyword arguments"
        problem = f"the function {self.name} also needs {', '.join(needed)}"
        require(not needed, problem, argument="over", value=needed, remedy=remedy)

    def check(self, settings: Mapping[str, Any]) -> None:
        """Accept all settings, since only the function knows which are valid."""

    def found(self, settings: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        """Call the function for each of the settings."""
        return [attempt(self.function, **{**self.fixed, **each}) for each in settings]


def _is_needed(parameter: inspect.Parameter) -> bool:
    plain = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    return plain and parameter.default is parameter.empty
