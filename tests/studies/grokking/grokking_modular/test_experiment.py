from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.studies.grokking.grokking_modular.experiment import ModularRuns

RUNS = ModularRuns(
    operation="division",
    p=5,
    train_fraction=0.5,
    network="relu",
    width=8,
    loss="squared",
    learning_rate=1e-2,
    weight_decay=0.0,
    steps=100,
    times=5,
    seeds=2,
    seed=3,
)


def test_each_seed_has_its_own_split():
    first, second = ([sorted(map(tuple, table.train.inputs)) for table in runs.tables] for runs in (RUNS, RUNS))
    assert first == second
    assert first[0] != first[1]


def test_recorded_steps_are_denser_at_first():
    np.testing.assert_array_equal(RUNS.recorded, [0, 6, 25, 56, 100])


def test_division_leaves_the_weights_of_the_divisor_zero_unused():
    assert RUNS.has_unused
    assert not dataclasses.replace(RUNS, operation="addition").has_unused


@pytest.mark.slow
def test_unused_weights_shrink_by_weight_decay_alone():
    def unused(decay):
        return dataclasses.replace(RUNS, weight_decay=decay).curves()["unused_weight"]

    np.testing.assert_allclose(unused(0.0), 1.0, rtol=1e-6)
    # (1 − η λ)^k in 32 bits.
    np.testing.assert_allclose(unused(1.0), np.tile(0.99**RUNS.recorded, (2, 1)), rtol=1e-4)
