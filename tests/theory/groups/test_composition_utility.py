from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from dynascope.errors import InputError
from dynascope.groups import (
    Group,
    Irrep,
    cyclic,
    dihedral,
    encoding_from_fourier,
    find_group,
    fourier_transform,
    group_from_table,
    irreducible_representations,
    real_irreducible_representations,
)
from dynascope.tasks import group_composition
from dynascope.theory.groups import composition_utility, maximal_utility, maximisers

# Golden numbers are stored with 12 decimals or 13 digits.
GOLDEN = 5e-12

# The encoding is cos(g² + 1) less its mean. Operator norm, energy, U* for k = 2 and for k = 3.
TABLE = {
    ("C7", "frequency 1"): (2.176230610439, 1.353137048518, 0.1514609930223, 0.08582718150334),
    ("C7", "frequency 2"): (1.205151685733, 0.414968738750, 0.02572238258477, 0.008071830662808),
    ("C7", "frequency 3"): (1.310106699275, 0.490394160996, 0.03304502296388, 0.01127280155337),
    ("C8", "frequency 4"): (0.957548220028, 0.114612324210, 0.01493465150769, 0.004925994322793),
    ("D3", "sign"): (0.875133199584, 0.127643019502, 0.01755269140132, 0.006109777660369),
    ("D3", "2d"): (2.156742711520, 1.615596490551, 0.1857809833773, 0.1126917511420),
    ("D4", "2d"): (1.582798339536, 0.714342229413, 0.04769522404904, 0.01838754048872),
    ("Q8", "2d"): (1.750823628955, 1.532691689854, 0.04564679974688, 0.01376451454774),
    ("S4", "sign"): (2.933762532208, 0.358623441474, 0.08266204103834, 0.04822903979059),
    ("S4", "2d"): (2.853040626379, 0.895838167878, 0.05375763087881, 0.02156803662306),
    ("S4", "3d-1"): (4.777530895588, 3.079598485867, 0.2061014923353, 0.1130580645857),
    ("S4", "3d-2"): (6.971928542697, 6.465172291915, 0.6405151483975, 0.5127424079430),
}


def golden_encoding(order: int) -> np.ndarray:
    x = np.cos(np.arange(order) ** 2 + 1.0)
    return x - x.mean()


def named(group: Group, name: str) -> Irrep:
    return next(irrep for irrep in irreducible_representations(group) if irrep.name == name)


def direct_utility(group: Group, x: np.ndarray, u: np.ndarray, w: np.ndarray) -> float:
    """E⟨f, y⟩ over all sequences, without any representation."""
    task = group_composition(group, x, sequence_length=len(u))
    return float(np.mean((task.inputs @ u.ravel()) ** len(u) * (task.targets @ w)))


@pytest.mark.parametrize(("group_name", "irrep_name"), TABLE)
def test_golden_utilities(group_name, irrep_name):
    group = find_group(group_name)
    x, irrep = golden_encoding(group.order), named(group, irrep_name)
    coefficient = fourier_transform(group, x)[irrep.index]
    energy = irrep.members * irrep.dimension / group.order * np.sum(np.abs(coefficient) ** 2)
    got = [np.linalg.norm(coefficient, 2), energy, *(maximal_utility(group, x, irrep, k) for k in (2, 3))]
    np.testing.assert_allclose(got, TABLE[group_name, irrep_name], rtol=GOLDEN)


@given(st.sampled_from([("C5", 2), ("C4", 3), ("D3", 2), ("D3", 3), ("Q8", 2), ("C2", 4)]), st.integers(0, 1000))
def test_the_utility_is_the_correlation_of_neuron_and_target(case, seed):
    group, k = find_group(case[0]), case[1]
    draw = np.random.default_rng(seed)
    x, u, w = draw.normal(size=group.order), draw.normal(size=(k, group.order)), draw.normal(size=group.order)
    x -= x.mean()
    # Both are sums of nᵏ terms of order one, with cancellation.
    assert np.isclose(composition_utility(group, x, u, w), direct_utility(group, x, u, w), rtol=1e-10, atol=1e-12)


@given(
    st.sampled_from([(name, k) for name in ("C7", "C8", "D4", "Q8", "A4") for k in (2, 3)] + [("S4", 2), ("A5", 2)]),
    st.integers(0, 1000),
)
def test_the_maximisers_attain_the_maximum_for_every_free_vector(case, seed):
    group, k = find_group(case[0]), case[1]
    draw = np.random.default_rng(seed)
    x = draw.normal(size=group.order)
    x -= x.mean()
    for irrep in real_irreducible_representations(group)[1:]:
        direction = draw.normal(size=irrep.dimension)
        if irrep.kind != "real":
            direction = direction + 1j * draw.normal(size=irrep.dimension)
        u, w = maximisers(group, x, irrep, k, direction=direction)
        assert np.isclose(np.sum(u**2) + np.sum(w**2), 1)
        assert np.isclose(composition_utility(group, x, u, w), maximal_utility(group, x, irrep, k), rtol=1e-10)


def test_a_maximiser_is_seen_by_the_task_itself():
    group, x = find_group("Q8"), golden_encoding(8)
    irrep = named(group, "2d")
    u, w = maximisers(group, x, irrep, 3)
    assert np.isclose(direct_utility(group, x, u, w), maximal_utility(group, x, irrep, 3), rtol=1e-10)


def numerical_maximum(group: Group, x: np.ndarray, irrep: Irrep, k: int, starts: int = 3) -> list[float]:
    """Local maxima of the utility of unit neurons within an irrep, by ascent from random starts.

    U = (k!/nᵏ) ⟨p₁ * ⋯ * p_k, q⟩ with the convolutions of p_j[g] = u_j · x_g and q[g] = w · x_g: no Fourier transform.
    """
    n = group.order
    projection = (irrep.members * irrep.dimension / n * irrep.character.real)[group.table[group.inverse]]
    values, vectors = np.linalg.eigh(projection)
    seen = x[group.table[group.inverse]] @ vectors[:, values > 0.5]
    unit = np.eye(n)[0]

    def negative_utility(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(k + 1, -1)
        p, q = weights[:-1] @ seen.T, weights[-1] @ seen.T
        left = [unit]
        for each in p:
            left.append(left[-1] @ each[group.table[group.inverse]])
        right = [unit]
        for each in p[::-1]:
            right.insert(0, each @ right[0][group.table[group.inverse]])
        slopes = [(left[j] @ q[group.table])[group.table] @ right[j + 1] for j in range(k)]
        value = math.factorial(k) / n**k * float(left[-1] @ q)
        gradient = math.factorial(k) / n**k * np.array([*slopes, left[-1]]) @ seen
        norm = np.linalg.norm(flat)
        scaled = value / norm ** (k + 1)
        return -scaled, (k + 1) * scaled * flat / norm**2 - gradient.ravel() / norm ** (k + 1)

    draw = np.random.default_rng(0)
    found = []
    for _ in range(starts):
        start = draw.normal(size=(k + 1) * seen.shape[1])
        done = minimize(negative_utility, start, jac=True, method="L-BFGS-B", options={"ftol": 0.0, "gtol": 1e-10})
        found.append(-float(done.fun))
    return found


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", ["C7", "C8", "D3", "D4", "Q8", "S4", pytest.param("A5", marks=pytest.mark.slow)])
def test_the_maximal_utility_is_what_an_optimiser_finds(name, k):
    group = find_group(name)
    x = golden_encoding(group.order)
    for irrep in real_irreducible_representations(group)[1:]:
        best = max(numerical_maximum(group, x, irrep, k))
        # At a gradient of 1e-10 the value is exact to its square; what is left is rounding.
        assert best == pytest.approx(maximal_utility(group, x, irrep, k), rel=1e-8), irrep


@given(st.sampled_from(["C6", "D4", "Q8", "A4"]), st.integers(0, 1000), st.randoms(use_true_random=False))
def test_renumbering_the_elements_keeps_the_utilities(name, seed, random):
    group = find_group(name)
    x = np.random.default_rng(seed).normal(size=group.order)
    x -= x.mean()
    order = [0, *random.sample(range(1, group.order), group.order - 1)]
    renumbered = group_from_table(np.argsort(order)[group.table[np.ix_(order, order)]])
    before = [maximal_utility(group, x, irrep, 3) for irrep in irreducible_representations(group)]
    after = [maximal_utility(renumbered, x[order], irrep, 3) for irrep in irreducible_representations(renumbered)]
    np.testing.assert_allclose(np.sort(after), np.sort(before), rtol=1e-9, atol=1e-15)


def test_the_length_of_the_sequence_can_change_the_order():
    group = dihedral(3)
    _, sign, plane = irreducible_representations(group)
    x = encoding_from_fourier(group, {"sign": 1.0, "2d": 1.2})
    # The ratio is 1.2ᵏ⁺¹ 2^((1−k)/2).
    ratios = [maximal_utility(group, x, plane, k) / maximal_utility(group, x, sign, k) for k in (2, 6)]
    np.testing.assert_allclose(ratios, [1.2**3 / 2**0.5, 1.2**7 / 2**2.5], rtol=1e-10)
    assert ratios[0] > 1 > ratios[1]


WAVE = np.cos(2 * np.pi * np.arange(5) / 5)


@pytest.mark.parametrize("function", [maximal_utility, maximisers])
@pytest.mark.parametrize(
    ("x", "k", "message"),
    [
        (WAVE + 0.1, 2, r"mean 0\.1.*subtract the mean"),
        (WAVE[:4], 2, r"shape \(4,\)"),
        (WAVE * np.nan, 2, "choose finite numbers"),
        (np.zeros(5), 2, "encoding is zero"),
        (WAVE, 1, "sequence_length is"),
        (WAVE, 2.5, "sequence_length is"),
    ],
)
def test_bad_input_is_refused(function, x, k, message, unchecked_types):
    group = cyclic(5)
    with pytest.raises(InputError, match=message):
        function(group, x, irreducible_representations(group)[1], k)


def test_maximisers_need_a_component_and_a_direction(unchecked_types):
    group = dihedral(3)
    _, sign, plane = irreducible_representations(group)
    x = sign.character.real
    with pytest.raises(InputError, match="no component in the irrep '2d'"):
        maximisers(group, x, plane, 2)
    for direction in ([1.0, 2.0], [0.0], [1j], [np.nan]):
        with pytest.raises(InputError, match="direction is"):
            maximisers(group, x, sign, 2, direction=direction)


def test_vectors_that_do_not_fit_are_refused(unchecked_types):
    with pytest.raises(InputError, match="input_vectors has shape"):
        composition_utility(cyclic(5), WAVE, np.ones((2, 4)), np.ones(5))
    with pytest.raises(InputError, match="input_vectors has length 1"):
        composition_utility(cyclic(5), WAVE, np.ones((1, 5)), np.ones(5))
