from __future__ import annotations

import functools
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.probes.class_moments import class_moments


def draw(seed=0, n=47, p=6, c=4):
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(n) % c)
    return generator.normal(size=(c, p))[labels] + generator.normal(size=(n, p)), labels


def test_the_moments_are_those_of_their_definition():
    features, labels = draw()
    moments = class_moments(features, labels, classes=4)
    means = np.array([features[labels == k].mean(axis=0) for k in range(4)])
    apart = features - means[labels]
    np.testing.assert_array_equal(moments.sizes, np.bincount(labels))
    # Sums of some tens of numbers of the order of one.
    np.testing.assert_allclose(moments.means, means, atol=1e-14)
    np.testing.assert_allclose(moments.scatter, apart.T @ apart, atol=1e-12)
    np.testing.assert_allclose(moments.centred_means, means - means.mean(axis=0), atol=1e-14)
    assert moments.samples == 47


@given(st.integers(0, 1000), st.lists(st.integers(0, 47), max_size=5).map(sorted))
def test_moments_of_batches_add_up_to_those_of_all(seed, cuts):
    features, labels = draw(seed)
    parts = [rows for rows in np.split(np.arange(47), cuts) if len(rows)]
    streamed = functools.reduce(operator.add, (class_moments(features[k], labels[k], classes=4) for k in parts))
    whole = class_moments(features, labels, classes=4)
    for name in ("sizes", "means", "scatter"):
        # Sums of some tens of numbers of the order of one, in another order.
        np.testing.assert_allclose(getattr(streamed, name), getattr(whole, name), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        *(("features", {"features": bad}) for bad in (np.ones(3), np.full((4, 2), np.nan), 1j * np.ones((4, 2)))),
        *(("labels", {"labels": bad}) for bad in (np.arange(3), np.arange(4) % 2 + 0.0, np.arange(4), -np.arange(4))),
        *(("classes", {"classes": bad}) for bad in (1, -3)),
    ],
)
def test_bad_input_is_refused_by_name(argument, change):
    good = {"features": np.ones((4, 2)), "labels": np.arange(4) % 2, "classes": 2}
    with pytest.raises(InputError) as refusal:
        class_moments(**good | change)
    assert refusal.value.argument == argument


def test_batches_of_other_features_do_not_add_up():
    features, labels = draw()
    with pytest.raises(InputError) as refusal:
        _ = class_moments(features, labels, classes=4) + class_moments(features[:, :2], labels, classes=4)
    assert refusal.value.argument == "other"
