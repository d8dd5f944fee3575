"""Constructions of networks that compose group elements exactly."""

from __future__ import annotations

import itertools
import math
from typing import Annotated, Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Inexact
from numpy.typing import ArrayLike

from dynascope.groups import Group, real_irreducible_representations
from dynascope.networks.recurrent import Recurrent
from dynascope.networks.tree import Tree
from dynascope.networks.two_layer import TwoLayer
from dynascope.tasks.task import Task
from dynascope.validation import checked, require, require_array

__all__ = [
    "ARCHITECTURES",
    "measured_composition",
    "random_composition",
    "recurrent_composition",
    "tree_composition",
    "two_layer_composition",
]

ARCHITECTURES = ("two-layer", "recurrent", "tree")
_MOST_WEIGHTS = 2e7  # 160 MB
_VANISHES = 1e-9  # values below this fraction of the norm of the encoding count as zero


@checked
def two_layer_composition(
    group: Group, encoding: ArrayLike, sequence_length: Annotated[int, Ge(2)] = 2, *, fast_multiplication: bool = False
) -> TwoLayer:
    """Construct a two-layer network of power-k neurons that maps x_{g₁}, …, x_{g_k} to x_{g₁⋯g_k}.

    The element g is encoded as x_g[h] = x[g⁻¹h]. Because x̂_g(ρ) = ρ(g) x̂(ρ), the entries of ρ(g) are linear in x_g if
    x̂(ρ) is invertible. By the polarisation identity, each of the D^{k+1} products of entries in ρ(g₁)⋯ρ(g_k) is a sum
    of powers,

        z₁⋯z_k = 1/(2^{k−1} k!) Σ_{ε ∈ {±1}^{k−1}} (Π ε) (z₁ + Σ_{j≥2} ε_j z_j)^k,

    so the width is Σ_ρ 2^{k−1} D_ρ^{k+1}, where the sum is over the real irreducible representations in x, of dimension
    D_ρ. With fast multiplication, representations of complex and quaternionic type, D = 2d, require only (k+1) 2^{k−1}
    d^{k+1} neurons because of

        Z^k = 2^k/(k+1) Σ_{m=0}^{k} e^{−iφ_m k} (Re e^{iφ_m} Z)^k,  φ_m = πm/(k+1),

    and products of two 2 × 2 matrices require 7 instead of 8 multiplications (Strassen).

    The width above is sufficient but not always necessary. The polarisation identity holds for all numbers z; an
    identity for all z requires at least 2^{k−1} powers per product. The task has only finitely many inputs, for which
    fewer neurons can suffice, e.g. k neurons for the group with two elements.

    Args:
        group: Group with n elements.
        encoding: Encoding vector x, shape (n,), with mean zero.
        sequence_length: Number k ≥ 2 of elements.
        fast_multiplication: Whether to use fewer neurons, whose weights are harder to interpret.

    Returns:
        A network that maps inputs of shape (…, k·n) to outputs of shape (…, n).

    Raises:
        InputError: If the encoding does not have length n, is zero or does not have mean zero, if its transform at a
            representation is neither zero nor invertible, if k is below two, or if the network would have over twenty
            million weights.

    Reference: G. L. Marchetti et al., Sequential Group Composition, arXiv 2602.03655. The number of neurons and the sum
        over phases are derived here.

    Example:
        >>> from dynascope.groups import cyclic
        >>> network = two_layer_composition(cyclic(3), [2.0, -1.0, -1.0])
        >>> network.first.shape, np.round(network(np.array([-1.0, 2, -1, -1, -1, 2])), 5).tolist()
        ((6, 16), [2.0, -1.0, -1.0])
    """
    k, n = sequence_length, group.order
    blocks = _blocks(group, encoding, real=not fast_multiplication)
    width = sum(
        2 ** (k - 1) * block.read.shape[1] ** (k + 1) * (k + 1 if np.iscomplexobj(block.read) else 1)
        for block in blocks
    )
    require(
        width * (k + 1) * n <= _MOST_WEIGHTS,
        f"sequence_length is {k}, so the network would have more than {_MOST_WEIGHTS:.0e} weights",
        argument="sequence_length",
        value=k,
        remedy="choose a shorter sequence, or recurrent_composition or tree_composition, whose width is constant",
    )
    products = [_matrix_product(block.read.shape[1], k, fast=fast_multiplication) for block in blocks]
    neurons = np.concatenate([_powers(block, each) for block, each in zip(blocks, products, strict=True)])
    return TwoLayer(k * n, 1, n, activation=f"power-{k}").with_neurons(neurons)


def recurrent_composition(group: Group, encoding: ArrayLike, *, fast_multiplication: bool = False) -> Recurrent:
    """Construct a recurrent network that maps x_{g₁}, …, x_{g_k} to x_{g₁⋯g_k} in k − 1 steps, for every k ≥ 2.

    The hidden neurons are those of `two_layer_composition` for k = 2. Each step multiplies by one further element, with
    W_mix = W_out W_first. The width Σ_ρ 2 D_ρ³ does not depend on k.

    Args:
        group: Group with n elements.
        encoding: Encoding vector x, shape (n,), with mean zero.
        fast_multiplication: Whether to use fewer neurons, as in `two_layer_composition`.

    Returns:
        A network that maps inputs of shape (…, k·n) to outputs of shape (…, n).

    Raises:
        InputError: If the encoding is invalid (see `two_layer_composition`).

    Reference:
        G. L. Marchetti et al., Sequential Group Composition, arXiv 2602.03655.

    Example:
        >>> from dynascope.groups import cyclic
        >>> recurrent_composition(cyclic(3), [2.0, -1.0, -1.0]).mix.shape
        (16, 16)
    """
    left, right, output = _pair(group, encoding, fast_multiplication)
    network = Recurrent(group.order, 1, group.order)
    weights = (left, right, output @ left, output)
    return eqx.tree_at(lambda each: (each.first, each.drive, each.mix, each.output), network, weights)


def tree_composition(group: Group, encoding: ArrayLike, *, fast_multiplication: bool = False) -> Tree:
    """Construct a tree network that maps x_{g₁}, …, x_{g_k} to x_{g₁⋯g_k} in ⌈log₂ k⌉ levels, for every k ≥ 2.

    The block that joins pairs is `two_layer_composition` for k = 2, whose output is again the encoding of an element.
    The width Σ_ρ 2 D_ρ³ does not depend on k.

    Args:
        group: Group with n elements.
        encoding: Encoding vector x, shape (n,), with mean zero.
        fast_multiplication: Whether to use fewer neurons, as in `two_layer_composition`.

    Returns:
        A network that maps inputs of shape (…, k·n) to outputs of shape (…, n).

    Raises:
        InputError: If the encoding is invalid (see `two_layer_composition`).

    Reference:
        G. L. Marchetti et al., Sequential Group Composition, arXiv 2602.03655.

    Example:
        >>> from dynascope.groups import cyclic
        >>> tree_composition(cyclic(3), [2.0, -1.0, -1.0], fast_multiplication=True).left.shape
        (3, 6)
    """
    weights = _pair(group, encoding, fast_multiplication)
    network = Tree(group.order, 1)
    return eqx.tree_at(lambda each: (each.left, each.right, each.output), network, weights)


def random_composition(architecture: str, order: int, sequence_length: int, width: int, seed: int) -> Any:
    """Draw a network with one of the `ARCHITECTURES` and random weights, for a group of the given order."""
    if architecture == "two-layer":
        return TwoLayer(sequence_length * order, width, order, activation=f"power-{sequence_length}", seed=seed)
    return Recurrent(order, width, order, seed=seed) if architecture == "recurrent" else Tree(order, width, seed=seed)


def measured_composition(task: Task, network: Any) -> dict[str, float]:
    """Measure the loss, width, depth and exactness, 1 − (largest error)/(largest target), over all sequences."""
    error = np.asarray(network(task.inputs)) - task.targets
    lines = jax.make_jaxpr(network)(task.inputs).eqns
    return {
        "loss": float(np.sum(error**2)) / (2 * task.samples),
        # The last weight matrix has one row per hidden neuron.
        "width": len(jax.tree.leaves(network)[-1]),
        # Every layer applies its power once, and no other operation is a power.
        "depth": sum(line.primitive.name in ("integer_pow", "square") for line in lines),
        "exactness": 1 - float(np.abs(error).max() / np.abs(task.targets).max()),
    }


def _pair(group: Group, encoding: ArrayLike, fast: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The input weights of the left and right element of a pair, and the output weights."""
    network = two_layer_composition(group, encoding, fast_multiplication=fast)
    left, right = np.split(np.asarray(network.first), 2)
    return left, right, np.asarray(network.second)


class _Block(NamedTuple):
    """Encoder and decoder of an irreducible representation: Σ_h read[h] x_g[h] = ρ(g), x_g = Re tr(write ρ(g))."""

    read: Inexact[np.ndarray, "n d d"]
    write: Inexact[np.ndarray, "n d d"]


def _blocks(group: Group, encoding: ArrayLike, *, real: bool) -> list[_Block]:
    x = require_array("encoding", encoding, (group.order,))
    with np.errstate(over="ignore"):
        size = float(np.linalg.norm(x))
    require(
        math.isfinite(size),
        f"the encoding has values up to {np.abs(x).max():.3g}, whose squares overflow",
        argument="encoding",
        value=float(np.abs(x).max()),
        remedy="rescale the encoding so that the squares do not overflow",
    )
    require(
        size > 0 and abs(x.sum()) <= _VANISHES * size * math.sqrt(group.order),
        f"the encoding has mean {x.mean():.6g} and norm {size:.6g}",
        argument="encoding",
        value=float(x.mean()),
        remedy="give a non-constant encoding and subtract its mean",
    )
    blocks = []
    for irrep in real_irreducible_representations(group):
        matrices = np.real(irrep.matrices) if irrep.kind == "real" else irrep.matrices
        weight = irrep.members * irrep.dimension / group.order
        if real and irrep.kind != "real":
            # [[Re, −Im], [Im, Re]] has twice the trace of the real part.
            re, im = np.real(matrices), np.imag(matrices)
            matrices = np.block([[re, -im], [im, re]])
            weight /= 2
        transform = np.tensordot(x, matrices, axes=1)
        singular = np.linalg.svd(transform, compute_uv=False)
        if irrep.trivial or singular[0] <= _VANISHES * size:
            continue
        require(
            singular[-1] > _VANISHES * singular[0],
            f"the Fourier transform of the encoding at {irrep.name!r} has singular values from {singular[0]:.3g} "
            f"to {singular[-1]:.3g}",
            argument="encoding",
            value=float(singular[-1]),
            remedy="give an encoding whose Fourier transform is zero or invertible at every irreducible representation",
        )
        adjoint = matrices.conj().swapaxes(1, 2)
        blocks.append(_Block(matrices @ np.linalg.inv(transform), weight * (transform @ adjoint)))
    return blocks


class _Products(NamedTuple):
    """Decomposition of the product of k matrices into products of k linear forms.

    (A₁⋯A_k)[a, b] = Σ_p collect[p, a, b] Π_j ⟨factors[p, j], A_j⟩.
    """

    factors: Float[np.ndarray, "products k d d"]
    collect: Float[np.ndarray, "products d d"]


def _matrix_product(dimension: int, k: int, *, fast: bool) -> _Products:
    if fast and dimension == 2 and k == 2:
        return _STRASSEN
    paths = np.array(list(itertools.product(range(dimension), repeat=k + 1)))
    entry = np.eye(dimension**2).reshape(dimension, dimension, dimension, dimension)
    return _Products(entry[paths[:, :-1], paths[:, 1:]], entry[paths[:, 0], paths[:, -1]])


def _powers(block: _Block, products: _Products) -> Float[np.ndarray, "neurons weights"]:
    """The neurons that compute the products of one representation; each row has input weights, then output weights."""
    k = products.factors.shape[1]
    read = np.einsum("pjab,hab->pjh", products.factors, block.read)
    write = np.einsum("pab,hba->ph", products.collect, block.write)
    signs = np.array([(1, *rest) for rest in itertools.product((1, -1), repeat=k - 1)])
    phases = np.exp(1j * np.pi * np.arange(k + 1) / (k + 1)) if np.iscomplexobj(read) else np.ones(1)
    count = 2 ** (k - 1) * math.factorial(k)
    # (Re Z)^k = Z^k for real Z. For complex Z, the sum over the phases selects Z^k from the expansion of (Re Z)^k.
    scale = (2**k / (k + 1) if len(phases) > 1 else 1) / count
    first = np.einsum("q,sj,pjh->pqsjh", phases, signs, read).real
    second = np.einsum("q,s,ph->pqsh", scale * phases**-k, signs.prod(axis=1), write).real
    neurons = second.size // second.shape[-1]
    return np.concatenate([first.reshape(neurons, -1), second.reshape(neurons, -1)], axis=1)


# V. Strassen, Gaussian elimination is not optimal (1969): the seven products, and the entries that contain each.
_STRASSEN = _Products(
    np.array(
        [
            [[[1, 0], [0, 1]], [[1, 0], [0, 1]]],
            [[[0, 0], [1, 1]], [[1, 0], [0, 0]]],
            [[[1, 0], [0, 0]], [[0, 1], [0, -1]]],
            [[[0, 0], [0, 1]], [[-1, 0], [1, 0]]],
            [[[1, 1], [0, 0]], [[0, 0], [0, 1]]],
            [[[-1, 0], [1, 0]], [[1, 1], [0, 0]]],
            [[[0, 1], [0, -1]], [[0, 0], [1, 1]]],
        ],
        dtype=float,
    ),
    np.array(
        [
            [[1, 0], [0, 1]],
            [[0, 0], [1, -1]],
            [[0, 1], [0, 1]],
            [[1, 0], [1, 0]],
            [[-1, 1], [0, 0]],
            [[0, 0], [0, 1]],
            [[1, 0], [0, 0]],
        ],
        dtype=float,
    ),
)
