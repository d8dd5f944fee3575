"""Validated features, outputs and targets on samples, possibly compressed to fewer rows with equal inner products."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from dynascope.errors import InputError
from dynascope.validation import array_namespace, holds, require, require_finite_values

__all__ = ["OutputFunction", "Rows", "centred", "check_samples", "constant_rows", "finite_matrix", "sample_rows"]

OutputFunction = Literal["logits", "softmax"]
_CONSTANT = 1e-10  # a relative standard deviation below this is a rounding error


class Rows(NamedTuple):
    """Functions on n samples as columns, up to a rotation of the samples, which preserves all inner products.

    Attributes:
        features: Φ, shape (m, p).
        outputs: f̂, shape (m, C).
        targets: f*, shape (m, c), or None.
        constant: The function 1, shape (m, 1).
        samples: n; the inner product is ⟨f|g⟩ = fᵀg/n.
        resolution: Relative singular values below this value cannot be distinguished from zero.
    """

    features: Any
    outputs: Any
    targets: Any
    constant: Any
    samples: int
    resolution: float


def sample_rows(features: Any, outputs: Any, targets: Any | None, output_function: OutputFunction) -> Rows:
    """Return one row per sample, in double precision if the library supports it.

    Raises:
        InputError: If shapes do not match, values are not finite, or labels are outside 0..C−1.
    """
    xp = array_namespace(features, outputs) if targets is None else array_namespace(features, outputs, targets)
    h, resolution = finite_matrix("features", features)
    f, f_resolution = finite_matrix("outputs", outputs)
    y = None
    if targets is not None:
        labelled = len(targets.shape) == 1 and xp.isdtype(targets.dtype, "integral")
        y, y_resolution = (_one_hot(targets, f), 0.0) if labelled else finite_matrix("targets", targets)
        f_resolution = max(f_resolution, y_resolution)
    for name, each in (("outputs", f), ("targets", y)):
        require(
            each is None or each.shape[0] == h.shape[0],
            f"features has length {h.shape[0]}, but {name} has length {0 if each is None else each.shape[0]}",
            argument=name,
            value=None if each is None else tuple(each.shape),
            remedy="give one row per sample in both arrays",
        )
    if output_function == "softmax":
        powers = xp.exp(f - xp.max(f, axis=1, keepdims=True))
        f = powers / xp.sum(powers, axis=1, keepdims=True)
    return Rows(h, f, y, constant_rows(h), h.shape[0], max(resolution, f_resolution))


def finite_matrix(name: str, values: Any) -> tuple[Any, float]:
    """Return the array (n, k) in double precision if the library supports it, and its relative rounding error.

    Raises:
        InputError: If the array is not real, does not have two axes, is empty, or is not finite.
    """
    xp = array_namespace(values)
    shape = tuple(values.shape)
    require(
        len(shape) == 2 and min(shape) > 0,
        f"{name} has shape {shape}",
        argument=name,
        value=shape,
        remedy="pass a non-empty array with 2 axes" + (", or integer labels" if name == "targets" else ""),
    )
    if xp.isdtype(values.dtype, "complex floating"):
        raise InputError(
            f"{name} contains complex values", argument=name, value=str(values.dtype), remedy="pass real numbers"
        )
    double = xp.__array_namespace_info__().dtypes().get("float64", xp.float32)
    coarse = xp.finfo(values.dtype).eps if xp.isdtype(values.dtype, "real floating") else 0.0
    matrix = values if values.dtype == double else xp.astype(values, double)
    require_finite_values(name, matrix)
    return matrix, 10 * float(coarse)


def constant_rows(features: Any) -> Any:
    """Return the function 1 on the samples, shape (n, 1)."""
    return array_namespace(features).ones_like(features[:, :1])


def centred(columns: Any, rows: Rows) -> Any:
    """Apply I − |1⟩⟨1| to each column."""
    return columns - rows.constant * ((rows.constant.T @ columns) / rows.samples)


def check_samples(rows: Rows) -> None:
    """Reject samples for which the metrics are undefined.

    Raises:
        InputError: If there are not more samples than outputs, or features or outputs are the same on every sample.
    """
    xp = array_namespace(rows.features)
    outputs = rows.outputs.shape[1]
    require(
        rows.samples > outputs,
        f"there are {rows.samples} samples and {outputs} outputs",
        argument="features",
        value=rows.samples,
        remedy="give more samples than outputs",
    )
    for name, values in (("features", rows.features), ("outputs", rows.outputs)):
        # Divide by the largest value, whose square could overflow.
        largest = xp.max(xp.abs(values))
        unit = values / xp.where(largest > 0, largest, xp.ones_like(largest))
        require(
            holds(xp.sum(centred(unit, rows) ** 2) > _CONSTANT**2 * xp.sum(unit**2)),
            f"the {name} are the same on every sample",
            argument=name,
            value="zero variance",
            remedy="measure a network whose features and outputs depend on its inputs",
        )


def _one_hot(labels: Any, outputs: Any) -> Any:
    xp, classes = array_namespace(labels), outputs.shape[1]
    require(
        classes >= 2,
        "targets are labels, but there is a single output",
        argument="targets",
        value=classes,
        remedy="give one output per class or, for regression, targets of shape (n, 1)",
    )
    require(
        holds(xp.all((labels >= 0) & (labels < classes))),
        f"targets contains labels outside the range from 0 to {classes - 1}",
        argument="targets",
        remedy="number the classes from zero, and give one output per class",
    )
    # A cumulative sum of ones stays on the device of the outputs.
    order = xp.cumulative_sum(xp.ones_like(outputs[0, :]), axis=0) - 1
    return xp.astype(xp.astype(labels, outputs.dtype)[:, None] == order, outputs.dtype)
