from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.tasks import Task
from dynascope.theory.line_inputs import line_data


def test_the_loss_of_a_linear_map_is_known_from_the_numbers_alone():
    draw = np.random.default_rng(3)
    direction = draw.normal(size=4)
    direction /= np.linalg.norm(direction)
    along, targets = draw.normal(size=9), draw.normal(size=(9, 1))
    task = Task(np.outer(along, direction), targets)
    data = line_data(task.inputs, task.targets)
    np.testing.assert_allclose(abs(data.direction @ direction), 1, rtol=1e-14)
    for slope in (-1.0, 0.0, 2.0):
        loss = task.loss(lambda x, slope=slope: slope * x @ data.direction[:, None])
        known = (data.power * (slope - data.target) ** 2 + data.unexplained) / 2
        np.testing.assert_allclose(known, loss, rtol=1e-12)


@settings(max_examples=12, deadline=None)
@given(st.floats(-100, 100), st.sampled_from([1e-120, 1e-3, 1.0, 1e5]))
def test_slopes_are_read_at_any_size(slope, size):
    inputs = size * np.outer([1.0, -2.0, 0.5], [3.0, 4.0])
    data = line_data(inputs, slope * inputs @ [0.6, 0.8])
    np.testing.assert_allclose(data.target, slope, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(data.direction, [0.6, 0.8], rtol=1e-12)


@pytest.mark.parametrize(
    ("inputs", "targets", "argument"),
    [
        (np.eye(2), [1.0, 2.0], "inputs"),
        ([[1.0, 2.0], [1.0, 2.0 + 1e-6]], [1.0, 2.0], "inputs"),
        (np.zeros((3, 2)), np.ones(3), "inputs"),
        (np.ones((2, 2)), np.ones((2, 2)), "targets"),
        (np.ones((2, 2)), np.ones(3), "targets"),
        (np.full((2, 2), np.nan), np.ones(2), "inputs"),
    ],
)
def test_data_off_a_line_is_refused_by_name(inputs, targets, argument):
    with pytest.raises(InputError) as refusal:
        line_data(inputs, targets)
    assert refusal.value.argument == argument
