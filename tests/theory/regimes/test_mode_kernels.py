from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.regimes import stage_kernel_distance


def test_golden_two_outputs():
    distance = stage_kernel_distance([2.0, 0.0], [2.0, 1.0], inputs=3, outputs=2)
    np.testing.assert_allclose(distance, 0.0777753317, rtol=0, atol=6e-11)


@given(seed=st.integers(0, 1000), d=st.integers(2, 4), c=st.integers(2, 4))
def test_the_distance_is_that_of_the_tangent_kernels_of_networks(seed, d, c):
    rng = np.random.default_rng(seed)
    v, u = np.linalg.qr(rng.normal(size=(d, d)))[0][:, :2], np.linalg.qr(rng.normal(size=(c, c)))[0][:, :2]
    stages = np.array([[rng.uniform(0.5, 2), 0.0], rng.uniform(0.5, 2, 2)])
    kernels = []
    for strengths in stages:
        first, second = np.sqrt(strengths)[:, None] * v.T, u * np.sqrt(strengths)
        kernels.append(np.kron(np.eye(c), first.T @ first) + np.kron(second @ second.T, np.eye(d)))
    one, other = (kernel / np.linalg.norm(kernel) for kernel in kernels)
    found = stage_kernel_distance(*stages, inputs=d, outputs=c)
    np.testing.assert_allclose(found, 1 - np.sum(one * other), rtol=0, atol=1e-13)


def test_a_kernel_that_only_grows_has_no_distance():
    assert stage_kernel_distance([1.0], [3.0], inputs=3, outputs=1) < 1e-30


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("arguments", "options", "name"),
    [
        (([0.0], [1.0]), {}, "before"),
        (([1.0], [-1.0]), {}, "after"),
        (([1.0], [1.0, 2.0]), {}, "after"),
        (([1.0, 0.0], [1.0, 2.0]), {"outputs": 1}, "outputs"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, options, name):
    with pytest.raises(InputError) as caught:
        stage_kernel_distance(*arguments, **{"inputs": 3, "outputs": 2} | options)
    assert caught.value.argument == name
