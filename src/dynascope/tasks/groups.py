"""Composition of the elements of a finite group, each shown as a shifted encoding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import SupportsIndex

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.errors import InputError, require, require_array, require_seed
from dynascope.tasks.task import Task
from dynascope.theory.groups.representations import Irrep, irreducible_representations
from dynascope.theory.groups.tables import Group

__all__ = ["encoding_from_fourier", "group_composition"]

_MOST_NUMBERS = 2e7  # of inputs and targets together, 160 MB


def group_composition(group: Group, encoding: ArrayLike | None = None, *, sequence_length: int = 2) -> Task:
    """The task to compose k elements: from (x_{g_1}, …, x_{g_k}) to x_{g_1 ⋯ g_k}, all nᵏ sequences once.

    An element g is shown as the shifted encoding x_g[h] = x[g⁻¹ h]. `TwoLayer(k n, width, n, activation="power-k")` is
    the network whose order of learning `theory.groups.composition_staircase` predicts. For a cyclic group and k = 2 the
    task is modular addition.

    Args:
        group: The group of n elements.
        encoding: x, shape (n,). By default 1 at the identity and 0 elsewhere, less the mean.
        sequence_length: k, from 1.

    Returns:
        The task: inputs (nᵏ, k n) and targets (nᵏ, n), the last element of the sequence varying fastest.

    Raises:
        InputError: The encoding is not n finite numbers or is the same for all elements, k is not a positive whole
            number, or the task would hold more than twenty million numbers.

    Source: Sequential Group Composition (arXiv 2602.03655).

    Example:
        >>> from dynascope.theory.groups import cyclic
        >>> task = group_composition(cyclic(3), [2.0, -1.0, -1.0])
        >>> task.inputs.shape, task.inputs[5], task.targets[5]
        ((9, 6), array([-1.,  2., -1., -1., -1.,  2.]), array([ 2., -1., -1.]))
    """
    n = group.order
    x = np.eye(n)[0] - 1 / n if encoding is None else require_array("encoding", encoding, (n,))
    require(
        bool(np.ptp(x) > 0),
        f"the encoding is {x[0]} everywhere",
        argument="encoding",
        value=float(x[0]),
        remedy="give different numbers to different elements",
    )
    require(
        isinstance(sequence_length, SupportsIndex) and int(sequence_length) >= 1,
        f"sequence_length is {sequence_length}",
        argument="sequence_length",
        value=sequence_length,
        remedy="choose a positive whole number",
    )
    k = int(sequence_length)
    require(
        float(n) ** (k + 1) * (k + 1) <= _MOST_NUMBERS,
        f"{n}^{k} sequences of {k} elements of {group.name} make {n ** (k + 1) * (k + 1):.1e} numbers",
        argument="sequence_length",
        value=k,
        remedy="choose a smaller group or a shorter sequence",
    )
    sequences = np.indices((n,) * k).reshape(k, -1)
    shown = x[group.table[group.inverse]]
    return Task(
        inputs=np.concatenate([shown[elements] for elements in sequences], axis=1),
        targets=shown[group.product(list(sequences))],
        name=f"composition of {k} elements of {group.name}",
        description=(
            f"All {n**k} sequences of {k} elements of the group {group.name} ({n} elements), and their products.",
            "An element g is shown as the encoding x_g[h] = x[g⁻¹ h].",
        ),
        feature_names=tuple(f"x{j + 1}[{h}]" for j in range(k) for h in range(n)),
        target_names=tuple(f"y[{h}]" for h in range(n)),
    )


def encoding_from_fourier(
    group: Group, amplitudes: Mapping[str | int, ArrayLike], *, seed: int | None = None
) -> Float[np.ndarray, " n"]:
    """A real encoding of mean zero with chosen Fourier coefficients x̂(ρ) = Σ_g x[g] ρ(g).

    Args:
        group: The group of n elements.
        amplitudes: For each irrep, by name or index in `irreducible_representations`, the singular values σ of x̂(ρ):
            one number for all, or d of them. A conjugate pair is given once. Irreps that are not named get zero.
        seed: Without one x̂(ρ) = diag(σ); with one x̂(ρ) = V diag(σ), V a random unitary matrix (orthogonal for an irrep
            of the real kind).

    Returns:
        x, shape (n,).

    Raises:
        InputError: No irrep, an unknown or the trivial one is named, or both of a conjugate pair; an amplitude is not
            one or d finite numbers from zero; or the d numbers differ for an irrep of the quaternionic kind.

    Source: the inverse Fourier transform on a finite group.

    Example:
        >>> from dynascope.theory.groups import dihedral
        >>> x = encoding_from_fourier(dihedral(3), {"sign": 1.2, "2d": 2.2})
        >>> x.round(10)
        array([ 1.66666667, -0.53333333, -0.53333333, -0.2 , -0.2 , -0.2 ])
    """
    require(
        len(amplitudes) > 0, "no amplitude is given", argument="amplitudes", remedy="name an irrep and its amplitude"
    )
    irreps = irreducible_representations(group)
    if seed is not None:
        require_seed(seed)
    noise = None if seed is None else np.random.default_rng(seed).normal(size=group.order)
    x = np.zeros(group.order)
    given: set[int] = set()
    for key, amplitude in amplitudes.items():
        irrep = _find(group, irreps, key)
        require(
            irrep.index not in given,
            f"the irrep {key!r} is given twice",
            argument="amplitudes",
            value=key,
            remedy="give one amplitude for a representation and its conjugate",
        )
        given |= {irrep.index, irrep.conjugate}
        coefficient = np.diag(_singular_values(irrep, amplitude)).astype(np.complex128)
        if noise is not None:
            # The polar factor of a real function's coefficient is again that of a real function.
            left, _, right = np.linalg.svd(np.tensordot(noise, irrep.matrices, axes=1))
            coefficient = left @ right @ coefficient
        traces = np.einsum("gij,ij->g", irrep.matrices.conj(), coefficient).real
        x += irrep.members * irrep.dimension / group.order * traces
    return x - x.mean()


def _find(group: Group, irreps: tuple[Irrep, ...], key: str | int) -> Irrep:
    names = {irrep.name: irrep for irrep in irreps}
    if key in names:
        found = names[str(key)]
    elif isinstance(key, SupportsIndex) and 0 <= int(key) < len(irreps):
        found = irreps[int(key)]
    else:
        raise InputError(
            f"{group.name} has no irrep {key!r}",
            argument="amplitudes",
            value=key,
            remedy=f"choose from {', '.join(list(names)[1:])}, or an index from 1 to {len(irreps) - 1}",
        )
    require(
        not found.trivial,
        "the trivial irrep is given",
        argument="amplitudes",
        value=key,
        remedy="leave it out: an encoding has mean zero",
    )
    return found


def _singular_values(irrep: Irrep, amplitude: ArrayLike) -> np.ndarray:
    values = require_array("amplitudes", np.atleast_1d(np.asarray(amplitude)), (None,))
    require(
        len(values) in (1, irrep.dimension) and values.min() >= 0 and values.max() > 0,
        f"the amplitude of {irrep.name!r} is {amplitude}",
        argument="amplitudes",
        value=str(amplitude),
        remedy=f"give one positive number, or {irrep.dimension} that are not negative",
    )
    require(
        irrep.kind != "quaternionic" or np.ptp(values) == 0,
        f"the amplitudes of {irrep.name!r} differ, which is quaternionic",
        argument="amplitudes",
        value=values.tolist(),
        remedy="give it one number",
    )
    return np.broadcast_to(values, (irrep.dimension,))
