"""The parameters of a function, and the random points at which symmetries are verified."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.validation import is_traced, require, require_finite_values, require_jax_arrays, shown, shown_error

__all__ = ["Model", "Point", "arrays_by_path", "outputs", "points", "projected_gradients", "read", "require_finite"]

_SPREAD = 0.5  # relative spread of parameters that all have one sign, e.g. variances
_WIDTH = 2.0  # width of random inputs relative to the examples, so that every activation pattern occurs

# Parameters, frozen arrays, and the leaves of the inputs.
Point = tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]


@dataclasses.dataclass(frozen=True)
class Model:
    """The static part of a compiled function: everything except arrays.

    Attributes:
        apply: (params, inputs) → outputs.
        structure: The tree structure of the parameters.
        places: For each leaf: ("parameter" or "frozen", the index of the leaf in the list), or ("constant", the leaf
            itself).
        inputs: The tree structure of the inputs.
        paths: The path of each parameter in the tree.
        size: Number of real outputs.
    """

    apply: Callable[[Any, Any], Any]
    structure: Any
    places: tuple[tuple[str, Any], ...]
    inputs: Any
    paths: tuple[str, ...]
    size: int = 0

    def outputs(self, parameters: Any, frozen: Any, inputs: Any) -> jax.Array:
        """Compute all real outputs for the inputs, flattened into one array."""
        found = self.apply(self.tree(parameters, frozen), jax.tree.unflatten(self.inputs, inputs))
        real = [jnp.ravel(each) for each in jax.tree.leaves(found) if _is_real(each)]
        return jnp.concatenate(real) if real else jnp.zeros(0)

    def tree(self, parameters: Any, frozen: Any) -> Any:
        """Rebuild the parameter tree that `apply` receives."""
        arrays: dict[str, Any] = {"parameter": parameters, "frozen": frozen}
        leaves = [place if kind == "constant" else arrays[kind][place] for kind, place in self.places]
        return jax.tree.unflatten(self.structure, leaves)


def read(apply: Callable[[Any, Any], Any], params: Any, example_inputs: Any) -> tuple[Model, Point]:
    """Return the model and the given point in 64 bits; raise `InputError` if the function cannot be called there."""
    require(callable(apply), f"apply is {shown(apply)}", argument="apply", remedy="give a function of (params, inputs)")
    require_jax_arrays(params=params, example_inputs=example_inputs)
    named, structure = jax.tree_util.tree_flatten_with_path(params)
    places: list[tuple[str, Any]] = []
    parameters, frozen, paths = [], [], []
    for path, leaf in named:
        if not isinstance(leaf, np.ndarray | jax.Array):
            places.append(("constant", leaf))
            continue
        _require_number("params", leaf)
        kept = parameters if jnp.issubdtype(leaf.dtype, jnp.floating) else frozen
        places.append(("parameter" if kept is parameters else "frozen", len(kept)))
        kept.append(_wide(leaf))
        if kept is parameters:
            require_finite_values("params", kept[-1])
            paths.append(jax.tree_util.keystr(path))
    require(
        sum(each.size for each in parameters) > 0,
        "params contains no floating-point arrays",
        argument="params",
        value=len(named),
        remedy="give the parameter tree that apply takes as its first argument",
    )
    leaves, inputs = jax.tree.flatten(example_inputs)
    for leaf in leaves:
        _require_number("example_inputs", leaf)
        array = np.asarray(leaf) if isinstance(leaf, np.ndarray | np.generic | jax.Array | bool | int | float) else None
        require(
            array is not None
            and (array.dtype.kind in "iufb" or jnp.issubdtype(array.dtype, jnp.inexact))
            and array.size > 0,
            f"example_inputs contains {shown(leaf)}",
            argument="example_inputs",
            value=type(leaf).__name__,
            remedy="give arrays in the format that apply accepts",
        )
        require_finite_values("example_inputs", _wide(np.asarray(leaf)))
    model = Model(apply, structure, tuple(places), inputs, tuple(paths))
    point = tuple(parameters), tuple(frozen), tuple(_wide(np.asarray(leaf)) for leaf in leaves)
    return dataclasses.replace(model, size=_require_answers(model, point)), point


def points(model: Model, point: Point, count: int, seed: int) -> list[Point]:
    """Draw random points around the given one, with generic parameters and widely distributed inputs."""
    random = np.random.default_rng(seed)
    parameters, frozen, inputs = point
    generic, drawn = list(map(_generic, parameters)), list(map(_drawn, inputs))
    return [
        (tuple(draw(random) for draw in generic), frozen, tuple(draw(random) for draw in drawn)) for _ in range(count)
    ]


def projected_gradients(model: Model, given: list[Point], seed: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield the gradient of r·f at each point, with Gaussian r, so that no particular loss is assumed."""
    random = np.random.default_rng(seed)
    with jax.enable_x64(True):
        for point in given:
            found = tuple(np.asarray(each) for each in _gradient(model, *point, random.normal(size=model.size)))
            require_finite(*found)
            yield found


def require_finite(*arrays: np.ndarray) -> None:
    """Raise `InputError` if any value of the function near the given point is not finite."""
    require(
        all(np.isfinite(each).all() for each in arrays),
        "outputs or gradients of apply are not finite at random points",
        argument="example_inputs",
        remedy="give parameters and inputs of order one, near which the function is finite",
    )


def outputs(model: Model, point: Point) -> np.ndarray:
    """Compute all outputs at a point in 64 bits."""
    with jax.enable_x64(True):
        found = np.asarray(_outputs(model, *point))
    require_finite(found)
    return found


def arrays_by_path(tree: Any) -> dict[str, Any]:
    """Return the arrays of a tree as a dictionary from paths to arrays."""
    found, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {
        jax.tree_util.keystr(path): leaf
        for path, leaf in found
        if isinstance(leaf, np.ndarray | jax.Array | jax.ShapeDtypeStruct)
    }


@functools.partial(jit, static_argnums=0)
def _outputs(model: Model, parameters: Any, frozen: Any, inputs: Any) -> Any:
    return model.outputs(parameters, frozen, inputs)


@functools.partial(jit, static_argnums=0)
def _gradient(model: Model, parameters: Any, frozen: Any, inputs: Any, weights: Any) -> Any:
    return jax.grad(lambda each: jnp.vdot(weights, model.outputs(each, frozen, inputs)))(parameters)


def _require_answers(model: Model, point: Point) -> int:
    """Return the number of outputs, after checking that the function can be called and differentiated at the point."""
    try:
        hash(model)
    except TypeError:
        raise InputError(
            "apply, or a leaf of params that is not an array, cannot be hashed",
            argument="apply",
            value=type(model.apply).__name__,
            remedy="give a plain function of (params, inputs) and the module as params",
        ) from None
    try:
        with jax.enable_x64(True):
            size = jax.eval_shape(model.outputs, *point).size
    except Exception as error:  # a user's function can raise anything
        raise InputError(
            f"apply(params, example_inputs) fails ({type(error).__name__}: {shown_error(error)})",
            argument="apply",
            value=type(model.apply).__name__,
            remedy="give a JAX function, and parameters and inputs that it accepts",
        ) from None
    require(
        size > 0,
        "apply has no floating-point outputs",
        argument="apply",
        value=type(model.apply).__name__,
        remedy="give a function that returns the outputs from which the loss is computed",
    )
    try:
        with jax.enable_x64(True):
            jax.eval_shape(jax.grad(lambda each: model.outputs(each, *point[1:]).sum()), point[0])
    except Exception as error:  # for example a loop of unknown length
        raise InputError(
            f"the gradient of apply fails ({type(error).__name__}: {shown_error(error)})",
            argument="apply",
            value=type(model.apply).__name__,
            remedy="give a function that jax.grad can differentiate",
        ) from None
    return size


def _require_number(name: str, leaf: Any) -> None:
    require(
        not is_traced(leaf),
        f"{name} is traced by JAX",
        argument=name,
        value=type(leaf).__name__,
        remedy="call this function outside jit, vmap and grad",
    )
    require(
        not jnp.issubdtype(getattr(leaf, "dtype", np.dtype(float)), jnp.complexfloating),
        f"an array of {name} is complex",
        argument=name,
        value=str(getattr(leaf, "dtype", "")),
        remedy="give its real and imaginary parts as two arrays",
    )


def _generic(array: np.ndarray) -> Callable[[np.random.Generator], np.ndarray]:
    """Return a sampler of arrays of the same size and sign as the given array.

    The size has a lower bound, because the function is nearly linear in small parameters.
    """
    size = float(np.sqrt(np.mean(array**2))) if array.size else 0.0
    size = max(size, max(array.shape) ** -0.5 if array.ndim > 1 else 0.3)
    sign = 1 if np.all(array > 0) else -1 if np.all(array < 0) else 0
    if sign:
        return lambda random: np.asarray(sign * size * (1 + _SPREAD * random.uniform(-1, 1, array.shape)))
    return lambda random: np.asarray(size * random.normal(size=array.shape))


def _drawn(array: np.ndarray) -> Callable[[np.random.Generator], np.ndarray]:
    """Return a sampler of widely distributed inputs of the same kind."""
    if array.dtype.kind != "f":
        return lambda random: np.asarray(random.choice(array.ravel(), size=array.shape))
    size = max(float(array.std()), float(np.abs(array).mean())) or 1.0
    return lambda random: np.asarray(_WIDTH * size * random.normal(size=array.shape))


def _wide(leaf: Any) -> np.ndarray:
    array = np.asarray(leaf)
    return array.astype(np.float64) if jnp.issubdtype(array.dtype, jnp.floating) else array


def _is_real(value: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(value), jnp.floating)
