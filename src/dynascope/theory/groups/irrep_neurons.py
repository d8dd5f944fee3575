"""Initial neurons that are near given irreducible representations."""

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
    """Neurons of unit norm, each near one of the irreps in the encoding, in turn.

    A network learns an irrep at the predicted time only if some of its neurons are in the basin of that irrep: they
    end up in it when they climb their utility. Under a Gaussian start a strong irrep takes nearly all: of 4000 neurons
    on D₃ with the amplitudes 2.2 and 1.2 none is left for the second irrep, which then appears much later, when active
    neurons drift to it. Here each of the k + 1 vectors of a neuron is Gaussian within its own irrep, with a smaller
    part in each of the others.

    Args:
        group: The group of n elements.
        encoding: x, shape (n,), of mean zero.
        sequence_length: k, from 2.
        neurons: Number of neurons, at least one for each irrep; these are dealt out in turn.
        leakage: Norm of the part in each other irrep relative to that in the neuron's own, from 0 to 1.
        seed: Seed of the draw, from zero.

    Returns:
        One row for each neuron, (u_1, …, u_k, w): shape (neurons, (k + 1) n), as `TwoLayer.with_neurons` takes them.

    Raises:
        InputError: The encoding is not n numbers of mean zero, k is not a whole number from 2, there are fewer neurons
            than irreps, or the leakage is not from 0 to 1.

    Source: Alternating Gradient Flows (arXiv 2506.06489): dormant neurons climb their own utility.

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
        f"neurons is {neurons}, for {len(used)} irreps",
        argument="neurons",
        value=neurons,
        remedy="give at least one to each",
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
    """The same with a number of neurons for each irrep in the encoding, in the order of the group."""
    # Dealt out to the irreps in turn, until each has its share.
    neurons = int(shares.max()) * len(shares)
    dealt = neurons_near_irreps(group, encoding, sequence_length, neurons=neurons, seed=seed)
    return np.concatenate([dealt[i :: len(shares)][:share] for i, share in enumerate(shares)])


def shares_of_irreps(
    irreps: Sequence[Irrep], sequence_length: int, *, width: int | None = None, least: int = 1
) -> np.ndarray:
    """Neurons of each irrep in the explicit construction, or of a width in these shares; in the order of the group.

    Args:
        irreps: Those in the encoding.
        sequence_length: k of the composition.
        width: Number of neurons, which the construction says itself if it is left out.
        least: As of which dimension those of a smaller one are counted.
    """
    ordered, k = sorted(irreps, key=lambda irrep: irrep.index), sequence_length
    needs = np.array([2 ** (k - 1) * max(irrep.real_dimension, least) ** (k + 1) for irrep in ordered])
    if width is None:
        return needs
    return np.diff(np.round(width * np.cumsum([0, *needs]) / needs.sum()).astype(int))


def irrep_projection(group: Group, irrep: Irrep) -> np.ndarray:
    """The matrix (n, n) that keeps of a real function its part in an irrep, with the conjugate."""
    weight = irrep.members * irrep.dimension / group.order * np.real(irrep.character)
    return weight[group.table[group.inverse]]
