"""Loss staircase of a two-layer network that learns to compose elements of a finite group."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable

import numpy as np

from dynascope.groups.encodings import valid_encoding
from dynascope.groups.representations import Irrep, real_irreducible_representations
from dynascope.groups.tables import Group
from dynascope.results.clock import time_unit
from dynascope.results.staircase import Staircase
from dynascope.theory.assumptions import SMALL_START
from dynascope.theory.domain import covers
from dynascope.theory.groups.composition_utility import Encoding, SequenceLength, maximal_utility
from dynascope.validation import checked, require
from dynascope.validation.bounded import OpenFraction

__all__ = ["composition_staircase", "construction_width"]

_THEORY = "irreducible representations of sequential group composition"
_REFERENCE = (
    "Sequential Group Composition: A Window into the Mechanics of Deep Learning (arXiv 2602.03655); "
    "Alternating Gradient Flows (arXiv 2506.06489)"
)
# Coefficients and singular values below this fraction of the largest are rounding errors.
_ROUND_OFF = 1e-9
_NAMES = {
    "utility": ("utility", "1"),
    "energy": ("energy of the representation", "1"),
    "construction_width": ("width of the explicit construction", "1"),
}
_TIE = 1e-9  # relative difference of utilities below which they belong to one jump
_RECYCLED = "neurons that learned an earlier part of the irrep {} are recycled, so the time is approximate"
_COUPLED = "the active neurons of the irrep {} acquire weight in {}, which may be learned earlier"


@covers(
    network="two-layer, activation z^k",
    data="composition of k elements of a finite group",
    start="small, random directions",
    gives="order, levels and times of the irreps",
    reference="arXiv:2602.03655",
    exact=False,
    assumes=(SMALL_START.costing("times have a relative error of up to 2.7/log(1/scale), levels far less"),),
)
def composition_staircase(
    group: Group, encoding: Encoding, sequence_length: SequenceLength, *, scale: OpenFraction
) -> Staircase:
    """Predict the loss staircase of a two-layer network with the activation zᵏ on the composition of k group elements.

    The network is f = Σ_i w_i (Σ_j u_ij · x_{g_j})ᵏ. The input is (x_{g_1}, …, x_{g_k}) with x_g[h] = x[g⁻¹ h], the
    target is x_{g_1 ⋯ g_k}, and the loss is the mean over all nᵏ sequences. In the homogeneity-normalised flow, each
    neuron has the learning rate ‖θ‖^(1−k). The network then learns one irreducible representation ρ (irrep) after
    another, in decreasing order of the utility U*. U* is the largest correlation of a unit-norm neuron with the target
    (`maximal_utility`). An irrep is learned at

        t = τ log(1/scale),  τ = 1/((k + 1) U*).

    The loss drops by half the energy E = (c d / n) ‖x̂(ρ)‖² of the encoding in ρ (Frobenius norm; c = 2 if ρ represents
    a conjugate pair, otherwise 1). If the singular values σ₁ ≥ σ₂ ≥ … of x̂(ρ) differ, ρ is learned in parts, one for
    each choice of indices (l₁, …, l_{k−1}, m). Each part has the utility U* σ_{l₁} ⋯ σ_{l_{k−1}} σ_m² / σ₁ᵏ⁺¹ and
    reduces the loss by (c d / 2n) σ_m² / dᵏ⁻¹. Parts of equal utility are learned in one jump.

    In the plain flow, the neurons of an irrep cannot become large before scaleᵏ⁻¹ t = τ / ((k − 1) ‖ϑ‖ᵏ⁻¹), where ‖ϑ‖
    is the largest norm of a neuron at unit scale.

    Args:
        group: Group of n elements.
        encoding: Encoding x of the group elements, shape (n,), with zero mean.
        sequence_length: Length k of the sequences, from 2 to 20.
        scale: Factor of the initial weights, between 0 and 1.

    Returns:
        A staircase with these features, one value per jump: `utility` (U* of the learned irrep or part), `energy`
        (twice the drop) and `construction_width` (width of the explicit network for all irreps learned so far, see
        `construction_width`). A jump is marked slow if it learns a later part of an irrep, whose time is approximate.
        It is also marked if active neurons of an earlier irrep acquire weight in the irrep, which may then be learned
        earlier. For k = 2, an earlier irrep ρ affects the irreps in ρ ⊗ ρ ⊗ ρ (in a cyclic group, the frequency ξ
        affects 3ξ).

    Raises:
        InputError: If the encoding is not n finite numbers with zero mean, k is not an integer from 2 to 20, or the
            scale is out of range.

    Assumptions: a small scale, and enough neurons with generic directions in the basin of each irrep. Gaussian initial
    weights may leave no neuron for a weak irrep, which is then learned much later; `neurons_near_irreps` places neurons
    in every basin.

    Source: arXiv 2602.03655 (order and levels). For k = 2 on D₃ with σ = (2.2, 1.2), integration of the flow confirms
    the predicted times of the first two parts to within 0.1 % and that of the third to within 5 %; the last part is
    learned 40 % earlier than predicted.

    Example:
        >>> from dynascope.groups import cyclic
        >>> angle = 2 * np.pi * np.arange(7) / 7
        >>> steps = composition_staircase(cyclic(7), np.cos(angle) + 0.5 * np.cos(2 * angle), 2, scale=1e-3)
        >>> steps.learned, steps.levels
        (('learns the irrep frequency 1', 'learns the irrep frequency 2'), array([2.1875, 0.4375, 0.    ]))
    """
    x, k = valid_encoding(group, encoding), sequence_length
    unit = time_unit(scale, degree=k + 1, normalised=True)
    coefficients = _coefficients(group, x)
    parts = [part for irrep, each in coefficients for part in _parts(group, x, irrep, each, k)]
    jumps = _jumps_of_equal_utility(parts)
    energies = np.array([sum(part.energy for part in jump) for jump in jumps])
    total = float(x @ x)
    left = sum(irrep.members * irrep.dimension * float(np.sum(np.abs(each) ** 2)) for irrep, each in coefficients)
    missed = left / group.order - float(energies.sum())
    lost = missed if missed > _ROUND_OFF * total else 0.0
    levels = np.append(np.cumsum(energies[::-1])[::-1], 0.0) / 2 + lost / 2
    utilities = np.array([max(part.utility for part in jump) for jump in jumps])
    times = 1 / ((k + 1) * utilities)
    begun = [{part.irrep.index: part.irrep for jump in jumps[: i + 1] for part in jump} for i in range(len(jumps))]
    return Staircase(
        accelerated_times=times,
        times=times * unit,
        levels=levels,
        learned=tuple("learns " + " and ".join(part.phrase for part in jump) for jump in jumps),
        slow=tuple(_slow(jumps, i, k) for i in range(len(jumps))),
        features={
            "utility": (("jump",), utilities),
            "energy": (("jump",), energies),
            "construction_width": (("jump",), np.array([_width(each.values(), k) for each in begun])),
        },
        names=_NAMES,
        theory=_THEORY,
        reference=_REFERENCE,
        warnings=_warnings(coefficients, jumps, lost),
        degree=k + 1,
        normalised=True,
    )


@checked
def construction_width(group: Group, encoding: Encoding, sequence_length: SequenceLength) -> int:
    """Number of neurons of an explicit two-layer network with the activation zᵏ that composes k elements exactly.

        Σ_ρ 2ᵏ⁻¹ Dᵏ⁺¹

    The sum is over the irreducible real representations in the encoding, with their real dimensions D. Each of the Dᵏ⁺¹
    products of k matrix entries is a linear combination of 2ᵏ⁻¹ k-th powers. The width is an upper bound: fast
    multiplication requires fewer neurons (6 instead of 16 for a complex pair of dimension one and k = 2).

    Args:
        group: Group of n elements.
        encoding: Encoding x of the group elements, shape (n,), with zero mean.
        sequence_length: Length k of the sequences, from 2 to 20.

    Raises:
        InputError: If the encoding is not n finite numbers with zero mean, k is not an integer from 2 to 20, or a
            Fourier coefficient of the encoding is singular but not zero. In the last case, the encoding contains only
            part of the representation, and no network of this kind is exact.

    Source: arXiv 2602.03655 (depth and width), by the polarisation identity.

    Example:
        >>> from dynascope.groups import cyclic
        >>> construction_width(cyclic(7), np.cos(2 * np.pi * np.arange(7) / 7), 2)
        16
    """
    x, k = valid_encoding(group, encoding), sequence_length
    coefficients = _coefficients(group, x)
    for irrep, coefficient in coefficients:
        singular = np.linalg.svd(coefficient, compute_uv=False)
        require(
            singular[-1] > _ROUND_OFF * singular[0],
            f"the Fourier coefficient of the irrep {irrep.name!r} is singular (its singular values are {singular})",
            argument="encoding",
            value=singular.tolist(),
            remedy="choose an encoding whose coefficients are invertible or zero",
        )
    return _width((irrep for irrep, _ in coefficients), k)


@dataclasses.dataclass(frozen=True)
class _Part:
    """One of the parts of an irrep, number `place` of `count`; each part has a single utility."""

    irrep: Irrep
    utility: float
    energy: float
    place: int
    count: int

    @property
    def phrase(self) -> str:
        whole = f"the irrep {self.irrep.name}"
        return whole if self.count == 1 else f"part {self.place} of {self.count} of {whole}"


def _coefficients(group: Group, x: np.ndarray) -> list[tuple[Irrep, np.ndarray]]:
    """Return the irreps in the encoding, one per conjugate pair, with their Fourier coefficients."""
    found = [(irrep, np.tensordot(x, irrep.matrices, axes=1)) for irrep in real_irreducible_representations(group)]
    largest = max(float(np.abs(each).max()) for _, each in found)
    return [(irrep, each) for irrep, each in found if not irrep.trivial and np.abs(each).max() > _ROUND_OFF * largest]


def _parts(group: Group, x: np.ndarray, irrep: Irrep, coefficient: np.ndarray, k: int) -> list[_Part]:
    """Return the parts of an irrep, largest utility first."""
    singular = np.linalg.svd(coefficient, compute_uv=False)
    relative = singular[singular > _ROUND_OFF * singular[0]] / singular[0]
    values, counts = _distinct(relative)
    best = maximal_utility(group, x, irrep, k)
    unit = irrep.members * irrep.dimension ** (2 - k) / group.order * singular[0] ** 2
    shares: list[tuple[float, float]] = []
    for path in itertools.combinations_with_replacement(range(len(values)), k - 1):
        times = [path.count(each) for each in set(path)]
        orders = math.factorial(k - 1) // math.prod(math.factorial(each) for each in times)
        ways = orders * math.prod(int(counts[each]) for each in path)
        factor = math.prod(float(values[each]) for each in path)
        for value, count in zip(values, counts, strict=True):
            shares.append((best * factor * float(value) ** 2, unit * ways * int(count) * float(value) ** 2))
    shares.sort(reverse=True)
    merged = [shares[0]]
    for utility, energy in shares[1:]:
        if utility < merged[-1][0] * (1 - _TIE):
            merged.append((utility, energy))
        else:
            merged[-1] = (merged[-1][0], merged[-1][1] + energy)
    return [_Part(irrep, *each, place=i + 1, count=len(merged)) for i, each in enumerate(merged)]


def _distinct(descending: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values and their multiplicities."""
    first = np.append(True, descending[1:] < descending[:-1] * (1 - _TIE))
    places = np.flatnonzero(first)
    return descending[places], np.diff(np.append(places, len(descending)))


def _jumps_of_equal_utility(parts: list[_Part]) -> list[list[_Part]]:
    """Group the parts into jumps of equal utility, in the order of learning."""
    jumps: list[list[_Part]] = []
    for part in sorted(parts, key=lambda each: -each.utility):
        if jumps and part.utility >= jumps[-1][0].utility * (1 - _TIE):
            jumps[-1].append(part)
        else:
            jumps.append([part])
    return [sorted(jump, key=lambda each: each.irrep.index) for jump in jumps]


def _width(irreps: Iterable[Irrep], k: int) -> int:
    return sum(2 ** (k - 1) * irrep.real_dimension ** (k + 1) for irrep in irreps)


def _slow(jumps: list[list[_Part]], place: int, k: int) -> str:
    reasons = [_RECYCLED.format(part.irrep.name) for part in jumps[place] if part.place > 1]
    earlier = {part.irrep.index: part.irrep for jump in jumps[:place] for part in jump}
    for part in jumps[place]:
        sources = [irrep for irrep in earlier.values() if irrep is not part.irrep and _coupled(irrep, part.irrep, k)]
        reasons += [_COUPLED.format(irrep.name, part.irrep.name) for irrep in sources[:1]]
    return "; ".join(reasons)


def _coupled(source: Irrep, target: Irrep, k: int) -> bool:
    """Whether active neurons of the source irrep acquire weight in the target irrep during fitting.

    The gradient is an average of products of 2k − 1 factors in the source and one in the target, taken separately over
    each group element of the sequence. It vanishes unless, for some m, the product of m source factors contains the
    target, and the product of the remaining source factors contains the trivial irrep.
    """
    character = source.character if source.members == 1 else 2 * np.real(source.character)
    return any(
        abs(np.mean(character**m * target.character)) > 0.5 and abs(np.mean(character ** (2 * k - 1 - m))) > 0.5
        for m in range(2, 2 * k)
    )


def _warnings(coefficients: list[tuple[Irrep, np.ndarray]], jumps: list[list[_Part]], lost: float) -> tuple[str, ...]:
    sentences = [
        f"The irreps {', '.join(names)} are learned at the same time because their utilities are equal."
        for jump in jumps
        if len(names := sorted({part.irrep.name for part in jump})) > 1
    ]
    parted = [
        irrep.name for irrep, _ in coefficients if any(p.irrep is irrep and p.count > 1 for j in jumps for p in j)
    ]
    if parted:
        sentences.append(
            f"The Fourier coefficients of {', '.join(parted)} have unequal singular values, so these irreps are "
            "learned in parts. The times of all parts after the first are approximate."
        )
    if len(coefficients) > 1:
        sentences.append(
            "An irrep is learned at the predicted time only if enough neurons start in its basin of attraction. "
            "Gaussian initial weights may leave no neuron for a weak irrep."
        )
    if lost:
        sentences.append(f"A Fourier coefficient is singular, so a loss of {lost / 2:.3g} remains.")
    return tuple(sentences)
