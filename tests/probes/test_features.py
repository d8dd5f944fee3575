from __future__ import annotations

import functools
import operator
import warnings

import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.probes.features import (
    effective_dimension,
    eigenfeatures,
    feature_metrics,
    feature_moments,
    kappa_cka,
    quality,
)
from dynascope.results import variables_of

bounded = settings(max_examples=12, deadline=None)

# G1 and G4 of the theory ledger.
H1 = np.array([[1, 0], [1, 1], [0, 2], [-1, 1], [2, -1]])
F1 = np.array([[1, 0], [1, 0], [0, 1], [0, 1], [1, 0]])
H4 = np.array([[1, 0, 1], [1, 0.2, 0], [0, 1, 1], [0.1, 1, 0], [-1, 0, 1], [-1, -0.3, 1]])
W4 = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0.5]])
Y4 = np.array([0, 0, 1, 1, 2, 2])


def draw(seed=0, n=60, p=7, c=3):
    """Correlated features with a mean, a readout with a bias, and balanced labels."""
    generator = np.random.default_rng(seed)
    h = generator.normal(size=(n, p)) @ generator.normal(size=(p, p)) + generator.normal(size=p)
    return h, h @ generator.normal(size=(p, c)) + 30 * generator.normal(size=c), np.arange(n) % c


def values(found):
    return {name: np.asarray(value) for name, (_, value) in variables_of(found).items()}


def streamed(arrays, cuts=(11, 30), **options):
    rows = np.split(np.arange(len(arrays[0])), cuts)
    parts = (feature_moments(*(each[part] for each in arrays), **options) for part in rows)
    return functools.reduce(operator.add, parts)


def assert_same(found, expected, tolerance=1e-10):
    assert set(found) == set(expected)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=tolerance, atol=tolerance, err_msg=name)


def dense_kappa(features, outputs):
    """The definition, with n × n matrices."""
    n = len(features)
    centring = np.eye(n) - np.ones((n, n)) / n
    left, s, _ = np.linalg.svd(outputs, full_matrices=False)
    left = left[:, s > 1e-10 * s[0]]
    t = centring @ features @ features.T @ centring
    minimum = centring @ (0.7 * np.ones((n, n)) / n + 1.3 * left @ left.T) @ centring
    return 1 - np.sum(t * minimum) / np.linalg.norm(t) / np.linalg.norm(minimum)


@pytest.mark.parametrize("stream", [False, True])
def test_the_first_golden_numbers_of_the_ledger(stream):
    arrays = (streamed((H1, F1), cuts=(2,)),) if stream else (H1, F1)
    found = values(feature_metrics(*arrays, exclude_first=False))
    np.testing.assert_allclose(found["intensity"], [1.8, 1.0], rtol=1e-9)
    np.testing.assert_allclose(found["utilization"], [0.37037037037, 0.366666666667], rtol=1e-9)
    np.testing.assert_allclose(found["effective_dimension"], 1.918908550597, rtol=1e-9)
    np.testing.assert_allclose(found["kappa_cka"], 0.260742493597, rtol=1e-9)
    modes = eigenfeatures(H1)
    first = [0.5270462766947, 0, 1.054092553389, 1.054092553389, 1.581138830084]
    # The zero is a cancellation of rounded numbers.
    np.testing.assert_allclose(np.abs(H1 @ modes.directions[:, 0]), first, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("stream", [False, True])
def test_the_golden_distances_of_the_three_classes(stream):
    for outputs, golden in ((np.eye(3)[Y4], 0.15834300072), (H4 @ W4.T, 0.103666941924)):
        arrays = (streamed((H4, outputs, Y4), cuts=(1, 4)),) if stream else (H4, outputs, Y4)
        found = values(feature_metrics(*arrays))
        assert found["kappa_cka"] == pytest.approx(golden, rel=1e-9)
        assert found["kappa_cka"] == pytest.approx(dense_kappa(H4, outputs), abs=1e-12)
        assert not found["minimum_features"]


@bounded
@given(st.integers(0, 2**16), st.integers(4, 40), st.integers(1, 50), st.integers(1, 3), st.booleans())
def test_kappa_is_that_of_the_dense_definition(seed, n, p, c, bias):
    generator = np.random.default_rng(seed)
    h = generator.normal(size=(n, p)) + 1
    f = h @ generator.normal(size=(p, c)) + bias
    assert float(kappa_cka(h, f)) == pytest.approx(dense_kappa(h, f), abs=1e-12)


def test_simplex_features_are_at_the_minimum():
    one_hot = np.eye(4)[np.arange(40) % 4]
    for h in (one_hot, one_hot - 0.25, 1e-120 * one_hot, 1e120 * one_hot):
        assert float(kappa_cka(h, one_hot)) == pytest.approx(0, abs=1e-12)
    found = values(feature_metrics(one_hot - 0.25, one_hot, np.arange(40) % 4))
    # Centred simplex features have no constant mode, so that leaving one out counts C − 1.
    assert found["effective_dimension"] == pytest.approx(3, rel=1e-12)
    assert found["constant_overlap"] == pytest.approx(0, abs=1e-12)
    assert found["minimum_features"]
    found = values(feature_metrics(one_hot, one_hot, np.arange(40) % 4))
    assert found["effective_dimension_utilization"] == pytest.approx(4, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("p", "c"), [(1000, 10), (6, 2), (5, 5)])
def test_white_features_are_away_from_it_by_the_closed_form(p, c):
    generator = np.random.default_rng(p)
    n = 3 * p
    white = np.linalg.qr(np.column_stack([np.ones(n), generator.normal(size=(n, p))]))[0][:, 1:]
    found = float(kappa_cka(white, white @ generator.normal(size=(p, c))))
    assert found == pytest.approx(1 - np.sqrt(c / p), abs=1e-12)


def test_eigenfeatures_diagonalise_the_operator():
    h, _, _ = draw()
    modes = eigenfeatures(h)
    e = h @ modes.directions
    np.testing.assert_allclose(e.T @ e / len(h), np.eye(7), atol=1e-12)
    np.testing.assert_allclose((e * modes.intensity) @ e.T, h @ h.T, atol=1e-11)
    np.testing.assert_allclose(np.abs(e), np.abs(modes.values) * np.sqrt(len(h)), atol=1e-11)


def test_qualities_are_projections():
    h, f, y = draw()
    found = values(feature_metrics(h, f, y))
    e = h @ eigenfeatures(h).directions
    projector = f @ np.linalg.solve(f.T @ f, f.T)
    expected = np.einsum("ik,ij,jk->k", e, projector, e) / len(h) / 3
    np.testing.assert_allclose(found["utilization"], expected, rtol=1e-10)
    # Equation 2.3 for balanced one-hot targets.
    np.testing.assert_allclose(found["quality"], np.sum((e.T @ np.eye(3)[y] / len(h)) ** 2, axis=1), rtol=1e-10)
    np.testing.assert_allclose(quality(e, f), expected, rtol=1e-10)
    np.testing.assert_allclose(found["cumulative_utilization"], np.cumsum(expected), rtol=1e-10)


def test_the_bias_is_a_feature_without_which_the_utilization_is_not_whole():
    h, f, _ = draw()
    assert values(feature_metrics(h, f))["cumulative_utilization"][-1] < 0.999
    whole = values(feature_metrics(h, f, bias=True))
    assert whole["cumulative_utilization"][-1] == pytest.approx(1, abs=1e-12)
    assert len(whole["intensity"]) == 8
    # κ does not see constants.
    assert whole["kappa_cka"] == pytest.approx(float(kappa_cka(h, f)), rel=1e-12)


def test_softmax_outputs_are_those_of_the_logits():
    h, f, _ = draw()
    softmax = np.exp(f) / np.exp(f).sum(axis=1, keepdims=True)
    # The constant is in the span of the softmax: were it a feature, ...
    expected = values(feature_metrics(h, softmax))
    assert_same(values(feature_metrics(h, f, output_function="softmax")), expected, 1e-9)
    assert_same(values(feature_metrics(h, f + 700, output_function="softmax")), expected, 1e-9)
    moments = streamed((h, f), output_function="softmax")
    assert_same(values(feature_metrics(moments)), expected, 1e-9)


def test_utilizations_of_few_held_out_samples_that_exceed_one_are_warned_of():
    generator = np.random.default_rng(0)
    h, w = generator.normal(size=(200, 8)), generator.normal(size=(8, 3))
    few, many = (generator.normal(size=(n, 8)) for n in (20, 2000))
    with pytest.warns(UserWarning, match="sum to 1.23, not to one"):
        feature_metrics(h, h @ w, held_out=(few, few @ w))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        feature_metrics(h, h @ w, held_out=(many, many @ w))


@pytest.mark.parametrize("bias", [False, True])
def test_held_out_samples_give_the_overlaps(bias):
    arrays, more = draw(), [each[:40] for each in draw(n=100)]
    more[0][:] += 0.1
    found = values(feature_metrics(*arrays, held_out=tuple(more), bias=bias))
    here, there = arrays[0], more[0]
    if bias:
        here, there = np.column_stack([here, np.ones(60)]), np.column_stack([there, np.ones(40)])
    e = there @ eigenfeatures(here).directions
    np.testing.assert_allclose(found["utilization"], quality(e, more[1]), rtol=1e-10)
    np.testing.assert_allclose(found["quality"], quality(e, np.eye(3)[np.asarray(more[2], dtype=int)]), rtol=1e-10)
    # The intensities and the distance remain those of the training samples.
    own = values(feature_metrics(*arrays, bias=bias))
    for name in ("intensity", "kappa_cka", "effective_dimension"):
        np.testing.assert_array_equal(found[name], own[name])
    both = feature_metrics(streamed(arrays), held_out=streamed(more, cuts=(20,)), bias=bias)
    assert_same(values(both), found)
    assert_same(values(feature_metrics(streamed(arrays), held_out=tuple(more), bias=bias)), found)


@bounded
@given(
    st.integers(0, 2**16),
    st.lists(st.integers(1, 59), max_size=5, unique=True),
    st.booleans(),
    st.sampled_from([0.0, 100.0]),
)
def test_batches_give_the_numbers_of_the_whole(seed, cuts, bias, shift):
    h, f, y = draw(seed)
    h = h + shift
    moments = streamed((h, f, y), sorted(cuts))
    assert moments.samples == len(h)
    # A mean a hundred times the spread takes four digits from the squares.
    tolerance = 1e-9 if shift == 0 else 1e-6
    whole = values(feature_metrics(h, f, y, bias=bias))
    # A mode that squares cannot tell from zero, as one in forty draws has beside such a mean, is none of the moments'.
    weakest, strongest = whole["intensity"].min() ** 0.5, whole["intensity"].max() ** 0.5
    assume(weakest > moments.rows().resolution * strongest)
    assert_same(values(feature_metrics(moments, bias=bias)), whole, tolerance)


def test_large_means_cost_a_stream_no_digits_of_kappa():
    h, f, _ = draw()
    # The sum has itself lost six digits.
    found = values(feature_metrics(streamed((h + 1e6, f))))["kappa_cka"]
    assert found == pytest.approx(float(kappa_cka(h, f)), abs=1e-9)


def test_features_that_are_the_same_or_dead_add_no_modes_in_either_form():
    h, f, y = draw()
    h = np.column_stack([h, h[:, :2], np.zeros(60)])
    whole, found = values(feature_metrics(h, f, y)), values(feature_metrics(streamed((h, f, y))))
    assert (np.count_nonzero(whole["intensity"]), np.count_nonzero(found["intensity"])) == (7, 7)
    assert_same(found, whole)


def test_centred_targets_span_one_dimension_less_in_either_form():
    h, f, y = draw()
    centred = np.eye(3)[y] - 1 / 3
    expected = quality(h @ eigenfeatures(h).directions, centred[:, :2])
    for found in (feature_metrics(h, f, centred), feature_metrics(streamed((h, f, centred)))):
        np.testing.assert_allclose(values(found)["quality"], expected, rtol=1e-9)


def measured_twice(*arrays):
    found = {"whole": feature_metrics(*arrays), "stream": feature_metrics(streamed(arrays))}
    return {f"{way} {name}": value for way, each in found.items() for name, value in each._asdict().items()}


@pytest.mark.slow
def test_jax_arrays_give_the_numbers_of_numpy_also_while_jax_traces():
    arrays = draw()
    with jax.enable_x64(True):
        found = jit(measured_twice)(*map(jax.device_put, arrays))
    assert all(isinstance(value, jax.Array) for value in found.values())
    assert_same(found, measured_twice(*arrays))


@pytest.mark.slow
def test_jax_without_double_precision_stays_near():
    arrays = draw()
    # Single precision; a stream keeps squares, and the features have a condition number of thirty.
    assert_same(jit(measured_twice)(*map(jax.device_put, arrays)), measured_twice(*arrays), 2e-2)


@pytest.mark.slow
def test_torch_tensors_give_the_numbers_of_numpy():
    torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
    pytest.importorskip("array_api_compat", reason="array-api-compat comes with the torch extra")
    arrays = draw()
    found = measured_twice(*map(torch.from_numpy, arrays))
    assert all(isinstance(value, torch.Tensor) for value in found.values())
    assert_same(found, measured_twice(*arrays))


def test_single_precision_is_summed_in_double():
    single = [np.asarray(each, dtype=np.float32) for each in draw()[:2]]
    double = [each.astype(np.float64) for each in single]
    found = feature_metrics(streamed(single)).intensity
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, feature_metrics(*double).intensity, rtol=1e-10)


def test_more_features_than_samples_have_as_many_modes_as_samples():
    h, f, _ = draw(n=5, p=9, c=2)
    with pytest.warns(UserWarning, match="5 samples and 9 features"):
        found = values(feature_metrics(h, f))
    assert found["intensity"].shape == (9,)
    assert np.count_nonzero(found["intensity"]) == 5
    assert found["cumulative_utilization"][-1] == pytest.approx(1, abs=1e-12)
    with pytest.warns(UserWarning, match="5 samples and 9 features"):
        assert_same(values(feature_metrics(streamed((h, f), (2,)))), found)


@bounded
@given(st.integers(0, 2**16), st.floats(1e-3, 1e3), st.booleans())
def test_rotations_and_mixtures_change_nothing(seed, size, bias):
    h, f, y = draw(seed)
    generator = np.random.default_rng(seed)
    rotated = size * h @ np.linalg.qr(generator.normal(size=(7, 7)))[0]
    mixture = np.linalg.qr(generator.normal(size=(3, 3)))[0] * [1, 2, 3]
    found, expected = (values(feature_metrics(*each, y, bias=bias)) for each in ((rotated, f @ mixture), (h, f)))
    assert found["kappa_cka"] == pytest.approx(float(expected["kappa_cka"]), abs=1e-10)
    if not bias:
        np.testing.assert_allclose(found["intensity"], size**2 * expected["intensity"], rtol=1e-9)
        np.testing.assert_allclose(found["utilization"], expected["utilization"], rtol=1e-7, atol=1e-9)


@bounded
@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=9).filter(lambda w: max(w) > 1e-3))
def test_the_effective_dimension_lies_between_one_and_the_number_of_weights(weights):
    found = float(effective_dimension(np.array(weights)))
    assert 1 - 1e-12 <= found <= np.count_nonzero(weights) + 1e-9
    alone = effective_dimension(np.array([[*weights], [*weights[::-1]]]))
    np.testing.assert_allclose(alone, found, rtol=1e-12)


def test_the_effective_dimension_of_equal_weights_is_their_number():
    assert float(effective_dimension(np.array([0.0, 2, 2, 0, 2]))) == pytest.approx(3, rel=1e-14)
    assert float(effective_dimension(np.array([9.0, 2, 2, 2]), exclude_first=True)) == pytest.approx(4, rel=1e-14)
    assert float(effective_dimension(np.array([9.0]), exclude_first=True)) == 1
    assert float(effective_dimension(np.full(3, 1e300))) == pytest.approx(3, rel=1e-14)


def test_the_label_follows_the_threshold():
    kappa = float(kappa_cka(H1, F1))
    for threshold in (0.9 * kappa, 1.1 * kappa):
        found = values(feature_metrics(H1, F1, threshold=threshold))
        assert (bool(found["minimum_features"]), float(found["threshold"])) == (kappa < threshold, threshold)


def test_a_scalar_function_needs_one_feature():
    x = np.linspace(-1, 1, 50)[:, None]
    found = values(feature_metrics(x @ np.ones((1, 4)), 3 * x, x))
    assert found["kappa_cka"] == pytest.approx(0, abs=1e-12)
    assert found["effective_dimension_utilization"] == pytest.approx(1, rel=1e-12)
    assert found["output_dimension"] == 1


def test_classes_that_are_not_balanced_are_reported():
    h, f, y = draw()
    for targets in (np.minimum(y, 1), np.eye(3)[np.minimum(y, 1)], np.where(np.arange(60) < 40, 0, y)):
        with pytest.warns(UserWarning, match="classes as balanced"):
            feature_metrics(h, f, targets)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        feature_metrics(h, f, y)
        feature_metrics(h, f, 3 * f)


H, F, Y = draw()


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ((np.ones((60, 7)), F), "features"),
        ((H, np.full((60, 3), 2.0)), "outputs"),
        ((H, np.zeros((60, 3))), "outputs"),
        ((H[:3], F[:3]), "features"),
        ((np.where(H[3, 2] == H, np.nan, H), F), "features"),
        ((H, np.where(F[3, 2] == F, np.inf, F)), "outputs"),
        ((H, F, np.full(60, 3)), "targets"),
        ((H, F, Y - 1), "targets"),
        ((H, F[:, :1], np.zeros(60, dtype=int)), "targets"),
        ((H, F, np.zeros((60, 2))), "functions"),
        ((H, F, Y.astype(float)), "targets"),
        ((H, F[:50]), "outputs"),
        ((H, F, Y[:50]), "targets"),
        ((H[:, 0], F), "features"),
        ((H, F * 1j), "outputs"),
        ((H.tolist(), F), "array"),
        ((H,), "outputs"),
        ((feature_moments(H, F), F), "output_function"),
    ],
)
def test_arrays_that_make_no_sense_are_refused(arguments, argument):
    with pytest.raises(InputError) as refusal:
        feature_metrics(*arguments)
    assert refusal.value.argument == argument


@pytest.mark.usefixtures("unchecked_types")
def test_options_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="output_function is 'relu'"):
        feature_metrics(H, F, output_function="relu")
    with pytest.raises(InputError, match="threshold is 0"):
        feature_metrics(H, F, threshold=0)
    with pytest.raises(InputError, match="cannot be added"):
        operator.add(feature_moments(H, F), feature_moments(H, F, Y))
    with pytest.raises(InputError, match="cannot be added"):
        operator.add(feature_moments(H, F), feature_moments(H, F, output_function="softmax"))
    with pytest.raises(InputError, match="another output_function"):
        feature_metrics(feature_moments(H, F), output_function="softmax")
    with pytest.raises(InputError, match="held_out has widths"):
        feature_metrics(H, F, held_out=(H[:, :3], F))
    with pytest.raises(InputError, match="held_out has length 1"):
        feature_metrics(H, F, held_out=(H,))
    for weights in ([0.0, 0.0], [1.0, -1e-3], [1.0, np.nan]):
        with pytest.raises(InputError, match="negative or non-finite values, or only zeros"):
            effective_dimension(np.array(weights))


@pytest.mark.slow
def test_neither_torch_nor_jax_is_loaded_by_the_probe():
    import subprocess
    import sys

    code = """
import sys, numpy as np
from dynascope.probes.features import feature_metrics
feature_metrics(np.eye(3), np.eye(3)[:, :2])
print(*({"torch", "jax", "array_api_compat"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
