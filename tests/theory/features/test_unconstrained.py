from __future__ import annotations

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory.features.unconstrained import class_modes, collapse_end, collapse_trajectory

bounded = settings(max_examples=10, deadline=None)


def integrated(features, classifier, sizes, times, feature_rate=1.0, classifier_rate=1.0, bias=None, bias_rate=1.0):
    """H, W and bias at the times, by integrating the gradient flow of all weights."""
    targets = np.repeat(np.eye(len(sizes)), sizes, axis=0)
    n, (p, c) = len(targets), classifier.shape
    cut, end = n * p, n * p + p * c

    def velocity(_, vector):
        h, w, b = vector[:cut].reshape(n, p), vector[cut:end].reshape(p, c), vector[end:]
        residual = (targets - h @ w - b) / n
        moved = bias_rate * residual.sum(0) if bias is not None else np.zeros(c)
        return np.concatenate(
            [(feature_rate * residual @ w.T).ravel(), (classifier_rate * h.T @ residual).ravel(), moved]
        )

    start = np.concatenate([features.ravel(), classifier.ravel(), np.zeros(c) if bias is None else bias])
    path = solve_ivp(velocity, (0, times[-1]), start, "DOP853", times, rtol=1e-11, atol=1e-13).y.T
    return [(each[:cut].reshape(n, p), each[cut:end].reshape(p, c), each[end:]) for each in path], targets


def aligned(modes, sizes, a, b, p, seed=0):
    r = np.linalg.qr(np.random.default_rng(seed).normal(size=(p, len(modes.strength))))[0]
    features = np.repeat(modes.sample_vector, sizes, axis=0) * a @ r.T
    return features, r * b @ modes.output_vector.T


def class_means(features, sizes):
    return np.array([rows.mean(0) for rows in np.split(features, np.cumsum(sizes)[:-1])])


def x64(function, *arguments, **options):
    with jax.enable_x64(True):
        return jax.device_get(function(*arguments, **options))


@pytest.mark.slow
def test_the_golden_numbers_of_forty_samples_in_four_classes():
    times, n, s0 = np.array([0.0, 20.0, 40.0, 60.0, 150.0]), 40, 1e-3
    collapse = x64(collapse_trajectory, times, [10] * 4, s0**0.5, s0**0.5)
    # Twelve digits are given.
    np.testing.assert_allclose(collapse.singular_value[3], 2.550709998652, rtol=1e-12)
    end = x64(collapse_end, [10] * 4)
    np.testing.assert_allclose(end.singular_value, 3.162277660168, rtol=1e-12)
    np.testing.assert_allclose(end.class_mean_gram, 0.316227766017 * np.eye(4), atol=1e-12)
    assert max(end.nc2_angle, end.nc2_norm, end.nc3_centred) < 1e-14
    np.testing.assert_allclose(x64(collapse_end, [3] * 10).nc3, 0.320364486014, rtol=1e-11)
    # And the logistic, with its loss.
    last = np.sqrt(n / 4)
    logistic = last / (1 + (last / s0 - 1) * np.exp(-2 * last * times / n))
    np.testing.assert_allclose(collapse.singular_value, np.stack([logistic] * 4, 1), rtol=1e-12)
    np.testing.assert_allclose(collapse.loss, 4 * (last - logistic) ** 2 / (2 * n), rtol=1e-9, atol=1e-20)


CASES = {
    "equal classes": ([5, 5, 5], {}, [0.1] * 3, [0.1] * 3),
    "unequal classes": ([2, 7, 4], {}, [0.1, 0.2, 0.3], [0.3, 0.1, 0.0]),
    "layer rates": ([3, 5, 4], {"feature_rate": 2.0, "classifier_rate": 0.3}, [0.2, 0.1, 0.1], [0.05, 0.4, 0.1]),
    "bias": ([2, 7, 4], {"bias": True, "feature_rate": 0.7}, [0.1, 0.2], [0.2, 0.3]),
    "bias, two classes": ([6, 3], {"bias": True}, [0.1], [0.1]),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_trajectory_and_its_end_are_those_of_direct_integration(case):
    sizes, options, a, b = CASES[case]
    modes = class_modes(sizes, bias=options.get("bias", False))
    start = aligned(modes, sizes, a, b, p=5)
    rates = {name: value for name, value in options.items() if name != "bias"}
    bias = modes.mean_target if options.get("bias") else None
    times = np.array([0.0, 3.0, 10.0, 20.0, 400.0])
    path, targets = integrated(*start, sizes, times, **rates, bias=bias)
    collapse = x64(collapse_trajectory, times, sizes, a, b, **options)
    for i, (h, w, shift) in enumerate(path):
        means, outputs = class_means(h, sizes), h @ w + shift
        # The integrator keeps each step within 1e-11; the flow is stable.
        assert np.abs(h - np.repeat(means, sizes, axis=0)).max() < 1e-9
        np.testing.assert_allclose(collapse.class_mean_gram[i], means @ means.T, atol=1e-8)
        np.testing.assert_allclose(collapse.classifier_gram[i], w.T @ w, atol=1e-8)
        np.testing.assert_allclose(collapse.loss[i], np.sum((outputs - targets) ** 2) / (2 * len(h)), atol=1e-8)
        values = np.linalg.svd(h @ w, compute_uv=False)[: len(a)]
        np.testing.assert_allclose(np.sort(collapse.singular_value[i]), np.sort(values), atol=1e-8)
        np.testing.assert_allclose(shift, modes.mean_target if bias is not None else 0, atol=1e-8)
        check_metrics(collapse, i, means, w)
    end = x64(collapse_end, sizes, initial_features=a, initial_classifier=b, **options)
    np.testing.assert_allclose(end.class_mean_gram, collapse.class_mean_gram[-1], atol=1e-8)
    np.testing.assert_allclose(end.classifier_gram, collapse.classifier_gram[-1], atol=1e-8)
    np.testing.assert_allclose(end.nc3, collapse.nc3[-1], atol=1e-8)


def check_metrics(collapse, i, means, classifier):
    c, m = len(means), means - means.mean(0)
    norms = np.linalg.norm(m, axis=1)
    cosines = m @ m.T / np.outer(norms, norms)
    assert collapse.nc2_angle[i] == pytest.approx(np.abs(cosines - (c * np.eye(c) - 1) / (c - 1)).max(), abs=1e-8)
    assert collapse.nc2_norm[i] == pytest.approx(norms.std() / norms.mean(), abs=1e-8)
    for found, w in ((collapse.nc3, classifier.T), (collapse.nc3_centred, classifier.T - classifier.T.mean(0))):
        distance = np.linalg.norm(w / np.linalg.norm(w) - m / np.linalg.norm(m))
        assert found[i] == pytest.approx(distance, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("sizes", [[4, 4, 4], [2, 6, 4]])
def test_a_random_small_start_ends_where_theory_says(sizes, bias):
    draw, scale, rates = np.random.default_rng(3), 1e-4, {"feature_rate": 1.5, "classifier_rate": 0.5}
    features, classifier = scale * draw.normal(size=(12, 6)), scale * draw.normal(size=(6, 3))
    path, _ = integrated(features, classifier, sizes, [3000.0], **rates, bias=np.zeros(3) if bias else None)
    # One zero for each mode, of which there is a program.
    nothing = np.zeros(len(sizes) - bias)
    limit = x64(collapse_end, sizes, initial_features=nothing, initial_classifier=nothing, bias=bias, **rates)
    (h, w, shift), end = path[0], limit
    means = class_means(h, sizes)
    # The conserved quantity is of the order 1e-7. The bias moves a little while the features grow.
    tolerance = 1e-3 if bias else 1e-6
    np.testing.assert_allclose(means @ means.T, end.class_mean_gram, atol=tolerance)
    np.testing.assert_allclose(w.T @ w, end.classifier_gram, atol=tolerance)
    assert np.sum((h - np.repeat(means, sizes, axis=0)) ** 2) / 12 < 10 * scale**2
    np.testing.assert_allclose(shift, np.array(sizes) / 12 if bias else 0, atol=tolerance)


def test_the_end_differs_from_that_of_a_vanishing_start_by_the_conserved_quantity():
    sizes, draw = [3, 3], np.random.default_rng(0)
    features, classifier = 0.1 * draw.normal(size=(6, 3)), 0.1 * draw.normal(size=(3, 2))
    path, targets = integrated(features, classifier, sizes, [2000.0])
    h, _, _ = path[0]
    conserved = features.T @ features - classifier @ classifier.T
    difference = h @ h.T @ h @ h.T - targets @ targets.T
    np.testing.assert_allclose(difference, h @ conserved @ h.T, atol=1e-8)
    assert np.abs(difference).max() > 1e-3


@pytest.mark.slow
@bounded
@given(st.permutations([2, 5, 9]), st.booleans(), st.floats(0.1, 10))
def test_renaming_classes_and_changing_the_unit_of_rates_changes_nothing_else(sizes, bias, rate):
    times, start = np.array([1.0, 2.0, 9.0, 20.0, 50.0]), ([0.2] * (3 - bias), [0.1] * (3 - bias))
    plain = x64(collapse_trajectory, times, [2, 5, 9], *start, bias=bias)
    rates = {"feature_rate": rate, "classifier_rate": rate}
    renamed = x64(collapse_trajectory, times / rate, sizes, *start, bias=bias, **rates)
    places = [[2, 5, 9].index(size) for size in sizes]
    np.testing.assert_allclose(renamed.singular_value, plain.singular_value, rtol=1e-9)
    expected = plain.class_mean_gram[:, places][:, :, places]
    np.testing.assert_allclose(renamed.class_mean_gram, expected, atol=1e-12)
    np.testing.assert_allclose(renamed.nc3, plain.nc3, rtol=1e-9)


@pytest.mark.slow
@bounded
@given(st.lists(st.integers(1, 30), min_size=3, max_size=3), st.floats(1e-200, 0.05), st.booleans())
def test_the_loss_never_increases_and_everything_stays_finite(sizes, start, bias):
    starts = [start] * (3 - bias), [start / 2] * (3 - bias)
    collapse = x64(collapse_trajectory, np.array([0.1, 1.0, 10.0, 1e3, 1e6]), sizes, *starts, bias=bias)
    assert all(np.isfinite(each).all() for each in collapse)
    # Rounding in the sum over modes.
    assert np.all(np.diff(collapse.loss) <= 1e-15 * collapse.loss[0])
    assert np.all((collapse.nc3_centred >= 0) & (collapse.nc3_centred <= 2))


@pytest.mark.slow
def test_it_compiles_and_differentiates_with_respect_to_start_and_rate():
    @jit
    @functools.partial(jax.value_and_grad, argnums=(0, 1))
    def loss(start, rate):
        return collapse_trajectory(5.0, [4, 2], start, 0.3, feature_rate=rate).loss

    with jax.enable_x64(True):
        _, slopes = loss(0.2, 1.5)
        step = 1e-6
        central = [
            (float(loss(0.2 + step, 1.5)[0]) - float(loss(0.2 - step, 1.5)[0])) / (2 * step),
            (float(loss(0.2, 1.5 + step)[0]) - float(loss(0.2, 1.5 - step)[0])) / (2 * step),
        ]
    np.testing.assert_allclose(slopes, central, rtol=1e-7)


def test_more_than_two_classes_of_unequal_sizes_do_not_become_a_simplex():
    end = x64(collapse_end, [2, 8, 8])
    assert end.nc2_angle > 0.05
    assert end.nc2_norm > 0.05
    assert end.nc3_centred > 0.05


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        *(("class_sizes", {"class_sizes": bad}) for bad in ([5], [5, 0], [5, -1], [2.5, 3], [[2, 3]], [np.nan, 2])),
        *(("initial_features", {"initial_features": bad}) for bad in (0.0, -1.0, np.nan, [0.1, 0.1, 0.1])),
        *(("initial_classifier", {"initial_classifier": bad}) for bad in (-1.0, np.inf, [0.1])),
        *(("feature_rate", {"feature_rate": bad}) for bad in (0.0, [1.0, 2.0])),
        *(("classifier_rate", {"classifier_rate": bad}) for bad in (-1.0, [[1.0]])),
        ("times", {"times": [-1.0]}),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_refused_by_name(argument, change):
    good = {"times": [1.0], "class_sizes": [3, 4], "initial_features": 0.1, "initial_classifier": 0.1}
    with pytest.raises(InputError) as refusal:
        collapse_trajectory(**good | change)
    assert refusal.value.argument == argument


def test_the_end_needs_no_start_but_refuses_a_wrong_one():
    with pytest.raises(InputError) as refusal:
        collapse_end([3, 4], initial_features=-0.1)
    assert refusal.value.argument == "initial_features"
