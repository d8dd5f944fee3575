from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_training import FIRST, SECOND, B, trained

from dynascope.errors import InputError
from dynascope.theory.regimes import alignment_plateau, silent_alignment


def alignment(w, a):
    matrix = a @ a * np.eye(len(B)) + w.T @ w
    aligned = np.eye(len(B)) + np.outer(B, B) / (B @ B)
    return np.sum(matrix * aligned) / np.linalg.norm(matrix) / np.linalg.norm(aligned)


def test_golden_plateau():
    path = alignment_plateau([0.0, 1.0, 2.0, 4.0], FIRST, SECOND, B)
    expected = [0.8162138749, 0.9524736187, 0.9943671428, 0.9999359650]
    # Stored with ten decimals, and the trace with ten digits after the point.
    np.testing.assert_allclose(1 - path.misalignment, expected, rtol=0, atol=6e-11)
    trace = [12.7268656052, 46.3928675700, 378.0924702201, 33086.1825058614]
    np.testing.assert_allclose(path.kernel_trace, trace, rtol=1e-12, atol=6e-11)
    times = [0.9740446382, 1.7396517355, 2.7748342283]
    np.testing.assert_allclose(alignment_plateau(times, FIRST, SECOND, B).misalignment, [0.05, 0.01, 0.001], rtol=1e-9)


def test_golden_rates_and_times():
    found = [silent_alignment(FIRST, SECOND, B, scale=scale) for scale in (1e-2, 1e-3, 1e-4)]
    numbers = [found[0].rate, found[0].growing, found[0].prefactor, *(each.half_time for each in found)]
    expected = [1.1224972160, 2.0824343706, 0.5086705396, 4.1360517145, 6.1873984600, 8.2387047076]
    np.testing.assert_allclose(numbers, expected, rtol=0, atol=6e-11)
    assert len({each.alignment_time for each in found}) == 1


def test_the_prefactor_is_the_limit_of_the_misalignment():
    found = silent_alignment(FIRST, SECOND, B, scale=1e-3)
    late = alignment_plateau(6.0, FIRST, SECOND, B).misalignment[0] * np.exp(12 * found.rate)
    # Corrections are of the order of exp(−2 s t).
    np.testing.assert_allclose([found.prefactor, late], [0.5086705396, 0.50866970], rtol=0, atol=6e-9)


def test_the_full_flow_is_on_the_plateau_until_the_loss_falls():
    w, a, _ = trained(1e-4, [1.0, 2.0])
    path = alignment_plateau([1.0, 2.0], FIRST, SECOND, B)
    np.testing.assert_allclose([alignment(*each) for each in zip(w, a, strict=True)], 1 - path.misalignment, atol=1e-6)
    trace = 3 * a[1] @ a[1] + np.sum(w[1] ** 2)
    np.testing.assert_allclose([trace / 1e-8, alignment(w[1], a[1])], [378.0921, 0.9943671426], rtol=1e-7)
    np.testing.assert_allclose(a[1] / 1e-4, path.second[1], rtol=1e-5)
    np.testing.assert_allclose(w[1] / 1e-4, path.first[1], rtol=1e-5)


@pytest.mark.parametrize(
    ("scale", "reached", "digits"), [(1e-2, 0.56088, 5), (1e-3, 0.561243, 6), (1e-4, 0.5612485, 7)]
)
def test_half_of_the_target_is_learned_at_the_half_time(scale, reached, digits):
    half = silent_alignment(FIRST, SECOND, B, scale=scale).half_time
    w, a, maps = trained(scale, [half, 4 * half])
    np.testing.assert_allclose(maps[0] @ B / np.linalg.norm(B), reached, rtol=0, atol=0.6 * 10.0**-digits)
    np.testing.assert_allclose(3 * a[1] @ a[1] + np.sum(w[1] ** 2), 4 * np.linalg.norm(B), rtol=10 * scale)


def test_the_plateau_does_not_depend_on_the_covariance():
    covariance = np.array([[1.5, 0.4, 0], [0.4, 0.8, 0.2], [0, 0.2, 0.3]])
    w, a, _ = trained(1e-5, [2.0], covariance)
    expected = alignment_plateau(2.0, FIRST, SECOND, B)
    np.testing.assert_allclose(alignment(w[0], a[0]), 1 - expected.misalignment[0], atol=1e-7)


@given(seed=st.integers(0, 1000), tolerance=st.floats(1e-9, 1e-6))
def test_the_misalignment_is_the_tolerance_at_the_alignment_time(seed, tolerance):
    rng = np.random.default_rng(seed)
    first, second, b = rng.normal(size=(5, 3)), rng.normal(size=5), rng.normal(size=3)
    found = silent_alignment(first, second, b, scale=1e-3, tolerance=tolerance)
    reached = alignment_plateau(found.alignment_time, first, second, b).misalignment[0]
    # The next term of the expansion in exp(−2 s t).
    smallness = np.exp(-2 * found.rate * found.alignment_time) * (second @ second + np.sum(first**2)) / found.growing
    np.testing.assert_allclose(reached, tolerance, rtol=0, atol=smallness**2)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("arguments", "options", "name"),
    [
        ((FIRST, SECOND, 0 * B), {"scale": 1e-3}, "correlation"),
        ((FIRST, SECOND[:2], B), {"scale": 1e-3}, "second"),
        ((FIRST, -FIRST[:, 0], [1.0, 0.0, 0.0]), {"scale": 1e-3}, "second"),
        ((FIRST, SECOND, B), {"scale": 0.0}, "scale"),
        ((FIRST, SECOND, B), {"scale": 1e-3, "tolerance": 1.0}, "tolerance"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, options, name):
    with pytest.raises(InputError) as caught:
        silent_alignment(*arguments, **options)
    assert caught.value.argument == name
