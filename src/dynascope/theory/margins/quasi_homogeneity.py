"""At which rates the parameters of a network must grow for its outputs to grow by one factor, found numerically."""

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

_MOST = 400  # unknowns; the time goes with their cube
_MORE, _SPARE = 1.3, 24  # so many times the unknowns, and so many more, are the equations
_RANK = 1e-9  # singular values over the largest that are rounding


@checked
@dataclasses.dataclass(frozen=True, eq=False)
class QuasiHomogeneity:
    """The rates Λ of a network: f(x; exp(αΛ)θ) = exp(α) f(x; θ).

    Attributes:
        rates: λ of each parameter under which gradient flow keeps its charges, by its path in the tree.
        minimum_norm: The rates of the least Σ λ², which also solve the Euler identity, by path; some may be negative.
        vector: `rates` in a row, in the order of the paths, as `normalised_margin` takes them.
        generators: Directions in which the rates can change, of symmetries that rescale parameters, over the elements,
            or over the arrays where these have one rate each, shape (generators, unknowns).
        per: "element", or "array" where each array has one rate.
        residual: By how much the Euler identity fails at new points, relative.
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
        """λ_max, that of the parameters which the max-margin problem penalises."""
        return float(self.vector.max())

    def flatten(self, params: Any) -> np.ndarray:
        """The parameters in a row, in the order of `vector`.

        Args:
            params: A tree like that of the network.

        Raises:
            InputError: Another tree.
        """
        named = {
            jax.tree_util.keystr(path): np.asarray(leaf, np.float64)
            for path, leaf in jax.tree_util.tree_flatten_with_path(params)[0]
            if isinstance(leaf, np.ndarray | jax.Array) and jnp.issubdtype(leaf.dtype, jnp.floating)
        }
        shapes = {path: each.shape for path, each in self.rates.items()}
        require(
            {path: each.shape for path, each in named.items()} == shapes,
            "params has other arrays than the network",
            argument="params",
            value=list(named),
            remedy=f"give arrays of these names and shapes: {shapes}",
        )
        return np.concatenate([named[path].ravel() for path in self.rates])


@covers(
    network="any of JAX",
    data="any",
    start="any",
    gives="the rates at which parameters grow along the margin",
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
    """The rates λ ≥ 0 with Σ λ_i θ_i ∂f/∂θ_i = f for all outputs, inputs and parameters; or why there are none.

    Gradients at random points are equations for λ, which least squares solve. Symmetries that rescale parameters leave
    the solution open. Of these the least Σ λ² is `minimum_norm`; but gradient flow conserves a charge for each, and has
    the one of `balanced_rates`: equal rates in a product, zero for weights before a normalisation, and a bias the rate
    that the signal has where it is added. Networks of ReLU with biases, residual blocks and normalisation have rates;
    with a fixed number added, or a normalisation with ε inside a residual block, they have none. Where a readout stands
    upon tanh, or upon a normalisation over features or over the batch, it grows alone, and what is below has rate zero.
    Batch normalisation counts as it is in training, by the moments of the batch: those kept from training are constants
    that make another function of the same weights, with other rates.

    Args:
        apply: (params, inputs) → outputs f, logits and not probabilities; of an equinox module with
            `lambda module, x: jax.vmap(module)(x)`.
        params: A tree; its arrays of floating-point numbers are the parameters.
        example_inputs: Inputs as `apply` takes them, of any number.
        discarded: Paths of parameters whose share of the margin vanishes, such as biases that it does not need: the
            others are balanced without them.
        per: "element" for a rate of each number, up to 400 of them; "array" for one of each array; None for the first
            where it can be.
        tolerance: Up to which relative residual the identity is taken to hold, between 0 and 1.
        seed: Seed of the random points, from zero.

    Raises:
        InputError: The network is not quasi-homogeneous, `apply` cannot be called, no such path, too many elements,
            or a number out of range.

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
        f"params has {sum(sizes)} numbers, and {_MOST} are the most for a rate of each",
        argument="per",
        value=per,
        remedy='choose "array", or give a smaller network of the same kind',
    )
    owners = np.repeat(np.arange(len(sizes)), sizes)  # the array of each element
    count = len(sizes) if kind == "array" else sum(sizes)
    widest = int(_MORE * count) + _SPARE
    equations = _equations(model, points(model, point, 2 * widest, seed), widest, seed, owners, kind)
    solution, generators = _solved(*equations, max(_RANK, 0.1 * tolerance))
    others = points(model, point, 2 * _SPARE, seed + 1)
    residual = _residual(solution, *_equations(model, others, _SPARE, seed + 1, owners, kind))
    most = "" if kind == "element" else ' with one rate for each array; per="element" allows more'
    require(
        residual <= tolerance and bool(np.abs(solution).max() > 0),
        f"the network is not quasi-homogeneous{most}: the Euler identity fails by {residual:.1e} of the output",
        argument="apply",
        value=residual,
        remedy="give logits, of a network to which nothing is added that has no parameters",
    )
    for each in discarded:
        require(
            each in model.paths,
            f"discarded holds {each!r}",
            argument="discarded",
            value=each,
            remedy=f"choose from {', '.join(model.paths)}",
        )
    behind = np.isin(np.array(model.paths), list(discarded))
    behind = np.flatnonzero(behind if kind == "array" else behind[owners])
    try:
        rates = balanced_rates(solution, generators, discarded=behind.tolist())
    except InputError as error:
        raise InputError(
            "the network is not quasi-homogeneous: some rates would be negative",
            argument="apply",
            value=float(solution.min()),
            remedy="leave out what falls as parameters grow, as divisions do, and set the ε of normalisations to 0",
        ) from error
    if kind == "array":
        rates, solution = rates[owners], solution[owners]
    return QuasiHomogeneity(
        _by_path(model, point, rates), _by_path(model, point, solution), rates, generators, kind, residual
    )


def _equations(
    model: Model, given: list[Point], count: int, seed: int, owners: np.ndarray, kind: str
) -> tuple[np.ndarray, np.ndarray]:
    """θ_i ∂(r·f)/∂θ_i and r·f at so many of the points, with Gaussian r, over a common size."""
    random = np.random.default_rng(seed)
    rows, outputs = [], []
    with jax.enable_x64(True):
        size = jax.eval_shape(model.outputs, *given[0]).shape
        for point in given:
            value, gradient = _euler(model, *point, random.normal(size=size))
            row = np.concatenate([np.ravel(np.asarray(each)) for each in gradient])
            # A unit that is off for the whole batch has no spread by which its normalisation could divide.
            if not (np.isfinite(row).all() and np.isfinite(value)):
                continue
            rows.append(np.bincount(owners, row) if kind == "array" else row)
            outputs.append(float(value))
            if len(rows) == count:
                break
    require(
        len(rows) == count,
        f"outputs or gradients of apply are finite at {len(rows)} of {len(given)} random points",
        argument="example_inputs",
        value=len(rows),
        remedy="give inputs of order one about which they are finite, and many where they are normalised over a batch",
    )
    found, right = np.array(rows), np.array(outputs)
    scale = np.maximum(np.linalg.norm(found, axis=1), np.finfo(float).tiny)
    return found / scale[:, None], right / scale


@functools.partial(jit, static_argnums=0)
def _euler(model: Model, parameters: Any, frozen: Any, inputs: Any, weights: Any) -> Any:
    value, slopes = jax.value_and_grad(lambda each: jnp.vdot(weights, model.outputs(each, frozen, inputs)))(parameters)
    return value, jax.tree.map(jnp.multiply, parameters, slopes)


def _solved(rows: np.ndarray, outputs: np.ndarray, rank: float) -> tuple[np.ndarray, np.ndarray]:
    """The solution of the least norm, and what can be added to it."""
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
