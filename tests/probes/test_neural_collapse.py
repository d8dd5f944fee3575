from __future__ import annotations

import functools
import operator

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.probes.neural_collapse import (
    class_moments,
    collapse_metrics,
    nearest_mean_disagreement,
    neural_collapse,
)
from dynascope.results import variables_of

bounded = settings(max_examples=12, deadline=None)

# G4 of the theory ledger, whose W is the transpose of ours.
H4 = np.array([[1, 0, 1], [1, 0.2, 0], [0, 1, 1], [0.1, 1, 0], [-1, 0, 1], [-1, -0.3, 1]])
W4 = np.array([[1, 0, 0], [0, 1, 0], [-1, 0, 0.5]]).T
OURS, THEIRS = "features_classes", "classes_features"
Y4 = np.array([0, 0, 1, 1, 2, 2])


def draw(seed=0, n=47, p=6, c=4):
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(n) % c)
    features = generator.normal(size=(c, p))[labels] + generator.normal(size=(n, p)) + generator.normal(size=p)
    return features, labels, generator.normal(size=(p, c)), generator.normal(size=c)


def values(found):
    return {name: np.asarray(value) for name, (_, value) in variables_of(found).items()}


def defined(features, labels, classifier, bias, *, center_classifier=False):
    """Every metric by its definition, one sample and one matrix after the other."""
    c, n = classifier.shape[1], len(features)
    means = np.array([features[labels == i].mean(0) for i in range(c)])
    m = means - means.mean(0)
    within = sum(np.outer(h - means[y], h - means[y]) for h, y in zip(features, labels, strict=True)) / n
    between = m.T @ m / c
    norms = np.linalg.norm(m, axis=1)
    angles = m @ m.T / np.outer(norms, norms) - (c * np.eye(c) - 1) / (c - 1)
    w = classifier.T - classifier.T.mean(0) if center_classifier else classifier.T
    nearest = [np.argmin(np.linalg.norm(h - means, axis=1)) for h in features]
    return {
        "nc1": np.trace(within @ np.linalg.pinv(between, rcond=1e-10)) / c,
        "nc1_product": n * c * np.trace(within @ between),
        "nc2_angle": np.abs(angles).max(),
        "nc2_norm": norms.std() / norms.mean(),
        "nc3": np.linalg.norm(w / np.linalg.norm(w) - m / np.linalg.norm(m)),
        "nc4": np.mean(np.argmax(features @ classifier + bias, axis=1) != nearest),
        "class_mean_norm": norms,
    }


def streamed(features, labels, classifier, bias, cuts):
    parts = [rows for rows in np.split(np.arange(len(features)), cuts) if len(rows)]
    batches = (class_moments(features[rows], labels[rows], classes=classifier.shape[1]) for rows in parts)
    moments = functools.reduce(operator.add, batches)
    differ = sum(nearest_mean_disagreement(moments, features[rows], classifier, bias, layout=OURS) for rows in parts)
    return values(collapse_metrics(moments, classifier, layout=OURS)) | {"nc4": differ / moments.samples}


def assert_same(found, expected, tolerance=1e-10):
    assert set(found) == set(expected)
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=tolerance, atol=tolerance, err_msg=name)


def test_the_golden_numbers():
    found = values(neural_collapse(H4, Y4, W4, np.zeros(3), layout=OURS))
    expected = {
        "nc1": 0.03527490024,
        "nc1_product": 0.321733333333,
        "nc2_angle": 0.378248082513,
        "nc2_norm": 0.200468123348,
        "nc3": 0.37859255849,
        "nc4": 0.0,
    }
    for name, value in expected.items():
        # As many digits as are given.
        assert found[name] == pytest.approx(value, abs=1e-11), name


@pytest.mark.parametrize("center_classifier", [False, True])
@pytest.mark.parametrize("sizes", [(47, 6, 4), (30, 2, 5), (9, 12, 3), (8, 3, 2)])
def test_every_metric_is_that_of_its_definition(sizes, center_classifier):
    arrays = draw(1, *sizes)
    found = values(neural_collapse(*arrays, center_classifier=center_classifier))
    assert_same(found, defined(*arrays, center_classifier=center_classifier))


def test_a_perfect_simplex_has_collapsed():
    c, p = 5, 7
    axes = np.linalg.qr(np.random.default_rng(0).normal(size=(p, c)))[0].T
    labels = np.repeat(np.arange(c), [2, 5, 3, 1, 4])
    simplex = axes - axes.mean(0)
    found = values(neural_collapse(simplex[labels] + 0.7, labels, 3 * simplex.T, -3 * simplex @ np.full(p, 0.7)))
    for name in ("nc1", "nc1_product", "nc2_angle", "nc2_norm", "nc3", "nc4"):
        assert found[name] == pytest.approx(0, abs=1e-14), name


@pytest.mark.parametrize(("classes", "limit"), [(4, 0.5176380902), (10, 0.320364486014)])
def test_nc3_without_a_bias_tends_to_its_limit_unless_the_classifier_is_centred(classes, limit):
    labels, classifier = np.repeat(np.arange(classes), 3), np.eye(classes)
    found = values(neural_collapse(np.eye(classes)[labels], labels, classifier, layout=OURS))
    assert found["nc3"] == pytest.approx(limit, abs=1e-10)
    centred = values(neural_collapse(np.eye(classes)[labels], labels, classifier, layout=OURS, center_classifier=True))
    assert centred["nc3"] == pytest.approx(0, abs=1e-15)


def test_nc4_can_fail_for_a_perfect_simplex_without_a_bias():
    c = 3
    simplex, shift = np.eye(c) - 1 / c, np.array([5.0, 0.0, 0.0])
    labels = np.arange(c)
    features = simplex + shift
    assert values(neural_collapse(features, labels, simplex.T, layout=OURS))["nc4"] > 0.5
    assert values(neural_collapse(features, labels, simplex.T, -simplex @ shift, layout=OURS))["nc4"] == 0


def test_two_classes_are_always_a_simplex():
    features, labels, classifier, bias = draw(2, 20, 3, 2)
    found = values(neural_collapse(features, labels, classifier, bias))
    assert max(found["nc2_angle"], found["nc2_norm"]) < 1e-14


@bounded
@given(st.integers(0, 1000), st.lists(st.integers(0, 47), max_size=5).map(sorted))
def test_batches_never_change_the_answer(seed, cuts):
    arrays = draw(seed)
    assert_same(streamed(*arrays, cuts), values(neural_collapse(*arrays)), tolerance=1e-11)


@bounded
@given(st.integers(0, 1000), st.floats(1e-6, 1e6), st.floats(-1e3, 1e3))
def test_metrics_do_not_depend_on_rotation_shift_names_and_scale(seed, scale, shift):
    features, labels, classifier, bias = draw(seed)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(6, 6)))[0]
    names = np.random.default_rng(seed).permutation(4)
    expected = defined(features, labels, classifier, bias)
    moved = scale * (features @ turn + shift)
    # Columns of the classifier go with the new names, and the bias takes the shift back.
    order = np.argsort(names)
    found = values(
        neural_collapse(
            moved,
            names[labels],
            turn.T @ classifier[:, order],
            scale * (bias - shift * (turn.T @ classifier).sum(0))[order],
        )
    )
    expected["nc1_product"] *= scale**4
    expected["class_mean_norm"] = scale * expected["class_mean_norm"][order]
    for name, value in expected.items():
        # A shift of 1000 takes three digits of the features, and squares double that.
        np.testing.assert_allclose(found[name], value, rtol=1e-8, atol=1e-9, err_msg=name)


def test_collapse_far_below_the_size_of_the_features_keeps_its_digits():
    generator = np.random.default_rng(0)
    labels = np.arange(4000) % 3
    noise = 1e-6 * generator.normal(size=(4000, 3))
    noise -= np.array([noise[labels == i].mean(0) for i in range(3)])[labels]
    features = 1e3 + np.eye(3)[labels] + noise
    found = streamed(features, labels, np.eye(3), np.zeros(3), [500, 1300, 3900])
    exact = defined(np.eye(3)[labels] + noise, labels, np.eye(3), np.zeros(3))
    # One part in 1e-13/1e-6 is lost when the features are rounded.
    np.testing.assert_allclose(found["nc1"], exact["nc1"], rtol=1e-6)


@pytest.mark.slow
def test_numpy_and_pytorch_give_the_same_numbers():
    torch = pytest.importorskip("torch")
    arrays = draw(3)
    expected = values(neural_collapse(*arrays))
    assert_same(values(neural_collapse(*map(torch.asarray, arrays))), expected)


@pytest.mark.slow
def test_jax_gives_the_same_numbers_one_operation_at_a_time():
    arrays = draw(3)
    with jax.enable_x64(True):
        found = neural_collapse(*map(jax.device_put, arrays))
        assert_same(values(found), values(neural_collapse(*arrays)))
        assert isinstance(found.nc1, jax.Array)


@pytest.mark.slow
def test_it_compiles():
    arrays = draw(4)
    with jax.enable_x64(True):
        compiled = jit(neural_collapse)
        found = compiled(*map(jax.device_put, arrays))
        assert_same(values(found), values(neural_collapse(*arrays)))
        with pytest.raises(InputError) as refusal:
            jit(lambda h, y: neural_collapse(h, y).nc1)(*map(jax.device_put, arrays[:2]))
    assert refusal.value.argument == "classes"


def test_single_precision_is_summed_in_double():
    features, labels, classifier, bias = draw(5)
    low = [each.astype(np.float32) for each in (features, classifier, bias)]
    found = neural_collapse(low[0], labels, low[1], low[2])
    expected = neural_collapse(low[0].astype(float), labels, low[1].astype(float), low[2].astype(float))
    assert_same(values(found), values(expected), tolerance=1e-14)
    assert found.nc1.dtype == np.float64


def test_the_layout_of_pytorch_is_known_by_its_shape_or_by_its_name():
    features, labels, classifier, bias = draw(6)
    expected = values(neural_collapse(features, labels, classifier, bias))
    for layout in (None, THEIRS):
        assert_same(values(neural_collapse(features, labels, classifier.T, bias, layout=layout)), expected)
    moments = class_moments(features, labels, classes=4)
    assert_same(values(collapse_metrics(moments, classifier.T)), values(collapse_metrics(moments, classifier)))
    square = draw(7, p=4)
    expected = values(neural_collapse(*square, layout=OURS))
    turned = values(neural_collapse(*square[:2], square[2].T, square[3], layout=THEIRS))
    assert_same(turned, expected)
    assert not np.isclose(values(neural_collapse(*square, layout=THEIRS))["nc3"], expected["nc3"])


def test_a_square_classifier_needs_a_layout():
    features, labels, classifier, bias = draw(7, p=4)
    moments = class_moments(features, labels, classes=4)
    for call in (
        lambda: neural_collapse(features, labels, classifier, bias),
        lambda: neural_collapse(features, labels, classifier, bias, classes=4),
        lambda: collapse_metrics(moments, classifier),
        lambda: nearest_mean_disagreement(moments, features, classifier),
    ):
        with pytest.raises(InputError, match="features_classes") as refusal:
            call()
        assert refusal.value.argument == "layout"


def test_without_a_classifier_there_are_no_nc3_and_nc4():
    features, labels, *_ = draw(6)
    found = values(neural_collapse(features, labels))
    assert set(found) == {
        "nc1",
        "nc1_product",
        "nc2_angle",
        "nc2_norm",
        "class_mean_norm",
    }


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        *(("features", {"features": bad}) for bad in (H4[0], H4 * np.nan, 1j * H4)),
        *(("labels", {"labels": bad}) for bad in (Y4[:4], Y4 + 0.0, Y4 + 1, Y4 - 1)),
        *(("classes", {"classes": bad}) for bad in (1, -3)),
        ("moments", {"labels": np.array([0, 0, 1, 1, 1, 1])}),
        ("moments", {"features": np.ones((6, 3))}),
        *(("classifier", {"classifier": bad}) for bad in (W4[:, :2], 0 * W4, W4 * np.nan)),
        *(("classifier", {"classifier": bad, "center_classifier": True}) for bad in (np.ones((3, 3)),)),
        *(("bias", {"bias": bad}) for bad in (np.zeros(2), np.full(3, np.nan), np.zeros((3, 3)))),
        ("array", {"features": H4.tolist()}),
    ],
)
def test_bad_input_is_refused_by_name(argument, change):
    good = {"features": H4, "labels": Y4, "classifier": W4, "bias": np.zeros(3), "classes": 3, "layout": OURS}
    with pytest.raises(InputError) as refusal:
        neural_collapse(**good | change)
    assert refusal.value.argument == argument


@pytest.mark.parametrize("shape", [(5, 4), (7, 4)])
def test_the_weights_of_another_layer_are_refused_with_their_shape(shape):
    features = np.random.default_rng(0).normal(size=(9, 4))
    words = rf"classifier has shape \({shape[0]}, 4\), .* of shape \(4, 3\) or its transpose"
    with pytest.raises(InputError, match=words) as refusal:
        neural_collapse(features, np.arange(9) % 3, np.ones(shape))
    assert refusal.value.argument == "classifier"


def test_features_of_another_layer_are_refused():
    with pytest.raises(InputError) as refusal:
        nearest_mean_disagreement(class_moments(H4, Y4, classes=3), H4[:, :2], W4)
    assert refusal.value.argument == "features"
