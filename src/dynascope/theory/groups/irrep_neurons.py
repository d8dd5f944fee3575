"""Initial neurons near given irreducible representations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from dynascope.groups.encodings import valid_encoding
from dynascope.groups.representations import Irrep, real_irreducible_representations
from dynascope.groups.tables import Group
from dynascope.theory.groups.composition_utility import Encoding, SequenceLength
from dynascope.validation import checked, require
from dynascope.validation.bounded import Fraction, PositiveInt, Seed

__all__ = ["irrep_projection", "neurons_by_share", "neurons_near_irreps", "shares_of_irreps"]

_ROUND_OFF = 1e-9


@checked
def neurons_near_irreps(
    group: Group,
    encoding: Encoding,
    sequence_length: SequenceLength,
    *,
    neurons: PositiveInt,
    leakage: Fraction = 0.02,
    seed: Seed = 0,
) -> Float[np.ndarray, "neurons weights"]:
    """Draw neurons of unit norm, each near one of the irreps in the encoding.

    A network learns an irrep at the predicted time only if some of its neurons start in the basin of this irrep, that
    is, if they converge to the irrep as they maximise their utility. With Gaussian initial weights, nearly all neurons
    learn the strongest irrep: of 4000 neurons on D₃ with the amplitudes 2.2 and 1.2, none starts in the basin of the
    second irrep. This irrep is then learned much later, when active neurons drift to it. Here, each of the k + 1
    vectors of a neuron is Gaussian within the irrep of the neuron, with a smaller component in each of the others.

    Args:
        group: Group of n elements.
        encoding: Encoding x of the group elements, shape (n,), with zero mean.
        sequence_length: Length k of the sequences, from 2 to 20.
        neurons: Number of neurons, at least one per irrep, assigned to the irreps in turn.
        leakage: Norm of the component in each other irrep, relative to the component in the irrep of the neuron, from 0
            to 1.
        seed: Random seed, a non-negative integer.

    Returns:
        One row (u_1, …, u_k, w) per neuron, shape (neurons, (k + 1) n), for `TwoLayer.with_neurons`.

    Raises:
        InputError: If the encoding is not n numbers with zero mean, k is not an integer from 2 to 20, there are fewer
            neurons than irreps, or the leakage is not from 0 to 1.

    Source: Alternating Gradient Flows (arXiv 2506.06489): dormant neurons maximise their utility.

    Example:
        >>> from dynascope.groups import cyclic
        >>> x = np.cos(2 * np.pi * np.arange(7) / 7)
        >>> neurons_near_irreps(cyclic(7), x, 2, neurons=6).shape
        (6, 21)
    """
    x, k = valid_encoding(group, encoding), sequence_length
    projections = [
        irrep_projection(group, irrep) for irrep in real_irreducible_representations(group) if not irrep.trivial
    ]
    used = np.array([each for each in projections if np.abs(each @ x).max() > _ROUND_OFF * np.abs(x).max()])
    require(
        neurons >= len(used),
        f"neurons is {neurons}, but the number of irreps is {len(used)}",
        argument="neurons",
        value=neurons,
        remedy="give at least one neuron per irrep",
    )
    drawn = np.random.default_rng(seed).normal(size=(neurons, k + 1, group.order))
    within = np.einsum("rhg,nvg->nrvh", used, drawn)
    within /= np.linalg.norm(within, axis=-1, keepdims=True)
    share = np.where(np.arange(len(used)) == np.arange(neurons)[:, None] % len(used), 1.0, leakage)
    rows = np.einsum("nr,nrvh->nvh", share, within).reshape(neurons, -1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def neurons_by_share(
    group: Group, encoding: Float[np.ndarray, " n"], sequence_length: int, shares: np.ndarray, *, seed: int = 0
) -> Float[np.ndarray, "neurons weights"]:
    """Draw `shares[i]` neurons near the i-th irrep in the encoding, in the order of the group."""
    # Neurons are drawn for the irreps in turn, and the surplus of each irrep is dropped.
    neurons = int(shares.max()) * len(shares)
    drawn = neurons_near_irreps(group, encoding, sequence_length, neurons=neurons, seed=seed)
    return np.concatenate([drawn[i :: len(shares)][:share] for i, share in enumerate(shares)])


def shares_of_irreps(
    irreps: Sequence[Irrep], sequence_length: int, *, width: int | None = None, least: int = 1
) -> np.ndarray:
    """Number of neurons for each irrep, in the order of the group and in proportion to the explicit network.

    Args:
        irreps: Irreps in the encoding.
        sequence_length: Length k of the composed sequences.
        width: Total number of neurons; by default, the width of the explicit network (see `construction_width`).
        least: Smallest dimension to count for an irrep, even if its real dimension is smaller.
    """
    ordered, k = sorted(irreps, key=lambda irrep: irrep.index), sequence_length
    needs = np.array([2 ** (k - 1) * max(irrep.real_dimension, least) ** (k + 1) for irrep in ordered])
    if width is None:
        return needs
    return np.diff(np.round(width * np.cumsum([0, *needs]) / needs.sum()).astype(int))


def irrep_projection(group: Group, irrep: Irrep) -> np.ndarray:
    """Return the (n, n) matrix that projects a real function onto an irrep and its conjugate."""
    weight = irrep.members * irrep.dimension / group.order * np.real(irrep.character)
    return weight[group.table[group.inverse]]
