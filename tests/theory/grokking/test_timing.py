from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory.grokking import critical_point, grokking_time, interpolant_path, weight_product


def test_the_grokking_time_is_that_of_a_trained_network(runs):
    left = []
    for data, decay, times, u, v in runs:
        point = critical_point(**data.arguments, threshold=0.1)
        assert point is not None
        error = np.sum((u**2 - v**2 - data.truth) ** 2, axis=1)
        seen = np.interp(np.log(0.1), np.log(error[:0:-1]), times[:0:-1])
        leading = float(grokking_time(point.product, scale=1.0, weight_decay=decay))
        assert float(grokking_time(point.product, scale=1.0, weight_decay=decay, lag=point.lag)) == pytest.approx(
            seen, rel=0.01
        )
        left.append((seen - leading) / point.lag)
    # The delay behind the interpolant does not depend on the decay; the next order does.
    np.testing.assert_allclose(left, 1, atol=0.15)


def test_at_the_critical_point_the_test_error_is_the_threshold(sparse):
    for seed in range(4):
        data = sparse(seed)
        for threshold in [0.2, 0.03]:
            point = critical_point(**data.arguments, threshold=threshold)
            assert point is not None
            found = interpolant_path(data.inputs, data.targets, [point.product]).coefficients[0]
            assert np.sum((found - data.truth) ** 2) == pytest.approx(threshold, rel=1e-8)


def test_a_start_twice_as_large_groks_later_by_the_logarithm_of_two_over_the_decay():
    times = grokking_time(0.03, scale=[1.0, 2.0], weight_decay=0.02)
    assert np.diff(times)[0] == pytest.approx(np.log(2) / 0.02)
    assert weight_product(times[:1], scale=1.0, weight_decay=0.02)[0] == pytest.approx(0.03)


def test_a_small_start_has_no_delay():
    assert grokking_time(0.03, scale=0.1, weight_decay=0.02) < 0


def test_there_is_no_critical_point_where_nothing_is_to_be_waited_for_or_to_be_hoped_for(sparse):
    data = sparse(0)
    assert critical_point(**data.arguments, threshold=0.9) is None
    dense = data._replace(truth=np.random.default_rng(5).normal(size=20))
    dense = dense._replace(targets=dense.inputs @ dense.truth)
    assert critical_point(**dense.arguments, threshold=0.1) is None
    assert critical_point(**data.arguments | {"targets": np.zeros(10)}) is None


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("product", lambda data: grokking_time(0.0, scale=1.0, weight_decay=0.1)),
        ("scale", lambda data: grokking_time(0.1, scale=[1.0, np.nan], weight_decay=0.1)),
        ("lag", lambda data: grokking_time(0.1, scale=1.0, weight_decay=0.1, lag=np.nan)),
        ("lag", lambda data: grokking_time([0.1, 0.2], scale=[1.0, 2.0], weight_decay=0.1, lag=np.zeros(3))),
        ("scale", lambda data: grokking_time([0.1, 0.2], scale=np.ones(3), weight_decay=0.1)),
        ("threshold", lambda data: critical_point(**data.arguments, threshold=0.0)),
        ("test_targets", lambda data: critical_point(**data.arguments | {"test_targets": np.zeros(20)})),
        ("test_inputs", lambda data: critical_point(**data.arguments | {"test_inputs": np.eye(3)})),
        ("targets", lambda data: critical_point(**data.arguments | {"inputs": np.ones((10, 20))})),
    ],
)
def test_bad_input_is_refused_by_name(sparse, argument, call):
    with pytest.raises(InputError) as refusal:
        call(sparse(0))
    assert refusal.value.argument == argument
