"""The public functions of a room, each with what its docstring says and the calls that its example makes.

A conformance suite asks the same of every member of a family. The example in the docstring is run with the function
wrapped until it is called; the call is the valid input of all further questions, so that nobody keeps a second table.
"""

from __future__ import annotations

import contextlib
import dataclasses
import doctest
import functools
import inspect
import io
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

import jax
import numpy as np

# Processor seconds after which a call counts as hanging, so that it fails rather than blocks all other tests.
_SECONDS = 120


class _SeenError(Exception):
    """An example has made the call that is asked for."""


class Call(NamedTuple):
    """One call of a function.

    Attributes:
        arguments: Value by name of the parameter; those of `**options` under their own names.
        wide: Whether JAX had 64 bits.
    """

    arguments: dict[str, Any]
    wide: bool


class Member:
    """A public function, with its docstring and its example.

    Args:
        name: Name under which it is called, below the room.
        function: The function as its users get it.
        holders: The faces that re-export it.
    """

    def __init__(self, name: str, function: Callable[..., Any], holders: list[ModuleType]):
        self.name, self.function, self.holders = name, function, holders
        self.doc = inspect.getdoc(function) or ""
        self.module = sys.modules[function.__module__]
        self.signature = inspect.signature(function)

    @property
    def sections(self) -> dict[str, str]:
        """The parts of the docstring under their titles; what comes before them under none."""
        title = r"^(Args|Attributes|Returns|Raises|Warns|References|Note|Example):\n"
        parts = re.split(title, self.doc, flags=re.MULTILINE)
        return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}

    @property
    def explained(self) -> dict[str, str]:
        """What the docstring says of each parameter, or of each attribute of a class."""
        told = self.sections.get("Attributes", "") + self.sections.get("Args", "")
        entries = re.split(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)*):", told, flags=re.MULTILINE)
        return {
            name.strip("* "): " ".join(text.split())
            for names, text in zip(entries[1::2], entries[2::2], strict=True)
            for name in names.split(",")
        }

    @functools.cached_property
    def calls(self) -> list[Call]:
        """The first call that the example makes outside JAX's tracing, which is not carried out; none without one."""
        calls: list[Call] = []

        @functools.wraps(self.function)
        def witness(*positional: Any, **named: Any) -> Any:
            if not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves((positional, named))):
                bound = self.signature.bind(*positional, **named).arguments
                for parameter in self.signature.parameters.values():
                    if parameter.kind is parameter.VAR_KEYWORD:
                        bound.update(bound.pop(parameter.name, {}))
                calls.append(Call(dict(bound), bool(jax.config.jax_enable_x64)))
                raise _SeenError
            return self.function(*positional, **named)

        short = self.name.rpartition(".")[2]
        places = [place for place in (self.module, *self.holders) if getattr(place, short, None) is self.function]
        names = vars(self.module) | {short: witness}
        for place in places:
            setattr(place, short, witness)
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(_SeenError):
                for part in doctest.DocTestParser().get_examples(self.doc):
                    exec(compile(part.source, self.name, "single"), names)
        finally:
            for place in places:
                setattr(place, short, self.function)
        return calls

    def arguments(self, call: Call) -> dict[str, Any]:
        """What the function gets in a call, with the defaults of what is not given."""
        defaults = {
            name: parameter.default
            for name, parameter in self.signature.parameters.items()
            if parameter.default is not parameter.empty
        }
        return defaults | call.arguments

    def change(self, call: Call, place: str, value: Any) -> dict[str, Any]:
        """The argument in which the number of a place, as in `parts_of`, is another."""
        name, *path = place.split(".")
        return {name: replaced(self.arguments(call).get(name), path, value)}

    def __call__(self, call: Call, **changes: Any) -> Any:
        """The function at a call with some arguments changed."""
        arguments = call.arguments | changes
        positional = []
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is parameter.POSITIONAL_ONLY and name in arguments:
                positional.append(arguments.pop(name))
            elif parameter.kind is parameter.VAR_POSITIONAL:
                positional += arguments.pop(name, ())
        with jax.enable_x64(call.wide), _no_longer_than(_SECONDS):
            return self.function(*positional, **arguments)


def members(room: ModuleType) -> dict[str, Member]:
    """Every public function of a room and of its subjects, by the name under which it is called."""
    found: dict[str, Member] = {}

    def walk(face: ModuleType, prefix: str, above: list[ModuleType]) -> None:
        for name in face.__all__:
            value = getattr(face, name)
            if inspect.ismodule(value) and value.__name__.startswith(room.__name__) and hasattr(value, "__all__"):
                walk(value, f"{prefix}{name}.", [*above, face])
            elif callable(value) and not inspect.isclass(value) and hasattr(value, "__module__"):
                known = next((member for member in found.values() if member.function is value), None)
                if known is None or known.name.count(".") < prefix.count("."):
                    if known is not None:
                        del found[known.name]
                    found[f"{prefix}{name}"] = Member(f"{prefix}{name}", value, [*above, face])

    walk(room, "", [])
    return found


def is_numeric(value: Any) -> bool:
    """Whether an argument is a real number or an array of them, and no choice or count of things by name."""
    if isinstance(value, bool | str | bytes | None) or callable(value):
        return False
    if not isinstance(value, int | float | list | tuple | np.ndarray | np.generic | jax.Array) or is_record(value):
        return False
    try:
        return np.asarray(value).dtype.kind in "iuf" and np.size(value) > 0
    except (TypeError, ValueError):
        return False


def is_row(value: Any) -> bool:
    """Whether an argument is a row of numeric ones of different shapes, as the weights of several layers are."""
    row = isinstance(value, list | tuple) and not is_record(value) and not is_numeric(value)
    return row and len(value) > 0 and all(map(is_numeric, value))


def is_floating(value: Any) -> bool:
    """Whether an argument is numeric, and not of whole numbers only."""
    return is_numeric(value) and np.asarray(value).dtype.kind == "f"


def is_record(value: Any) -> bool:
    """Whether a value has named parts: a named tuple or a dataclass."""
    return hasattr(value, "_fields") or (dataclasses.is_dataclass(value) and not isinstance(value, type))


def parts_of(place: str, value: Any) -> dict[str, Any]:
    """An argument by its name, or the parts of a record by their places, such as `network.rates.first`."""
    if not is_record(value):
        return {place: value}
    held = value._asdict() if hasattr(value, "_asdict") else vars(value)
    return {inner: found for name, part in held.items() for inner, found in parts_of(f"{place}.{name}", part).items()}


def replaced(value: Any, path: Sequence[str], part: Any) -> Any:
    """An argument with the part of this path replaced, or all of it if there is none."""
    if not path:
        return part
    change = {path[0]: replaced(getattr(value, path[0]), path[1:], part)}
    return value._replace(**change) if hasattr(value, "_replace") else dataclasses.replace(value, **change)


def numbers(result: Any) -> Iterator[np.ndarray]:
    """Every array of floating-point numbers in what a function returns."""
    if hasattr(result, "data_vars"):
        for values in {**result.data_vars, **result.coords}.values():
            yield from numbers(values.to_numpy())
    elif isinstance(result, Mapping):
        for value in result.values():
            yield from numbers(value)
    elif dataclasses.is_dataclass(result) and not isinstance(result, type):
        for field in dataclasses.fields(result):
            yield from numbers(getattr(result, field.name))
    elif isinstance(result, list | tuple):
        for value in result:
            yield from numbers(value)
    elif isinstance(result, float | np.ndarray | np.generic | jax.Array) and np.asarray(result).dtype.kind == "f":
        yield np.asarray(result)
    elif hasattr(result, "detach"):  # PyTorch
        yield from numbers(result.detach().numpy())


def spoiled(value: Any, bad: Any) -> Any:
    """The argument with its first number replaced."""
    if is_row(value):
        return [spoiled(value[0], bad), *value[1:]]
    if np.ndim(value) == 0:
        return bad
    array = np.array(value, dtype=float if isinstance(bad, float) else object)
    array.flat[0] = bad
    return array if isinstance(bad, float) else array.tolist()


@contextlib.contextmanager
def _no_longer_than(seconds: int) -> Iterator[None]:
    def give_up(*_: Any) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
