"""Irreducible representations of a finite group, computed from its multiplication table."""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal

import numpy as np
from jaxtyping import Complex

from dynascope.errors import InputError
from dynascope.groups.named_groups import cyclic
from dynascope.groups.tables import Group

__all__ = ["Irrep", "irreducible_representations", "real_irreducible_representations"]

_SAME = 1e-6  # characters of different representations differ by much more
_EXACT = 1e-9  # largest error of ρ(g)ρ(h) = ρ(g·h)
_TRIALS = 5

Kind = Literal["real", "complex", "quaternionic"]
# Key: ⟨χ, χ⟩ of an irreducible real representation, which is ρ, ρ with its conjugate, or twice ρ.
_KINDS: dict[int, Kind] = {1: "real", 2: "complex", 4: "quaternionic"}


@dataclasses.dataclass(frozen=True, eq=False)
class Irrep:
    """An irreducible unitary representation ρ: ρ(g)ρ(h) = ρ(g·h).

    Attributes:
        name: "trivial", "sign", "frequency 2", "3d", "3d-2", …; a star marks the conjugate of the previous irrep.
        matrices: ρ(g) for every element, shape (n, d, d). The imaginary parts are zero for the real kind.
        kind: "real" if a basis exists in which all matrices are real, "complex" if ρ is not equivalent to its
            conjugate, and "quaternionic" otherwise. The Frobenius–Schur indicator, the mean of χ(g²), is 1, 0 or −1,
            respectively.
        index: Index in `irreducible_representations(group)`.
        conjugate: Index of the conjugate irrep; equal to `index` unless the kind is complex.
    """

    name: str
    matrices: Complex[np.ndarray, "n d d"]
    kind: Kind
    index: int
    conjugate: int

    @property
    def dimension(self) -> int:
        """Complex dimension d."""
        return self.matrices.shape[1]

    @property
    def real_dimension(self) -> int:
        """Dimension D of the irreducible real representation that contains ρ: d for the real kind, else 2d."""
        return self.dimension * (1 if self.kind == "real" else 2)

    @property
    def members(self) -> int:
        """Number of distinct irreps in the real representation: 2 (ρ and its conjugate) for complex ρ, else 1."""
        return 2 if self.kind == "complex" else 1

    @property
    def trivial(self) -> bool:
        """Whether ρ is the trivial representation."""
        return self.index == 0

    @functools.cached_property
    def character(self) -> Complex[np.ndarray, " n"]:
        """The character χ(g) = tr ρ(g), shape (n,)."""
        return np.trace(self.matrices, axis1=1, axis2=2)

    def __repr__(self) -> str:
        return f"Irrep({self.name!r}, dimension {self.dimension}, {self.kind})"


@functools.lru_cache(maxsize=64)
def irreducible_representations(group: Group) -> tuple[Irrep, ...]:
    """Compute all irreducible representations over the complex numbers.

    The eigenspaces of a random real symmetric matrix that commutes with the regular representation are irreducible real
    representations. A real representation of complex or quaternionic kind splits into the two eigenspaces of an
    antisymmetric matrix that commutes with it. The result is verified: Σ d² = n, orthogonal characters, and
    ρ(g)ρ(h) = ρ(g·h).

    Args:
        group: The group.

    Returns:
        The irreps in a fixed order: first the trivial irrep, then by dimension and by descending real part of the
        character at the elements 1, 2, …. In a conjugate pair, the irrep whose first non-zero imaginary part is
        negative comes first. For `cyclic(n)`, the irreps are ρ(g) = exp(−2πi ξ g / n) for ξ = 0, 1, −1, 2, −2, …, so
        the transform agrees with `numpy.fft`.

    Source: the decomposition of the regular representation, J.-P. Serre, Linear representations of finite groups
    (1977), sections 2.4 and 13.2.

    Example:
        >>> from dynascope.groups import find_group
        >>> for irrep in irreducible_representations(find_group("Q8")):
        ...     print(irrep.name, irrep.dimension, irrep.kind)
        trivial 1 real
        1d-1 1 real
        1d-2 1 real
        1d-3 1 real
        2d 2 quaternionic
    """
    for seed in range(_TRIALS):
        found = _decompose(group, np.random.default_rng(seed))
        if _verified(group, [matrices for _, matrices in found]):
            return _ordered(group, found)
    raise InputError(
        f"the irreducible representations of {group.name} could not be separated numerically",
        argument="group",
        value=group.name,
        remedy="use a smaller group",
    )


def real_irreducible_representations(group: Group) -> tuple[Irrep, ...]:
    """Compute one irrep per irreducible real representation, the first of each conjugate pair.

    Example:
        >>> from dynascope.groups import cyclic
        >>> [irrep.name for irrep in real_irreducible_representations(cyclic(5))]
        ['trivial', 'frequency 1', 'frequency 2']
    """
    return tuple(irrep for irrep in irreducible_representations(group) if irrep.index <= irrep.conjugate)


def _decompose(group: Group, draw: np.random.Generator) -> list[tuple[Kind, np.ndarray]]:
    """Kind and matrices of each irrep; both irreps of a conjugate pair are included."""
    weight = draw.normal(size=group.order)
    commuting = (weight + weight[group.inverse])[group.table[group.inverse]]
    values, vectors = np.linalg.eigh(commuting)
    cuts = np.flatnonzero(np.diff(values) > 1e-9 * np.ptp(values)) + 1
    shifted = group.table[group.inverse]  # the regular representation maps q to q[g⁻¹ h]
    characters: list[np.ndarray] = []
    found: list[tuple[Kind, np.ndarray]] = []
    for basis in np.split(vectors, cuts, axis=1):
        character = np.einsum("hd,ghd->g", basis, basis[shifted])
        if any(np.abs(character - known).max() < _SAME for known in characters):
            continue
        characters.append(character)
        matrices = np.einsum("hi,ghj->gij", basis, basis[shifted], optimize=True)
        kind = _KINDS.get(round(float(np.mean(character**2))), "real")
        if kind == "real":
            found.append((kind, _in_fixed_basis(matrices)))
            continue
        half = _split(matrices, draw)
        found.append((kind, _in_fixed_basis(half)))
        if kind == "complex":
            found.append((kind, found[-1][1].conj()))
    return found


def _split(matrices: np.ndarray, draw: np.random.Generator) -> np.ndarray:
    """One of the two complex irreps that a real representation contains."""
    noise = draw.normal(size=matrices.shape[1:])
    commuting = np.einsum("gij,jk,glk->il", matrices, noise - noise.T, matrices, optimize=True)
    basis = np.linalg.eigh(1j * commuting)[1][:, matrices.shape[1] // 2 :]
    return basis.conj().T @ matrices @ basis


def _in_fixed_basis(matrices: np.ndarray) -> np.ndarray:
    """Transform to a canonical basis, defined by a fixed linear combination of the matrices."""
    elements = np.arange(len(matrices))
    phases = np.exp(1j * (elements**2 + 1.0)) if np.iscomplexobj(matrices) else np.cos(elements**2 + 1.0)
    mixture = np.tensordot(phases, matrices, axes=1)
    basis = np.linalg.eigh(mixture + mixture.conj().T)[1]
    row = (basis.conj().T @ np.tensordot(np.cos(elements**3 + 2.0), matrices, axes=1) @ basis)[0]
    row[0] = 1.0
    usable = np.abs(row) > 1e-9
    basis = basis * np.where(usable, row.conj() / np.where(usable, np.abs(row), 1.0), 1.0)
    moved = basis.conj().T @ matrices @ basis
    # One Newton step towards the nearest unitary matrices removes the rounding errors of the eigenvectors.
    return moved @ (3 * np.eye(moved.shape[1]) - moved.conj().swapaxes(1, 2) @ moved) / 2


def _verified(group: Group, representations: list[np.ndarray]) -> bool:
    """Whether the list contains every irrep exactly once."""
    if sum(matrices.shape[1] ** 2 for matrices in representations) != group.order:
        return False
    characters = np.array([np.trace(matrices, axis1=1, axis2=2) for matrices in representations])
    overlaps = characters @ characters.conj().T / group.order
    if np.abs(overlaps - np.eye(len(characters))).max() > _EXACT:
        return False
    return all(
        np.abs(matrices[g] @ matrices - matrices[group.table[g]]).max() < _EXACT
        for matrices in representations
        for g in group.generators
    )


def _ordered(group: Group, found: list[tuple[Kind, np.ndarray]]) -> tuple[Irrep, ...]:
    def key(entry: tuple[Kind, np.ndarray]) -> tuple:
        character = np.round(np.trace(entry[1], axis1=1, axis2=2), 6) + 0.0
        trivial = bool(np.all(character == 1))
        return (not trivial, entry[1].shape[1], tuple(-character.real), tuple(character.imag))

    entries = sorted(found, key=key)
    conjugates = list(range(len(entries)))
    for i, (kind, _) in enumerate(entries):
        # Conjugate irreps are adjacent, because their characters have the same real parts.
        if kind == "complex" and conjugates[i] == i:
            conjugates[i], conjugates[i + 1] = i + 1, i
    names = _names(group, [matrices for _, matrices in entries], conjugates)
    return tuple(
        Irrep(name, matrices.astype(np.complex128), kind, i, conjugates[i])
        for i, ((kind, matrices), name) in enumerate(zip(entries, names, strict=True))
    )


def _names(group: Group, representations: list[np.ndarray], conjugates: list[int]) -> list[str]:
    frequencies = group.commutative and np.array_equal(group.table, cyclic(group.order).table)
    dimensions = [matrices.shape[1] for matrices in representations]
    presented = [i for i, conjugate in enumerate(conjugates) if 0 < i <= conjugate]
    names = ["trivial"] * len(representations)
    for i in presented:
        alike = [j for j in presented if dimensions[j] == dimensions[i]]
        if frequencies:
            turn = -float(np.angle(representations[i][1, 0, 0])) / (2 * np.pi)
            names[i] = f"frequency {round(turn * group.order) % group.order}"
        elif len(alike) > 1:
            names[i] = f"{dimensions[i]}d-{alike.index(i) + 1}"
        else:
            names[i] = "sign" if dimensions[i] == 1 and conjugates[i] == i else f"{dimensions[i]}d"
        if conjugates[i] != i:
            names[conjugates[i]] = f"{names[i]}*"
    return names
