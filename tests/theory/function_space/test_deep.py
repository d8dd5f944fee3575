from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory.function_space import (
    conserved_matrices,
    deep_isotropic_flow,
    deep_isotropic_rate,
    isotropic_flow,
    layer_spectra,
)

TIMES = np.linspace(0.0, 4.0, 9)
START = np.array([[0.4, 0.1, -0.2], [0.0, 0.3, 0.2], [0.1, -0.1, 0.5]])


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def samples():
    draw = np.random.default_rng(3)
    return draw.normal(size=(7, 3)), draw.normal(size=(7, 3))


def test_it_gives_the_golden_numbers():
    np.testing.assert_allclose(
        layer_spectra(0.8, [0.5, -0.2]), [0.620501625367, 1.120501625367, 0.920501625367], atol=1e-9
    )
    np.testing.assert_allclose(deep_isotropic_rate(0.8, [0.5, -0.2]), 2.29786940184, atol=1e-9)


@settings(max_examples=12, deadline=None)
@given(
    exponent=st.floats(-12, 4),
    gaps=st.lists(st.floats(-3, 3, allow_subnormal=False), min_size=3, max_size=3),
)
def test_the_spectra_differ_by_the_gaps_and_multiply_to_the_square(exponent, gaps):
    size = 10.0**exponent
    spectra = np.asarray(layer_spectra(size, gaps))
    assert np.all(spectra >= 0)
    np.testing.assert_allclose(np.diff(spectra), gaps, atol=1e-12 * (1 + spectra.max()))
    # The least is known to the rounding of its logarithm.
    np.testing.assert_allclose(np.sum(np.log(spectra)), 2 * np.log(size), atol=1e-11)


def test_without_gaps_all_layers_are_alike():
    sizes = np.array([0.0, 1e-8, 0.3, 2.0])
    np.testing.assert_allclose(layer_spectra(sizes, [0.0, 0.0]), np.repeat(sizes[:, None] ** (2 / 3), 3, 1), rtol=1e-12)
    np.testing.assert_allclose(deep_isotropic_rate(sizes, [0.0, 0.0]), 3 * sizes ** (4 / 3), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("gaps", [[0.5, -0.2], [-0.6, 0.6], [0.0, 0.0]])
def test_the_map_moves_as_that_of_the_trained_layers(gaps):
    x, y = samples()
    left, sizes, right = np.linalg.svd(START)
    spectra = np.asarray(layer_spectra(sizes, gaps))
    draw = np.random.default_rng(1)
    hidden = [left, *(np.linalg.qr(draw.normal(size=(3, 3)))[0] for _ in gaps), right.T]
    weights = [(hidden[k] * np.sqrt(spectra[:, k])) @ hidden[k + 1].T for k in range(3)]
    for matrix, gap in zip(conserved_matrices(weights), gaps, strict=True):
        np.testing.assert_allclose(matrix, gap * np.eye(3), atol=1e-12)

    def velocity(_, theta):
        one, two, three = theta.reshape(3, 3, 3)
        gradient = x.T @ (x @ one @ two @ three - y) / len(x)
        moves = gradient @ (two @ three).T, one.T @ gradient @ three.T, (one @ two).T @ gradient
        return -np.concatenate([move.ravel() for move in moves])

    start = np.concatenate([each.ravel() for each in weights])
    path = solve_ivp(velocity, (0, TIMES[-1]), start, method="DOP853", t_eval=TIMES, rtol=1e-12, atol=1e-14).y.T
    one, two, three = np.moveaxis(path.reshape(-1, 3, 3, 3), 1, 0)
    # Steps of 1e-10, interpolated between them.
    np.testing.assert_allclose(
        deep_isotropic_flow(TIMES, x, y, START, gaps).coefficients, one @ two @ three, rtol=0, atol=1e-7
    )


@jit
def two_layers(times, start):
    return deep_isotropic_flow(times, *samples(), start, [-0.7])


@pytest.mark.slow
def test_two_layers_are_the_isotropic_network():
    x, y = samples()
    deep = two_layers(TIMES, START).coefficients
    np.testing.assert_allclose(deep, isotropic_flow(TIMES, x, y, START, -0.7, 3).coefficients, rtol=0, atol=1e-8)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: layer_spectra(-1.0, [0.5]), "singular_value"),
        (lambda: layer_spectra(1.0, []), "gaps"),
        (lambda: layer_spectra(1.0, [np.inf]), "gaps"),
        (lambda: deep_isotropic_rate(1.0, 0.5), "gaps"),
        (lambda: deep_isotropic_flow(TIMES, np.eye(3), np.ones((3, 2)), np.ones((3, 2)), [0.5]), "coefficients"),
        (lambda: deep_isotropic_flow([0.0, -1.0], np.eye(3), np.eye(3), START, [0.5]), "times"),
        (lambda: deep_isotropic_flow(TIMES, np.eye(3), np.ones((3, 2)), START, [0.5]), "targets"),
    ],
)
def test_bad_input_is_named(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument


@pytest.mark.slow
def test_without_gaps_nothing_beyond_the_rank_of_the_start_is_learned():
    inputs = np.eye(7, 3) * 7**0.5
    start = 0.4 * np.outer([1.0, 0.3, 0.2], [0.7, -0.2, 0.1])
    path = deep_isotropic_flow(np.linspace(0, 60, 9), inputs, inputs @ np.diag([2.0, 1.0, 0.5]), start, [0.0, 0.0])
    assert np.linalg.svd(np.asarray(path.coefficients)[-1])[1][1] < 1e-9


@pytest.mark.slow
def test_values_outside_the_domain_give_nan_where_they_are_traced():
    for function in (layer_spectra, deep_isotropic_rate):
        traced = jit(function)
        assert np.isfinite(traced(0.8, np.array([0.5]))).all()
        assert np.isnan(traced(-0.8, np.array([0.5]))).all()
        assert np.isnan(traced(0.8, np.array([np.inf]))).all()
    assert np.isfinite(two_layers(TIMES, START).loss).all()
    for outside in ((TIMES[::-1], START), (TIMES, START * np.nan)):
        assert all(np.isnan(each).all() for each in two_layers(*outside))
