"""SOAP: Adam in the eigenbasis of Shampoo."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from annotated_types import Interval

from dynascope.errors import InputError
from dynascope.training.energy import rate_of
from dynascope.validation import checked
from dynascope.validation.bounded_scalars import NonNegativeFloat, PositiveFloat, PositiveInt

__all__ = ["SOAPState", "soap"]

_Decay = Annotated[float, Interval(ge=0, lt=1)]


class ArrayStatistics(NamedTuple):
    """Running statistics of the gradients of one array.

    Attributes:
        mean: M, the running mean of the gradients.
        squares: V, the running mean of the squared gradients in the eigenbasis.
        moments: The running second moment of the gradients along each axis; None for axes that are not preconditioned.
        bases: The eigenvectors of each second moment, as columns.
    """

    mean: Any
    squares: Any
    moments: tuple[Any, ...]
    bases: tuple[Any, ...]


class SOAPState(NamedTuple):
    """State of `soap`.

    Attributes:
        count: Number of completed calls; the first call only initialises the statistics.
        arrays: A tree with the structure of the parameters, with `ArrayStatistics` in place of arrays.
    """

    count: Any
    arrays: Any


@checked
def soap(
    learning_rate: Any = 3e-3,
    *,
    b1: _Decay = 0.95,
    b2: _Decay = 0.95,
    moment_decay: _Decay = 0.95,
    eps: PositiveFloat = 1e-8,
    weight_decay: NonNegativeFloat = 0.01,
    every: PositiveInt = 10,
    largest: PositiveInt = 10_000,
    basis: Literal["qr", "eigh"] = "qr",
) -> optax.GradientTransformation:
    """SOAP, Adam in the slowly changing eigenbasis of the gradients' second moments, as an optax transformation.

    For a matrix W with the gradient G and β = `moment_decay`, the second moments

        L ← β L + (1 − β) G Gᵀ,   R ← β R + (1 − β) GᵀG

    have the eigenvectors Q_L and Q_R, which are recomputed after every few steps. Step k is

        M ← β₁ M + (1 − β₁) G,   V ← β₂ V + (1 − β₂) (Q_LᵀGQ_R)²,
        W ← W − η √(1 − β₂ᵏ)/(1 − β₁ᵏ) Q_L [Q_LᵀMQ_R/(√V + ε)] Q_Rᵀ,

    followed by W ← (1 − ηλ) W. The moments are updated after the step, and the first call only initialises them. Arrays
    with more axes have one moment per axis. Vectors and numbers are updated by Adam.

    If the moments are not degenerate, the steps commute with rotations of the rows or columns of a matrix. If the
    moments have a null space, as in the first steps or for gradients of low rank, the basis of this space is arbitrary,
    and the steps do not commute with rotations.

    Args:
        learning_rate: η > 0, or a JAX function of the number of completed calls.
        b1: β₁ of M.
        b2: β₂ of V.
        moment_decay: β of the second moments.
        eps: ε.
        weight_decay: λ of the decoupled decay.
        every: Number of steps between updates of the eigenvectors.
        largest: Longest axis that is preconditioned.
        basis: "qr" for one step of orthogonal iteration per update, as in the reference code; "eigh" for exact
            eigenvectors.

    Returns:
        An optax transformation with a `SOAPState`. Its `update` requires the parameters.

    Raises:
        InputError: If an argument is outside its domain.

    References:
        N. Vyas et al., SOAP: Improving and Stabilizing Shampoo using Adam, arXiv:2409.11321.

    Example:
        >>> import jax
        >>> def step(carry, _):
        ...     params, state = carry
        ...     loss, gradient = jax.value_and_grad(lambda w: ((w - 1) ** 2).sum())(params)
        ...     updates, state = descent.update(gradient, state, params)
        ...     return (params + updates, state), loss
        >>> descent, params = soap(0.1), jnp.array([[2.0, 0.0], [0.5, 3.0]])
        >>> losses = jax.lax.scan(step, (params, descent.init(params)), None, length=100)[1]
        >>> bool(losses[-1] < 0.01 * losses[0])
        True
    """

    def initial(params: Any) -> SOAPState:
        def empty(leaf: Any) -> ArrayStatistics:
            lengths = leaf.shape if leaf.ndim > 1 else ()
            blank = tuple(jnp.zeros((n, n), leaf.dtype) if n <= largest else None for n in lengths)
            return ArrayStatistics(jnp.zeros_like(leaf), jnp.zeros_like(leaf), blank, blank)

        return SOAPState(jnp.zeros((), jnp.int32), jax.tree.map(empty, params))

    # Under `vmap`, a branch would compute all its cases at every step; a loop over members keeps it a branch.
    @jax.custom_batching.sequential_vmap
    def renewed(branch: Any, squares: Any, bases: Any, moments: Any) -> tuple[Any, tuple[Any, ...]]:
        refreshed = _refreshed if basis == "qr" else _exact
        cases = _exact, refreshed, lambda squares, bases, _: (squares, bases)
        return jax.lax.switch(branch, cases, squares, bases, moments)

    def update(gradient: Any, state: SOAPState, params: Any = None) -> tuple[Any, SOAPState]:
        if params is None:
            raise InputError("params is missing", argument="params", remedy="call update(gradients, state, params)")
        count = state.count
        rate = rate_of(learning_rate, count)
        corrected = rate * jnp.sqrt(1 - b2**count) / jnp.where(count > 0, 1 - b1**count, 1)

        def stepped(slope: Any, leaf: Any, own: ArrayStatistics) -> tuple[Any, ArrayStatistics]:
            mean = b1 * own.mean + (1 - b1) * slope
            squares = b2 * own.squares + (1 - b2) * _turned(slope, own.bases, back=False) ** 2
            scaled = _turned(mean, own.bases, back=False) / (jnp.sqrt(squares) + eps)
            step = -corrected * _turned(scaled, own.bases, back=True)
            change = (leaf + step) * (1 - rate * weight_decay) - leaf
            moments = tuple(
                None if each is None else moment_decay * each + (1 - moment_decay) * _second_moment(slope, axis)
                for axis, each in enumerate(own.moments)
            )
            # The first call has no basis yet, so it changes neither the parameters nor the running means.
            mean, squares, change = (
                jnp.where(count > 0, new, old)
                for new, old in ((mean, own.mean), (squares, own.squares), (change, jnp.zeros_like(leaf)))
            )
            if not any(each is not None for each in moments):
                return change, ArrayStatistics(mean, squares, moments, own.bases)
            branch = jnp.where(count == 0, 0, jnp.where(count % every == 0, 1, 2))
            squares, bases = renewed(branch, squares, own.bases, moments)
            return change, ArrayStatistics(mean, squares, moments, bases)

        leaves, structure = jax.tree.flatten(gradient)
        parts = zip(leaves, structure.flatten_up_to(params), structure.flatten_up_to(state.arrays), strict=True)
        updates, arrays = zip(*(stepped(*each) for each in parts), strict=True)
        return structure.unflatten(updates), SOAPState(count + 1, structure.unflatten(arrays))

    # The types of `update` in optax have other names of the arguments.
    return optax.GradientTransformation(initial, update)  # type: ignore[arg-type]


def _turned(array: Any, bases: tuple[Any, ...], *, back: bool) -> Any:
    """Multiply each axis by the transposed eigenvectors, or `back` by the eigenvectors."""
    for axis, each in enumerate(bases):
        if each is not None:
            array = jnp.moveaxis(jnp.tensordot(array, each, (axis, 1 if back else 0)), -1, axis)
    return array


def _second_moment(array: Any, axis: int) -> Any:
    rows = jnp.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)
    return rows @ rows.T


def _exact(squares: Any, bases: tuple[Any, ...], moments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Return the eigenvectors, with the largest eigenvalue first; V is not changed."""
    del bases
    return squares, tuple(None if each is None else jnp.linalg.eigh(each)[1][:, ::-1] for each in moments)


def _refreshed(squares: Any, bases: tuple[Any, ...], moments: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Improve the eigenvectors by one step of orthogonal iteration, after sorting them and V by their eigenvalues."""
    found = []
    for axis, (each, moment) in enumerate(zip(bases, moments, strict=True)):
        if moment is None:
            found.append(None)
            continue
        order = jnp.argsort(-jnp.einsum("ai,ab,bi->i", each, moment, each))
        squares = jnp.take(squares, order, axis=axis)
        found.append(jnp.linalg.qr(moment @ each[:, order])[0])
    return squares, tuple(found)
