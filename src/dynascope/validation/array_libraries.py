"""Checks of arrays of any library, so that probes work with NumPy, JAX and PyTorch."""

from __future__ import annotations

import sys
from typing import Any

from dynascope.errors import InputError
from dynascope.validation.numbers import require

__all__ = [
    "array_namespace",
    "holds",
    "require_axes",
    "require_finite_values",
    "require_jax_arrays",
    "require_labels",
]


def array_namespace(*arrays: Any, **named: Any) -> Any:
    """Return the array-API namespace of the library of all these arrays; JAX if NumPy and JAX are mixed.

    NumPy and JAX provide the namespace themselves; for PyTorch, it comes from array-api-compat in the extra `torch`.

    Args:
        *arrays: One or more arrays, all of one library.
        **named: Further arrays, by the argument names that error messages use.

    Raises:
        InputError: An argument is not an array, or the arrays are of different libraries.

    Example:
        >>> import numpy as np
        >>> array_namespace(np.ones(3), np.zeros(2)) is np
        True
    """
    spaces = [*map(_namespace, arrays), *(_namespace(each, name) for name, each in named.items())]
    found = {space.__name__: space for space in spaces}
    if {*found} == {"numpy", "jax.numpy"}:
        return found["jax.numpy"]
    if len(found) > 1:
        names = sorted(found)
        given = f" {' and '.join(named)}" if named else ""
        raise InputError(
            f"the arrays{given} belong to different libraries ({', '.join(names)})",
            argument=next(iter(named), "array"),
            value=names,
            remedy="convert all arrays to one library",
        )
    return next(iter(found.values()))


def require_jax_arrays(**arguments: Any) -> None:
    """Raise `InputError` if an argument of a JAX function is a PyTorch tensor or a pandas table.

    Example:
        >>> require_jax_arrays(x=[[1.0, 2.0]])
    """
    for name, value in arguments.items():
        library = type(value).__module__.partition(".")[0]
        convert = {"torch": "with .numpy(), or use dynascope.torch", "pandas": "with .to_numpy()"}.get(library, "")
        require(
            not convert,
            f"{name} is a {library} {type(value).__name__}",
            argument=name,
            value=type(value).__name__,
            remedy=f"convert it to a NumPy array {convert}",
        )


def holds(condition: Any) -> bool:
    """Whether a condition is true, or unknown because JAX traces it."""
    # Avoids the error that JAX raises for tracers, because it searches the whole trace for the origin of the value.
    known = getattr(condition, "to_concrete_value", None)
    if known is not None and known() is None:
        return True
    try:
        return bool(condition)
    except TypeError:
        return True


def require_axes(name: str, values: Any, axes: int) -> tuple[int, ...]:
    """Return the shape of an array of any library, after checking its number of axes and that it is not empty.

    Args:
        name: Name of the argument, for the message.
        values: The array.
        axes: Required number of axes.

    Raises:
        InputError: The value is not an array of a known library, or it has a different number of axes or an empty axis.

    Example:
        >>> import numpy as np
        >>> require_axes("features", np.ones((3, 2)), 2)
        (3, 2)
    """
    _namespace(values, name)
    shape = tuple(values.shape)
    require(
        len(shape) == axes and min(shape, default=1) > 0,
        f"{name} has shape {shape}",
        argument=name,
        value=shape,
        remedy=f"pass a non-empty array with {axes} {'axis' if axes == 1 else 'axes'}",
    )
    return shape


def require_finite_values(
    name: str, values: Any, *, floating: bool = False, remedy: str = "drop or fill them first"
) -> None:
    """Raise `InputError` if an array of any library contains known values that are not finite.

    Args:
        name: Name of the argument, for the message.
        values: The array.
        floating: Whether the values must be floating-point numbers.
        remedy: How to fix values that are not finite, for the message.

    Raises:
        InputError: If a value is NaN or infinite, or is an integer although `floating` is set.

    Example:
        >>> import numpy as np
        >>> require_finite_values("features", np.array([1.0, np.nan]))
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: features contains values that are not finite: drop or fill them first.
        >>> require_finite_values("weights", np.arange(3), floating=True)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: weights has values of type int64: pass floating-point numbers.
    """
    xp = _namespace(values, name)
    require(
        not floating or xp.isdtype(values.dtype, "real floating"),
        f"{name} has values of type {values.dtype}",
        argument=name,
        value=str(values.dtype),
        remedy="pass floating-point numbers",
    )
    if _is_in_cpu_memory(values):
        # NumPy needs no compilation.
        import numpy as xp  # here, so that the command line reports a bad argument without loading arrays
    require(
        holds(xp.all(xp.isfinite(values))),
        f"{name} contains values that are not finite",
        argument=name,
        remedy=remedy,
    )


def require_labels(name: str, labels: Any, samples: int, *, classes: int | None = None) -> None:
    """Raise `InputError` unless an array of any library contains one class label per sample, counted from zero.

    Args:
        name: Name of the argument, for the message.
        labels: The array; its values are checked if they are known.
        samples: Number of samples.
        classes: Number of classes, if known.

    Raises:
        InputError: The value is not an array of a known library or has a different shape, or its labels are not
            integers or not within the range of classes.

    Example:
        >>> import numpy as np
        >>> require_labels("labels", np.array([0, 3]), 2, classes=3)
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: labels ranges from 0 to 3: number the 3 classes from 0 to 2.
    """
    xp, shape = _namespace(labels, name), tuple(labels.shape)
    require(
        shape == (samples,),
        f"{name} has shape {shape}, but there are {samples} samples",
        argument=name,
        value=shape,
        remedy=f"give one label for each sample, of shape ({samples},)",
    )
    require(
        xp.isdtype(labels.dtype, "integral"),
        f"{name} has values of type {labels.dtype}",
        argument=name,
        value=str(labels.dtype),
        remedy="give integers that number the classes from 0",
    )
    inside = labels >= 0 if classes is None else (labels >= 0) & (labels < classes)
    if not holds(xp.all(inside)):
        ends = int(xp.min(labels)), int(xp.max(labels))
        raise InputError(
            f"{name} ranges from {ends[0]} to {ends[1]}",
            argument=name,
            value=ends,
            remedy=f"number the {f'{classes} classes from 0 to {classes - 1}' if classes else 'classes from 0'}",
        )


def _is_in_cpu_memory(array: Any) -> bool:
    """Whether this is a JAX array with known values in CPU memory, which NumPy reads without a copy."""
    if "jax" not in sys.modules:
        return False
    jax = sys.modules["jax"]
    if not isinstance(array, jax.Array) or isinstance(array, jax.core.Tracer):
        return False
    return all(device.platform == "cpu" for device in array.devices()) and array.is_fully_addressable


def _namespace(array: Any, name: str = "array") -> Any:
    if hasattr(array, "__array_namespace__"):
        kind = getattr(array.dtype, "kind", "f")
        require(
            kind not in "OSUMm",
            f"{name} has values of type {array.dtype}",
            argument=name,
            value=str(array.dtype),
            remedy="pass numbers",
        )
        return array.__array_namespace__()
    try:
        from array_api_compat import array_namespace as compatible_namespace  # comes with PyTorch only

        return compatible_namespace(array)
    except (ImportError, TypeError):
        raise InputError(
            f"arrays of type {type(array).__name__} are not supported",
            argument=name,
            value=type(array).__name__,
            remedy="pass NumPy, JAX or PyTorch arrays (for PyTorch, install the extra 'torch')",
        ) from None
