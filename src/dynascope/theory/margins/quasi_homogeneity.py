"""Growth rates of the parameters of a quasi-homogeneous network, found numerically from its Euler identity."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from annotated_types import Interval, IsFinite
from jaxtyping import Float

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.results.named_tuples import short_repr
from dynascope.symmetry.parameters import Model, Point, points, read
from dynascope.theory.domain import covers
from dynascope.theory.margins.balanced_rates import balanced_rates
from dynascope.validation import checked, require, require_array
from dynascope.validation.bounded import Seed

__all__ = ["QuasiHomogeneity", "quasi_homogeneity"]

_Grain = Literal["element", "array"]

_MOST = 400  # largest number of unknowns; the time grows as its cube
_MORE, _SPARE = 1.3, 24  # number of equations: _MORE times the number of unknowns, plus _SPARE
_RANK = 1e-9  # relative singular values up to which they count as zero


@checked
@dataclasses.dataclass(frozen=True, eq=False)
class QuasiHomogeneity:
    """Growth rates Λ of a quasi-homogeneous network: f(x; exp(αΛ)θ) = exp(α) f(x; θ).

    Attributes:
        rates: λ of each parameter, keyed by its path in the tree; selected by the charges that gradient flow conserves.
        minimum_norm: Solution of the Euler identity with the smallest Σ λ², keyed by path; some rates may be negative.
        vector: `rates` as a flat array in the order of the paths, as `normalised_margin` expects it.
        generators: Rescaling symmetries, the directions in which the rates are not determined, shape (generators,
            unknowns); the unknowns are the elements, or the arrays if `per` is "array".
        per: "element", or "array" if each array has one rate.
        residual: Relative violation of the Euler identity at new points.
    """

    rates: dict[str, np.ndarray]
    minimum_norm: dict[str, np.ndarray]
    vector: Float[np.ndarray, " elements"]
    generators: IsFinite[Float[np.ndarray, "generators unknowns"]]
    per: _Grain
    residual: float

    __repr__ = short_repr

    @property
    def largest(self) -> float:
        """λ_max, the rate of the parameters that the max-margin problem penalises."""
        return float(self.vector.max())

    def flatten(self, params: Any) -> np.ndarray:
        """Flatten the parameters into one array, in the order of `vector`.

        Args:
            params: A tree with the same structure as the parameters of the network.

        Raises:
            InputError: If the tree has a different structure.
        """
        named = {
            jax.tree_util.keystr(path): np.asarray(leaf, np.float64)
            for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]
            if isinstance(leaf, np.ndarray | jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)
        }
        shapes = {path: each.shape for path, each in self.rates.items()}
        require(
            {path: each.shape for path, each in named.items()} == shapes,
            "params does not contain the arrays of the network",
            argument="params",
            value=list(named),
            remedy=f"give arrays with the names and shapes {shapes}",
        )
        return np.concatenate([named[path].ravel() for path in self.rates])


@covers(
    network="any JAX network",
    data="any",
    start="any",
    gives="the rates at which the parameters grow with the margin",
    reference="arXiv:2210.03820",
)
def quasi_homogeneity(
    apply: Callable[[Any, Any], Any],
    params: Any,
    example_inputs: Any,
    *,
    discarded: Sequence[str] = (),
    per: _Grain | None = None,
    tolerance: Annotated[float, Interval(gt=0, lt=1)] = 1e-6,
    seed: Seed = 0,
) -> QuasiHomogeneity:
    """Compute the growth rates of the parameters of a quasi-homogeneous network.

        λ ≥ 0 with Σ λ_i θ_i ∂f/∂θ_i = f for all outputs, inputs and parameters

    The function solves a linear least-squares problem for λ, with gradients at random points. Rescaling symmetries
    leave the solution undetermined; `minimum_norm` is the solution with the smallest Σ λ². Gradient flow conserves a
    charge for each symmetry and realises the solution of `balanced_rates`. In this solution, the factors of a product
    have equal rates, weights followed by a normalisation layer have rate zero, and a bias has the rate of the signal to
    which it is added. Rates exist for ReLU networks with biases, residual blocks and normalisation layers. They do not
    exist for networks with an added constant, or with ε > 0 in a normalisation layer inside a residual block. If the
    readout follows tanh or a normalisation layer (over features or over the batch), only the readout grows, and all
    layers below have rate zero. Batch normalisation must use the moments of the batch, as in training; stored moments
    are constants and define a different function of the weights, with different rates.

    Args:
        apply: Function (params, inputs) → outputs f, which are logits, not probabilities; for an equinox module,
            `lambda module, x: jax.vmap(module)(x)`.
        params: A tree; its floating-point arrays are the parameters.
        example_inputs: Inputs for `apply`, any number of samples.
        discarded: Paths of parameters whose share of the margin vanishes, such as biases that are not needed for the
            margin; the other rates are balanced without them.
        per: "element" for one rate per element, up to 400 elements; "array" for one rate per array; None for "element"
            if possible.
        tolerance: Largest relative residual at which the identity holds, between 0 and 1.
        seed: Seed of the random points, from zero.

    Raises:
        InputError: If the network is not quasi-homogeneous, `apply` cannot be called, a path does not exist, there are
            too many elements, or a number is out of range.

    References:
        Kunin, Yamamura, Ma, Ganguli, arXiv:2210.03820, definition 3.1 and lemma 3.1.

    Example:
        >>> params = {"a": np.ones(1), "u": np.ones(1), "v": np.ones(1)}
        >>> f = lambda p, x: x[:, 0] * p["a"] + x[:, 1] * p["u"] * p["v"]
        >>> found = quasi_homogeneity(f, params, np.ones((5, 2)))
        >>> {path: each.round(6).tolist() for path, each in found.rates.items()}
        {"['a']": [1.0], "['u']": [0.5], "['v']": [0.5]}
    """
    if isinstance(example_inputs, list) and all(
        isinstance(each, int | float) for each in jax.tree.leaves(example_inputs)
    ):
        example_inputs = require_array("example_inputs", example_inputs, (...,))
    model, point = read(apply, params, example_inputs)
    sizes = [each.size for each in point[0]]
    kind = per or ("element" if sum(sizes) <= _MOST else "array")
    require(
        kind == "array" or sum(sizes) <= _MOST,
        f"params has {sum(sizes)} elements, but rates per element are limited to {_MOST}",
        argument="per",
        value=per,
        remedy='use per="array", or a smaller network of the same architecture',
    )
    owners = np.repeat(np.arange(len(sizes)), sizes)  # index of the array of each element
    count = len(sizes) if kind == "array" else sum(sizes)
    equation_count = int(_MORE * count) + _SPARE
    equations = _equations(model, points(model, point, 2 * equation_count, seed), equation_count, seed, owners, kind)
    solution, generators = _solve(*equations, max(_RANK, 0.1 * tolerance))
    others = points(model, point, 2 * _SPARE, seed + 1)
    residual = _residual(solution, *_equations(model, others, _SPARE, seed + 1, owners, kind))
    most = "" if kind == "element" else ' with one rate for each array; per="element" allows more'
    require(
        residual <= tolerance and bool(np.abs(solution).max() > 0),
        f"the Euler identity fails by {residual:.1e} of the output, so the network is not quasi-homogeneous{most}",
        argument="apply",
        value=residual,
        remedy="return logits, and add no constants that are not parameters",
    )
    for each in discarded:
        require(
            each in model.paths,
            f"discarded contains {each!r}",
            argument="discarded",
            value=each,
            remedy=f"choose from {', '.join(model.paths)}",
        )
    slow = np.isin(np.array(model.paths), list(discarded))
    slow = np.flatnonzero(slow if kind == "array" else slow[owners])
    try:
        rates = balanced_rates(solution, generators, discarded=slow.tolist())
    except InputError as error:
        raise InputError(
            "the network is not quasi-homogeneous, because some growth rates would be negative",
            argument="apply",
            value=float(solution.min()),
            remedy="avoid terms that decrease as parameters grow, such as quotients, and set ε to 0 in normalisation "
            "layers",
        ) from error
    if kind == "array":
        rates, solution = rates[owners], solution[owners]
    return QuasiHomogeneity(
        _by_path(model, point, rates), _by_path(model, point, solution), rates, generators, kind, residual
    )


def _equations(
    model: Model, given: list[Point], count: int, seed: int, owners: np.ndarray, kind: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return θ_i ∂(r·f)/∂θ_i and r·f at `count` of the points, for Gaussian r, with rows of norm one."""
    random = np.random.default_rng(seed)
    rows, outputs = [], []
    with jax.enable_x64(True):
        size = jax.eval_shape(model.outputs, *given[0]).shape
        for point in given:
            value, gradient = _euler(model, *point, random.normal(size=size))
            row = np.concatenate([np.ravel(np.asarray(each)) for each in gradient])
            # The normalisation of a unit that is inactive on the whole batch divides by zero.
            if not (np.isfinite(row).all() and np.isfinite(value)):
                continue
            rows.append(np.bincount(owners, row) if kind == "array" else row)
            outputs.append(float(value))
            if len(rows) == count:
                break
    require(
        len(rows) == count,
        f"outputs or gradients of apply are finite at only {len(rows)} of {len(given)} random points",
        argument="example_inputs",
        value=len(rows),
        remedy="give inputs of order one with finite outputs, and more inputs if the network normalises over the batch",
    )
    found, right = np.array(rows), np.array(outputs)
    scale = np.maximum(np.linalg.norm(found, axis=1), np.finfo(float).tiny)
    return found / scale[:, None], right / scale


@functools.partial(jit, static_argnums=0)
def _euler(model: Model, parameters: Any, frozen: Any, inputs: Any, weights: Any) -> Any:
    value, slopes = jax.value_and_grad(lambda each: jnp.vdot(weights, model.outputs(each, frozen, inputs)))(parameters)
    return value, jax.tree.map(jnp.multiply, parameters, slopes)


def _solve(rows: np.ndarray, outputs: np.ndarray, rank: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum-norm solution and a basis of the null space."""
    left, values, right = np.linalg.svd(rows, full_matrices=False)
    kept = values > rank * max(values[0], np.finfo(float).tiny)
    solution = right[kept].T @ ((left[:, kept].T @ outputs) / values[kept])
    return solution, right[~kept]


def _residual(solution: np.ndarray, rows: np.ndarray, outputs: np.ndarray) -> float:
    sizes = np.maximum(np.abs(outputs), np.sqrt(np.mean(outputs**2)))
    return float(np.max(np.abs(rows @ solution - outputs) / np.maximum(sizes, np.finfo(float).tiny)))


def _by_path(model: Model, point: Point, values: np.ndarray) -> dict[str, np.ndarray]:
    ends = np.cumsum([each.size for each in point[0]])
    parts = np.split(values, ends[:-1])
    return {path: part.reshape(each.shape) for path, part, each in zip(model.paths, parts, point[0], strict=True)}
