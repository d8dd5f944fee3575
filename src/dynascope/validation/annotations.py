"""Validation of arguments against their annotations: the type of a value, and the bounds of its numbers."""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
import math
import operator
import sys
import types
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, Union, cast, get_args, get_origin

import annotated_types

from dynascope.errors import InputError
from dynascope.validation.arrays import is_traced, real_array, require_known
from dynascope.validation.kinds import admits, in_words, is_array
from dynascope.validation.numbers import require_choice, shown

__all__ = ["Bounds", "Check", "bounds_of", "check_of", "checks_of", "kinds_of", "require_kind"]

Check = Callable[[str, Any], Any]  # (name of the argument, value) → validated value

_MOST_INTEGER = 2**63 - 1  # limit of shapes and loops
_MODULES = {"xr": "xarray", "np": "numpy", "pd": "pandas", "jax": "jax", "plt": "matplotlib.pyplot"}
_LARGEST = sys.float_info.max


class Bounds(NamedTuple):
    """The range of finite numbers that an annotation allows.

    Attributes:
        minimum: Smallest value allowed.
        above: Number that every value must exceed.
        below: Number that every value must be less than.
        maximum: Largest value allowed.
    """

    minimum: float = -math.inf
    above: float = -math.inf
    below: float = math.inf
    maximum: float = math.inf

    def hold(self, low: float, high: float) -> bool:
        """Whether all numbers from `low` to `high` are finite and allowed; false for NaN."""
        inside = self.minimum <= low and self.above < low and high < self.below and high <= self.maximum
        return bool(inside and low >= -_LARGEST and high <= _LARGEST)

    @property
    def words(self) -> str:
        """A phrase for the bounds, such as "above 0 and at most 1"; empty if every finite number is allowed."""
        named = (
            *(("of at least", self.minimum), ("above", self.above)),
            *(("below", self.below), ("of at most", self.maximum)),
        )
        phrase = " and ".join(f"{words} {_digits(bound)}" for words, bound in named if math.isfinite(bound))
        return phrase.replace(" and of at most", " and at most")


def _digits(bound: float) -> str:
    """Format a whole number with all its digits if there are few, and any other number with six digits."""
    return str(int(bound)) if bound == int(bound) and abs(bound) <= _MOST_INTEGER else f"{bound:g}"


def bounds_of(kind: Any) -> Bounds | None:
    """Return the bounds in an annotation of numbers; None if it has none.

    Example:
        >>> from annotated_types import Gt, Le
        >>> bounds_of(Annotated[float, Gt(0), Le(1)]).words, bounds_of(float)
        ('above 0 and at most 1', None)
    """
    if get_origin(kind) is not Annotated:
        return None
    stated: dict[str, float] = {}
    finite = False
    for each in kind.__metadata__:
        parts = tuple(each) if isinstance(each, annotated_types.GroupedMetadata) else (each,)
        finite = finite or annotated_types.Predicate(math.isfinite) in parts
        for part in parts:
            for name, attribute in (("minimum", "ge"), ("above", "gt"), ("below", "lt"), ("maximum", "le")):
                if isinstance(part, annotated_types.BaseMetadata) and hasattr(part, attribute):
                    stated[name] = getattr(part, attribute)
    return Bounds(**stated) if stated or finite else None


def checks_of(function: Callable[..., Any]) -> dict[str, Check]:
    """Return the check of each argument by name, omitting arguments whose annotation allows every value.

    Example:
        >>> def root(value: float, name): ...
        >>> list(checks_of(root))
        ['value']
    """
    kinds = kinds_of(inspect.unwrap(function))
    found = {name: check_of(kind) for name, kind in kinds.items() if name != "return"}
    return {name: check for name, check in found.items() if check is not None}


def kinds_of(annotated: Any) -> dict[str, Any]:
    """Evaluate the annotations of a function or class, by name; annotations that cannot be evaluated are omitted.

    Example:
        >>> def root(value: float, name): ...
        >>> kinds_of(root)
        {'value': <class 'float'>}
    """
    names = getattr(annotated, "__globals__", None) or vars(sys.modules[annotated.__module__])
    # Libraries that a module may import for type checkers only, by their usual names.
    usual = {short: sys.modules[module] for short, module in _MODULES.items() if module in sys.modules}
    found = {}
    for name, annotation in getattr(annotated, "__annotations__", {}).items():
        annotation = getattr(annotation, "__forward_arg__", annotation)  # named tuples wrap strings
        with contextlib.suppress(Exception):  # an expression with an unknown name can raise any error
            found[name] = eval(annotation, usual | names) if isinstance(annotation, str) else annotation
    return found


@functools.lru_cache(maxsize=4096, typed=True)
def check_of(kind: Any) -> Check | None:
    """Return the check of a value against an annotation; None if the annotation allows every value.

    Example:
        >>> from annotated_types import Gt
        >>> check_of(Annotated[int, Gt(0)])("width", 8.0)
        8
    """
    stated, bounds = kind, bounds_of(kind)
    kind = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    if kind in (Any, object):
        return None
    if kind in (int, float):
        return _number_check(kind, bounds or (Bounds() if kind is int else None))
    if bounds is not None and (check := _array_check(kind, bounds)):
        return check
    if get_origin(kind) is Literal:
        return _choice_check(get_args(kind))
    if get_origin(kind) in (Union, types.UnionType):
        return _union_check(kind, stated)
    if get_origin(kind) in (Sequence, list, tuple) and bounds_of((*get_args(kind), Any)[0]) is not None:
        return _row_check(kind, get_args(kind), _lengths_of(stated))
    if _is_record(kind):
        return _record_check(kind)
    return _kind_check(kind, stated)


def require_kind(kind: Any, **arguments: Any) -> None:
    """Check values against an annotation, outside a `checked` function.

    The values are not converted, so 3.0 is not accepted as an integer.

    Example:
        >>> from annotated_types import Ge
        >>> require_kind(Annotated[int, Ge(2)], depth=1)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: depth is 1: choose an integer of at least 2.
    """
    check = check_of(kind)
    assert check is not None
    for name, value in arguments.items():
        if type(check(name, value)) is int:
            try:
                operator.index(value)
            except TypeError:
                raise _out_of_bounds(name, value, "an integer", bounds_of(kind) or Bounds()) from None


def _number_check(kind: type, bounds: Bounds | None) -> Check:
    """Check a number. Whole numbers of any type become integers; a number with bounds must not be traced."""
    noun = "an integer" if kind is int else "a finite number"

    def check(name: str, value: Any) -> Any:
        if type(value) is kind or (type(value) is int and kind is float):
            number = value
        elif is_traced(value):
            if bounds is not None:
                require_known(**{name: value})
            return value
        elif admits(kind, value):
            number = kind(value)
        else:
            raise _of_another_kind(name, value, kind) if bounds is None else _out_of_bounds(name, value, noun, bounds)
        if isinstance(number, int) and abs(number) > (_MOST_INTEGER if kind is int else _LARGEST):
            raise _out_of_bounds(name, value, noun, bounds or Bounds())
        if bounds is None or bounds.hold(number, number):
            return number
        raise _out_of_bounds(name, value, noun, bounds)

    return check


def _array_check(kind: Any, bounds: Bounds) -> Check | None:
    """Check an array of real numbers and convert it with `real_array`; a Python number stays a Python number.

    If the annotation names no JAX array, the result is a float64 NumPy array, and traced values are rejected.
    """
    import numpy as np  # here, so that the command line reports a bad argument without loading arrays

    parts, of_numpy = _array_kinds(kind), _is_of_numpy(kind)
    if not parts:
        return None
    axes = next((part.dim_str for part in parts if hasattr(part, "dim_str")), "...")
    dimensions = None if "..." in axes or "*" in axes else len(axes.split())

    def check(name: str, value: Any) -> Any:
        if type(value) is float or type(value) is int:
            if bounds.hold(value, value) and not dimensions:
                return np.asarray(value, np.float64) if of_numpy else float(value)
        elif (
            type(value) is np.ndarray
            and value.dtype == np.float64
            and (dimensions is None or value.ndim == dimensions)
            and (not value.size or bounds.hold(value.min(), value.max()))
        ):
            return value
        # Values of other types, and values that raise an error.
        array = real_array(name, value, dimensions=dimensions, **bounds._asdict())
        if not of_numpy:
            return array
        require_known(**{name: array})
        return np.asarray(array, np.float64)

    return check


def _array_kinds(kind: Any) -> list[Any]:
    """Return the array types in an annotation; `numpy.typing.ArrayLike` counts as a NumPy array."""
    import numpy as np  # here, as above
    import numpy.typing as npt

    return [np.ndarray] if kind == npt.ArrayLike else [part for part in (kind, *get_args(kind)) if is_array(part)]


def _is_of_numpy(kind: Any) -> bool:
    """Whether an annotation allows arrays, but no JAX arrays."""
    import jax  # here, as above

    parts = (kind, *get_args(kind))
    return bool(_array_kinds(kind)) and all(getattr(part, "array_type", part) is not jax.Array for part in parts)


def _choice_check(choices: tuple[Any, ...]) -> Check:
    def check(name: str, value: Any) -> Any:
        require_choice(name, value, choices)
        return value

    return check


def _row_check(kind: Any, parts: Sequence[Any], lengths: tuple[float, float]) -> Check:
    """Check each element of a sequence, or of an array along its first axis; a tuple may have a fixed length."""
    check_part, rows = check_of(parts[0]), tuple if get_origin(kind) is tuple else list
    length = len(parts) if rows is tuple and ... not in parts else None
    assert check_part is not None

    def check(name: str, value: Any) -> Any:
        row = admits(Sequence, value) or getattr(value, "ndim", 0) > 0
        if not row or length not in (None, len(value)):
            raise _of_another_kind(name, value, kind)
        if not lengths[0] <= len(value) <= lengths[1]:
            raise _of_another_length(name, value, lengths)
        return rows(check_part(name, each) for each in value)

    return check


def _lengths_of(kind: Any) -> tuple[float, float]:
    """Return the minimum and maximum length that an annotation allows for a sequence."""
    fewest, most = 0, math.inf
    for each in kind.__metadata__ if get_origin(kind) is Annotated else ():
        for part in each if isinstance(each, annotated_types.GroupedMetadata) else (each,):
            if isinstance(part, annotated_types.MinLen):
                fewest = part.min_length
            elif isinstance(part, annotated_types.MaxLen):
                most = part.max_length
    return fewest, most


def _is_record(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _record_check(kind: Any) -> Check:
    """Check a named tuple: each field that has bounds or is itself a named tuple."""
    kinds = kinds_of(kind).items()
    checks = {name: cast(Check, check_of(each)) for name, each in kinds if bounds_of(each) or _is_record(each)}

    def check(name: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise _of_another_kind(name, value, kind)
        return value._replace(
            **{field: part(f"{name}.{field}", getattr(value, field)) for field, part in checks.items()}
        )

    return check


def _union_check(kind: Any, stated: Any) -> Check:
    """Check a value by the first type of a union that admits it."""
    # None comes first, because NumPy's ArrayLike admits every value.
    parts = [(part, check_of(part)) for part in sorted(get_args(kind), key=lambda part: part is not type(None))]

    def check(name: str, value: Any) -> Any:
        for part, check_part in parts:
            if admits(part, value) and not (get_origin(part) is Literal and value not in get_args(part)):
                return value if check_part is None else check_part(name, value)
        names = [each for part, _ in parts if get_origin(part) is Literal for each in get_args(part)]
        raise _of_another_kind(name, value, stated, names)

    return check


def _kind_check(kind: Any, stated: Any) -> Check:
    def check(name: str, value: Any) -> Any:
        if not admits(kind, value):
            raise _of_another_kind(name, value, stated)
        return value

    return check


def _of_another_kind(name: str, value: Any, kind: Any, names: Sequence[str] = ()) -> InputError:
    """Return the error for a value of a wrong type; for a misspelt name, it suggests the nearest of `names`."""
    problem = f"is {repr(shown(value)) if isinstance(value, str) else shown(value)}"
    if shape := getattr(value, "shape", ()):
        problem = f"has shape {tuple(shape)}"
    close = difflib.get_close_matches(value, names, 1) if isinstance(value, str) else []
    remedy = (f"did you mean {close[0]!r}? Otherwise, " if close else "") + f"give {in_words(kind)}"
    return InputError(f"{name} {problem}", argument=name, value=shown(value), remedy=remedy)


def _of_another_length(name: str, value: Any, lengths: tuple[float, float]) -> InputError:
    fewest, most = lengths
    wanted = f"{fewest}" if fewest == most else f"{fewest} to {most}" if math.isfinite(most) else f"at least {fewest}"
    entries = "1 entry" if len(value) == 1 else f"{len(value)} entries"
    remedy = f"give {wanted} {'entry' if wanted == '1' else 'entries'}"
    return InputError(f"{name} has {entries}", argument=name, value=len(value), remedy=remedy)


def _out_of_bounds(name: str, value: Any, noun: str, bounds: Bounds) -> InputError:
    text = repr(shown(value)) if isinstance(value, str) else shown(value)
    most = _MOST_INTEGER if noun == "an integer" else _LARGEST
    if isinstance(value, int) and abs(value) > most:
        bounds = bounds._replace(maximum=min(bounds.maximum, most))
    remedy = f"choose {noun} {bounds.words}".rstrip()
    return InputError(f"{name} is {text}", argument=name, value=value, remedy=remedy)
