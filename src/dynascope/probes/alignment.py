"""How the layers of a network lie to each other, to the data, and to where they started."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

from dynascope.errors import require
from dynascope.probes.array_namespace import array_namespace, holds

__all__ = ["data_alignment", "imbalance", "layer_alignment", "line_alignment", "weight_movement"]

_Variables = dict[str, tuple[tuple[str, ...], Any]]
_DIRECTIONS = ("correlation", "data")


def layer_alignment(weights: Sequence[Any]) -> _Variables:
    """Cosine |⟨v_ℓ, u_{ℓ+1}⟩| between the strongest output direction of each layer and input direction of the next.

    With W_ℓ = Σ_k s_k u_k v_kᵀ acting as x @ W_ℓ, u_1 and v_1 are the top left and right singular vectors. Singular
    vectors have no sign, so the cosine is its absolute value, between zero and one. Where the two largest singular
    values of a layer are equal its top vectors are not unique and the alignment means nothing; the `gap` tells.

    Cost: a singular value decomposition of each matrix, about 10 a b min(a, b) operations for shape (a, b), and memory
    for 2 (a + b) min(a, b) numbers, at each time.

    Args:
        weights: W_1 … W_L, L ≥ 2, shapes (a_ℓ, a_{ℓ+1}), all with the same leading time axis or all without. All arrays
            are of one library: NumPy, JAX or PyTorch.

    Returns:
        Name → (dimension names, values). Over `layer` 1 … L−1, and `time` in front where the weights have it:
        `layer_alignment`, zero where either layer vanishes; and `gap`, the smaller 1 − s_2/s_1 of the two layers.

    Raises:
        InputError: Fewer than two layers, shapes that do not fit, or values that are not finite (not seen while JAX
            traces).

    References:
        Ji & Telgarsky, Gradient descent aligns the layers of deep linear networks, arXiv:1810.02032.

    Example:
        >>> import numpy as np
        >>> layers = [np.diag([1.0, 0.5]), np.array([[3.0], [4.0]])]
        >>> layer_alignment(layers)["layer_alignment"][1].round(3), layer_alignment(layers)["gap"][1]
        (array([0.6]), array([0.5]))
    """
    xp, time = _check_chain(weights, least=2)
    tops = [_top(each) for each in weights]
    pairs = list(itertools.pairwise(tops))
    cosines = [_overlap(one[1], other[0]) for one, other in pairs]
    gaps = [xp.minimum(one[2], other[2]) for one, other in pairs]
    return {
        "layer_alignment": ((*time, "layer"), xp.stack(cosines, axis=-1)),
        "gap": ((*time, "layer"), xp.stack(gaps, axis=-1)),
    }


def data_alignment(weights: Sequence[Any], inputs: Any, targets: Any, *, direction: str = "correlation") -> _Variables:
    """Cosines between the first layer and the inputs, and between the last layer and the targets.

    `input_alignment` = |⟨u_1(W_1), e⟩| and `target_alignment` = |⟨v_1(W_L), o⟩|, where e and o are the top left and
    right singular vectors of E[x yᵀ] ("correlation", what a linear network learns first), or the strongest directions
    of E[x xᵀ] and of E[y yᵀ] ("data"). Moments are about zero: centre the data for covariances.

    Cost: 2ndc operations, or 2n(d² + c²) for "data", and the decompositions of the two layers and of the moments.

    Args:
        weights: W_1 … W_L, L ≥ 1, as for `layer_alignment`.
        inputs: x, shape (n, d), of the library of the weights.
        targets: y, shape (n, c).
        direction: "correlation" or "data".

    Returns:
        Name → (dimension names, values), without dimension, or over `time` where the weights have it. Zero where a
        layer vanishes or the moment does.

    Raises:
        InputError: As `layer_alignment`, data that do not fit the weights, or an unknown direction.

    Example:
        >>> import numpy as np
        >>> x, y = np.eye(2), np.array([[3.0], [4.0]])
        >>> float(data_alignment([np.array([[1.0], [0.0]]), np.ones((1, 1))], x, y)["input_alignment"][1].round(3))
        0.6
    """
    _, time = _check_chain(weights, least=1)
    array_namespace(weights[0], inputs, targets)
    expected = (weights[0].shape[-2], weights[-1].shape[-1])
    for name, values in (("inputs", inputs), ("targets", targets)):
        _check_real(name, values)
        require(
            len(values.shape) == 2 and values.shape[0] == inputs.shape[0] > 0,
            f"{name} have shape {tuple(values.shape)}",
            argument=name,
            value=tuple(values.shape),
            remedy="give inputs (n, d) and targets (n, c) of the same samples",
        )
    got = (inputs.shape[1], targets.shape[1])
    require(
        got == expected,
        f"the network maps {expected[0]} inputs to {expected[1]} outputs and the data {got[0]} to {got[1]}",
        argument="inputs",
        value=got,
        remedy="give the data that the network was trained on",
    )
    require(
        direction in _DIRECTIONS,
        f"direction is {direction!r}",
        argument="direction",
        value=direction,
        remedy=f"choose {' or '.join(_DIRECTIONS)}",
    )
    # Divided by their largest entries, as the square of a small number may vanish.
    x, y = inputs / _largest(inputs, (0, 1)), targets / _largest(targets, (0, 1))
    if direction == "correlation":
        input_direction, target_direction, _ = _top(x.T @ y)
    else:
        input_direction, target_direction = _top(x.T @ x)[0], _top(y.T @ y)[0]
    return {
        "input_alignment": (time, _overlap(_top(weights[0])[0], input_direction)),
        "target_alignment": (time, _overlap(_top(weights[-1])[1], target_direction)),
    }


def line_alignment(first: Any, second: Any, direction: Any) -> _Variables:
    """The alignment ζ = cos∠(u, v) of the output weights u with the input weights v = n·W of a two-layer network.

    This is what `theory.line.alignment` predicts for f(x) = γ Σ u_i w_i·x trained on inputs along the line x = a n.
    Unlike that of singular vectors this cosine has a sign: that of the function on the line.

    Cost: 2dh operations at each time, and memory for 2h numbers.

    Args:
        first: W, shape (d, h), or (times, d, h). All arrays are of one library: NumPy, JAX or PyTorch.
        second: u, shape (h,) or (h, 1), or with times in front.
        direction: n, shape (d,), of any length but zero.

    Returns:
        Name → (dimension names, values): `alignment` ζ between −1 and 1, without dimension or over `time`; zero where
        u or v vanishes.

    Raises:
        InputError: Shapes that do not fit, a direction of length zero, or values that are not finite (these two are not
            seen while JAX traces).

    References:
        Xu & Ziyin, When Does Feature Learning Happen?, arXiv:2401.07085, equations 20 to 22.

    Example:
        >>> import numpy as np
        >>> line_alignment(np.array([[1.0, 0.0], [0.0, 5.0]]), np.array([-3.0, 4.0]), np.array([1.0, 0.0]))
        {'alignment': ((), np.float64(-0.6))}
    """
    xp = array_namespace(first, second, direction)
    for name, values in (("first", first), ("second", second), ("direction", direction)):
        _check_real(name, values)
    shape = tuple(first.shape)
    outputs = second[..., 0] if tuple(second.shape) == (*shape[:-2], *shape[-1:], 1) else second
    require(
        len(shape) in (2, 3)
        and min(shape) > 0
        and tuple(outputs.shape) == (*shape[:-2], shape[-1])
        and tuple(direction.shape) == shape[-2:-1],
        f"first {shape}, second {tuple(second.shape)} and direction {tuple(direction.shape)} do not fit together",
        argument="second",
        value=tuple(second.shape),
        remedy="give shapes (d, h), (h,) and (d,), with times in front of the weights or not",
    )
    require(
        holds(xp.any(direction != 0)),
        "the direction has length zero",
        argument="direction",
        value=0.0,
        remedy="give the direction of the line on which the inputs lie",
    )
    # Divided by their largest entries, as the product of small numbers may vanish.
    scaled = first / _largest(first, (-2, -1))
    inputs = xp.sum(scaled * (direction / _largest(direction, -1))[:, None], axis=-2)
    cosine = xp.sum(_unit_vector(outputs) * _unit_vector(inputs), axis=-1)
    return {"alignment": (("time",) * (len(shape) - 2), _clipped(cosine))}


def weight_movement(weights: Sequence[Any], initial: Sequence[Any]) -> _Variables:
    """How far the weights have moved: ‖W − W₀‖/‖W₀‖ and cos∠(W, W₀) of each layer, and of all weights as one vector.

    Cosines are taken as 1 − ½‖W/‖W‖ − W₀/‖W₀‖‖², which is exact where little has changed.

    Cost: about 20 operations a weight at each time, and memory for three copies of the weights.

    Args:
        weights: One array for each layer or kind of parameter, of any shape (matrices, biases, filters); all with a
            leading time axis or all without. All arrays are of one library: NumPy, JAX or PyTorch.
        initial: The same at the start, without time axis.

    Returns:
        Name → (dimension names, values), with `time` in front where the weights have it. Over `layer`:
        `relative_change` and `start_cosine`. Without dimension: `parameter_distance` √(Σ‖W − W₀‖²),
        `relative_parameter_distance`, that over √(Σ‖W₀‖²), and `parameter_cosine`. A cosine is zero where the weights
        vanish.

    Raises:
        InputError: No array, shapes that do not fit, an array that is zero at the start, or values that are not finite
            (these two are not seen while JAX traces).

    Example:
        >>> import numpy as np
        >>> moved = weight_movement([np.array([[3.0, 4.0]])], [np.array([[3.0, 0.0]])])
        >>> moved["relative_change"][1].round(3), moved["start_cosine"][1], moved["parameter_distance"][1]
        (array([1.333]), array([0.6]), np.float64(4.0))
    """
    weights, initial = list(weights), list(initial)
    require(
        0 < len(weights) == len(initial),
        f"there are {len(weights)} arrays and {len(initial)} at the start",
        argument="initial",
        value=len(initial),
        remedy="give one for each layer",
    )
    xp = array_namespace(*weights, *initial)
    times = tuple(weights[0].shape)[: max(len(weights[0].shape) - len(initial[0].shape), 0)]
    for layer, (each, start) in enumerate(zip(weights, initial, strict=True), 1):
        _check_real("weights", each)
        _check_real("initial", start)
        require(
            len(times) < 2 and tuple(each.shape) == (*times, *start.shape),
            f"array {layer} has shape {tuple(each.shape)} and {tuple(start.shape)} at the start",
            argument="weights",
            value=tuple(each.shape),
            remedy="give the same shapes, with one time axis in front of all weights or of none",
        )
        require(
            math.prod(start.shape) > 0 and holds(xp.any(start != 0)),
            f"array {layer} is zero at the start",
            argument="initial",
            value=layer,
            remedy="leave it out, as a relative change means nothing for it",
        )
    now = [xp.reshape(each, (*times, -1)) for each in weights]
    start = [xp.reshape(each, (-1,)) for each in initial]
    layers = [_moved(*each) for each in zip(now, start, strict=True)]
    changes, cosines = (xp.stack([each[i] for each in layers], axis=-1) for i in (1, 2))
    distance, change, cosine = _moved(xp.concat(now, axis=-1), xp.concat(start, axis=-1))
    prefix = ("time",) * len(times)
    return {
        "relative_change": ((*prefix, "layer"), changes),
        "start_cosine": ((*prefix, "layer"), cosines),
        "parameter_distance": (prefix, distance),
        "relative_parameter_distance": (prefix, change),
        "parameter_cosine": (prefix, cosine),
    }


def imbalance(weights: Sequence[Any]) -> _Variables:
    """How far consecutive layers are from balanced, D_ℓ = W_ℓᵀ W_ℓ − W_{ℓ+1} W_{ℓ+1}ᵀ.

    Gradient flow of a linear network conserves each D_ℓ, that of a ReLU network without biases its diagonal, whatever
    the data; steps of a learning rate η move them by O(η) in a given time.

    Cost: 4 a h² operations for each pair of layers (a, h), (h, a), and memory for 2h² numbers, at each time.

    Args:
        weights: W_1 … W_L, L ≥ 2, as for `layer_alignment`.

    Returns:
        Name → (dimension names, values). Over `layer` 1 … L−1, and `time` in front where the weights have it:
        `imbalance` ‖D_ℓ‖_F; `relative_imbalance`, that over ‖W_ℓ‖² + ‖W_{ℓ+1}‖² (zero where both vanish), from 0 for
        balanced layers to 1; `balance` λ = −tr D_ℓ/h, positive where the later layer is the larger; and `unevenness`
        ‖D_ℓ + λI‖_F, zero for λ-balanced layers.

    Raises:
        InputError: As `layer_alignment`.

    References:
        Du, Hu & Lee, Algorithmic regularization in learning deep homogeneous models, arXiv:1806.00900; Dominé et al.,
        From Lazy to Rich, arXiv:2409.14623, for λ-balanced layers.

    Example:
        >>> import numpy as np
        >>> found = imbalance([np.eye(2), 2 * np.eye(2)])
        >>> found["balance"][1], found["unevenness"][1], found["imbalance"][1].round(3)
        (array([3.]), array([0.]), array([4.243]))
    """
    xp, time = _check_chain(weights, least=2)
    found: dict[str, list[Any]] = {name: [] for name in ("imbalance", "relative_imbalance", "balance", "unevenness")}
    for one, other in itertools.pairwise(weights):
        # Divided by the largest entry of the two, as the square of a small number may vanish.
        largest = xp.maximum(_largest(one, (-2, -1)), _largest(other, (-2, -1)))
        a, b = one / largest, other / largest
        difference = xp.matrix_transpose(a) @ a - b @ xp.matrix_transpose(b)
        h = difference.shape[-1]
        unit = xp.sum(b**2, axis=(-2, -1)) - xp.sum(a**2, axis=(-2, -1))
        total = xp.sum(b**2, axis=(-2, -1)) + xp.sum(a**2, axis=(-2, -1))
        identity = xp.astype(_order(difference)[:, None] == _order(difference), difference.dtype)
        norm, square = _norm(difference), largest[..., 0, 0] ** 2
        found["imbalance"].append(square * norm)
        found["relative_imbalance"].append(_over(norm, total))
        found["balance"].append(square * unit / h)
        found["unevenness"].append(square * _norm(difference + identity * (unit / h)[..., None, None]))
    return {name: ((*time, "layer"), xp.stack(values, axis=-1)) for name, values in found.items()}


def _check_chain(weights: Sequence[Any], *, least: int) -> tuple[Any, tuple[str, ...]]:
    """The library and the time dimension, if any, of matrices of which each takes what the one before gives."""
    require(
        len(weights) >= least,
        f"there are {len(weights)} layers",
        argument="weights",
        value=len(weights),
        remedy=f"give a sequence of at least {least}",
    )
    xp = array_namespace(*weights)
    shapes = [tuple(each.shape) for each in weights]
    fits = all(len(shape) in (2, 3) and min(shape) > 0 for shape in shapes) and all(
        one[:-2] == other[:-2] and one[-1] == other[-2] for one, other in itertools.pairwise(shapes)
    )
    require(
        fits,
        f"layers of shapes {', '.join(map(str, shapes))} do not follow each other",
        argument="weights",
        value=shapes,
        remedy="give matrices that act as x @ W, all with one time axis in front or all without",
    )
    for each in weights:
        _check_real("weights", each)
    return xp, ("time",) * (len(shapes[0]) - 2)


def _check_real(name: str, values: Any) -> None:
    xp = array_namespace(values)
    require(
        xp.isdtype(values.dtype, "real floating"),
        f"{name} has values of type {values.dtype}",
        argument=name,
        value=str(values.dtype),
        remedy="pass floating-point numbers",
    )
    require(
        holds(xp.all(xp.isfinite(values))),
        f"{name} has values that are not finite",
        argument=name,
        remedy="drop or fill them first",
    )


def _top(matrix: Any) -> tuple[Any, Any, Any]:
    """The top left and right singular vectors, zero for a matrix that is zero, and the gap 1 − s₂/s₁ to the next."""
    xp = array_namespace(matrix)
    left, sizes, right = xp.linalg.svd(matrix, full_matrices=False)
    first = sizes[..., 0]
    there = xp.astype(first > 0, matrix.dtype)[..., None]
    second = sizes[..., 1] if sizes.shape[-1] > 1 else xp.zeros_like(first)
    return left[..., :, 0] * there, right[..., 0, :] * there, _over(first - second, first)


def _overlap(one: Any, other: Any) -> Any:
    """|⟨·|·⟩| of unit vectors."""
    xp = array_namespace(one)
    return _clipped(xp.abs(xp.sum(one * other, axis=-1)))


def _moved(now: Any, start: Any) -> tuple[Any, Any, Any]:
    """Distance and relative distance of vectors from one, and the cosine."""
    xp = array_namespace(now)
    distance, size = _vector_norm(now - start), _vector_norm(now)
    cosine = _clipped(1 - xp.sum((_unit_vector(now) - _unit_vector(start)) ** 2, axis=-1) / 2)
    return distance, distance / _vector_norm(start), xp.where(size > 0, cosine, xp.zeros_like(cosine))


def _vector_norm(vectors: Any) -> Any:
    """Euclidean norms, without squaring numbers that are too small or too large for it."""
    xp = array_namespace(vectors)
    largest = _largest(vectors, -1)
    return largest[..., 0] * xp.sqrt(xp.sum((vectors / largest) ** 2, axis=-1))


def _unit_vector(vectors: Any) -> Any:
    """Vectors of length one in the same directions, and zero for zero."""
    xp = array_namespace(vectors)
    scaled = vectors / _largest(vectors, -1)
    size = xp.sqrt(xp.sum(scaled**2, axis=-1, keepdims=True))
    return scaled / xp.where(size > 0, size, xp.ones_like(size))


def _norm(matrices: Any) -> Any:
    xp = array_namespace(matrices)
    return xp.sqrt(xp.sum(matrices**2, axis=(-2, -1)))


def _largest(values: Any, axis: int | tuple[int, ...]) -> Any:
    """The largest size along the axes, which are kept, and one where all are zero: to divide by."""
    xp = array_namespace(values)
    largest = xp.max(xp.abs(values), axis=axis, keepdims=True)
    return xp.where(largest > 0, largest, xp.ones_like(largest))


def _order(matrix: Any) -> Any:
    """0, 1, 2, … on the device of the matrix."""
    xp = array_namespace(matrix)
    return xp.cumulative_sum(xp.ones_like(matrix[(0,) * (len(matrix.shape) - 1)]), axis=0)


def _over(value: Any, total: Any) -> Any:
    """The ratio, and zero for 0/0."""
    xp = array_namespace(total)
    return xp.where(total > 0, value / xp.where(total > 0, total, xp.ones_like(total)), xp.zeros_like(total))


def _clipped(cosine: Any) -> Any:
    xp = array_namespace(cosine)
    return xp.minimum(xp.maximum(cosine, -xp.ones_like(cosine)), xp.ones_like(cosine))
