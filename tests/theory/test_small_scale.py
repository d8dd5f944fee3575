from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

from dynascope import predict
from dynascope.alternating import alternating_flow
from dynascope.networks import DiagonalLinear
from dynascope.tasks import Task
from dynascope.theory.staircase import deep_diagonal_staircase, diagonal_staircase, linear_staircase

X = np.random.default_rng(0).normal(size=(20, 3))
TASK = Task(X, X @ [1.0, 0.5, 0.0])
MOMENTS = (TASK.cross_moment, TASK.input_moment, TASK.target_power)


@pytest.mark.parametrize(
    "at",
    [
        lambda scale: linear_staircase(*MOMENTS, scale=scale),
        lambda scale: diagonal_staircase(X, TASK.targets[:, 0], scale=scale),
        lambda scale: deep_diagonal_staircase(X, TASK.targets[:, 0], depth=3, scale=scale),
        lambda scale: alternating_flow(DiagonalLinear(3), TASK, scale=scale, jumps=1),
        lambda scale: alternating_flow(DiagonalLinear(3), TASK, scale=[0.01, scale], jumps=1),
    ],
)
def test_theories_of_small_starts_warn_of_a_scale_that_is_not_with_the_amount(at):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        at(0.1)
    with pytest.warns(UserWarning, match=r"assumes a small start, and the scale is 0\.5, beyond 0\.3: times are off"):
        at(0.5)


@pytest.mark.parametrize(
    ("scale", "said", "network"), [(0.1, False, "linear"), (0.5, True, "linear"), (0.5, True, DiagonalLinear(3))]
)
def test_a_prediction_says_it_in_its_record_and_warns_no_one_else(scale, said, network):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record = predict(TASK, network, scale=scale, curve=False)
    told = json.loads(record.attrs["warnings"])
    assert any(each.startswith("Small start: 0.5 (beyond 0.01)") for each in told) == said
