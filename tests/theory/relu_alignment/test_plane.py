from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.relu_alignment import alignment_path, angle_within_arc, extremal_directions

X = np.array([[1, 0.2], [0.6, 0.9], [-0.5, 1], [-1, -0.3], [0.2, -1.1], [0.8, -0.7]])
Y = np.array([1, -0.7, 0.9, -0.6, 0.8, -1.1])
GOLDEN = [
    (1, 1.3009471709, "interior", 0.0812745689),
    (1, 2.1112158271, "interior", 0.0874642784),
    (1, 3.9935589808, "kink", 0.0043900307),
    (1, 5.6951827036, "kink", 0.0305085108),
    (-1, 0.1798534998, "kink", 0.0390566540),
    (-1, 1.7681918866, "kink", -0.0725629700),
    (-1, 3.6052402626, "kink", 0.0611191914),
    (-1, 4.9097845402, "kink", 0.0153624306),
]


def drawn(seed: int):
    """Generic data, or data on a grid, where boundaries coincide and drifts vanish."""
    draw = np.random.default_rng(seed)
    samples = int(draw.integers(1, 9))
    if seed % 2:
        return draw.normal(size=(samples, 2)), draw.normal(size=samples)
    x, r = draw.integers(-2, 3, size=(samples, 2)).astype(float), draw.integers(-2, 3, size=samples).astype(float)
    x[0], r[0] = (1.0, 2.0), 1.0
    return x, r


def unit(angle):
    return np.array([np.cos(angle), np.sin(angle)])


def within(found, sign, angle):
    """The attractors of that sign whose basin has the angle."""
    begin, end = found.basins.T
    return np.flatnonzero((found.signs == sign) & ((angle - begin) % (2 * np.pi) < end - begin))


def test_the_golden_table():
    found = extremal_directions(X, Y)
    assert [(sign, kind) for sign, _, kind, _ in GOLDEN] == list(zip(found.signs, found.kinds, strict=True))
    # To the digits of the table.
    np.testing.assert_allclose(found.angles, [angle for _, angle, _, _ in GOLDEN], atol=6e-11)
    np.testing.assert_allclose(found.rates, [rate for *_, rate in GOLDEN], atol=6e-11)


def test_a_ring_of_neurons_ends_in_the_attractors_of_their_basins():
    found = extremal_directions(X, Y)
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    for sign in (1, -1):
        w = np.array([unit(angle) for angle in angles])
        # Euler steps of the projected flow to the time 150, the last of them short, as they rattle about kinks.
        for step in np.repeat([0.05, 0.002], [2900, 2500]):
            drift = sign * ((w @ X.T > 0) * Y) @ X / len(X)
            w = w + step * drift
            w /= np.linalg.norm(w, axis=1, keepdims=True)
        expected = [found.directions[within(found, sign, angle)[0]] for angle in angles]
        # What the slowest still have to go at this time.
        assert np.linalg.norm(w - expected, axis=1).max() < 9e-4


@given(st.integers(0, 10**6))
def test_basins_part_the_circle(seed):
    x, r = drawn(seed)
    assume(np.any(r @ x) or len(np.unique(x, axis=0)) == len(x))  # else the residuals of equal inputs may all cancel
    found = extremal_directions(x, r)
    for sign in (1, -1):
        basins = found.basins[found.signs == sign]
        begin, end = basins[np.argsort(basins[:, 0])].T
        # Up to the rounding of angles.
        np.testing.assert_allclose(end, np.append(begin[1:], begin[0] + 2 * np.pi), atol=1e-12)
        np.testing.assert_allclose(found.shares[found.signs == sign].sum(), 1.0)


@given(st.integers(0, 10**6), st.floats(0, 6.28), st.sampled_from([1, -1]))
def test_a_path_ends_in_the_attractor_of_its_basin(seed, angle, sign):
    x, r = drawn(seed)
    assume(np.any(r @ x) or len(np.unique(x, axis=0)) == len(x))  # else the residuals of equal inputs may all cancel
    found = extremal_directions(x, r)
    begin, end = found.basins.T
    if np.min(np.abs(np.sin((angle - np.append(begin, end)) / 2))) < 1e-6:
        return  # On the border of two basins.
    (basin,) = within(found, sign, angle)
    path = alignment_path(x, r, unit(angle), sign=sign)
    assert path.kind == found.kinds[basin]
    # Both are exact up to rounding.
    np.testing.assert_allclose(path.rate, found.rates[basin], atol=1e-9)
    if path.kind != "dead":
        np.testing.assert_allclose(path.end, found.directions[basin], atol=1e-7)


@given(st.integers(0, 10**6), st.floats(0, 6.28))
def test_all_turns_with_the_data(seed, angle):
    x, r = drawn(2 * seed + 1)
    turn = np.array([unit(angle), unit(angle + np.pi / 2)])
    here, there = extremal_directions(x, r), extremal_directions(x @ turn, r)
    directions = here.directions @ turn
    for sign in (1, -1):
        mine, theirs = here.signs == sign, there.signs == sign
        # Up to rounding; each direction has its counterpart.
        distances = np.linalg.norm(directions[mine][:, None] - there.directions[theirs], axis=2)
        assert distances.min(axis=1).max() < 1e-7
        np.testing.assert_allclose(np.sort(here.rates[mine]), np.sort(there.rates[theirs]), atol=1e-9)
        np.testing.assert_allclose(np.sort(here.shares[mine]), np.sort(there.shares[theirs]), atol=1e-9)


def test_orthogonal_inputs_are_reached_from_one_side_only():
    found = extremal_directions(np.eye(2), np.array([1.0, 1.0]))
    positive = found.signs == 1
    assert [kind for kind, here in zip(found.kinds, positive, strict=True) if here] == [
        *("semi-stable", "interior", "semi-stable", "dead")
    ]
    np.testing.assert_allclose(found.shares[positive], 0.25)


@pytest.mark.parametrize("away", [0.3, -2.9, np.pi])
def test_the_angle_within_an_arc_solves_its_equation(away):
    drift, times = np.array([0.3, -0.4]), np.linspace(0, 10, 2001)
    angles = angle_within_arc(np.arctan2(-0.4, 0.3) + away, drift, times)
    speeds = np.gradient(angles, times, edge_order=2)
    # Differences of second order, with a step of 5e-3.
    np.testing.assert_allclose(speeds, -0.5 * np.sin(angles - np.arctan2(-0.4, 0.3)), atol=1e-5)


def test_without_drift_an_angle_stays():
    np.testing.assert_array_equal(angle_within_arc([1.0, 2.0], np.zeros(2), 3.0), [1.0, 2.0])


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("times", lambda: angle_within_arc(0.0, np.ones(2), -1.0)),
        ("times", lambda: angle_within_arc(0.0, np.ones(2), [np.nan])),
        ("start", lambda: angle_within_arc(np.inf, np.ones(2), 1.0)),
        ("drift", lambda: angle_within_arc(0.0, np.ones(3), 1.0)),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_what_is_no_angle_is_refused_by_name(argument, call):
    with pytest.raises(InputError) as refusal:
        call()
    assert refusal.value.argument == argument
