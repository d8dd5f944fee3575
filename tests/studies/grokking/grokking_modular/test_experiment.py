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


def test_each_seed_has_a_split_of_its_own():
    first, second = ([sorted(map(tuple, table.train.inputs)) for table in runs.tables] for runs in (RUNS, RUNS))
    assert first == second
    assert first[0] != first[1]


def test_it_is_measured_more_often_at_first():
    np.testing.assert_array_equal(RUNS.recorded, [0, 6, 25, 56, 100])


def test_a_divisor_of_zero_leaves_weights_that_no_sample_reads():
    assert RUNS.has_unused
    assert not dataclasses.replace(RUNS, operation="addition").has_unused


@pytest.mark.slow
def test_weights_that_no_sample_reads_stay_and_shrink_by_decay_alone():
    def unused(decay):
        return dataclasses.replace(RUNS, weight_decay=decay).curves()["unused_weight"]

    np.testing.assert_allclose(unused(0.0), 1.0, rtol=1e-6)
    # (1 − η λ)^k in 32 bits.
    np.testing.assert_allclose(unused(1.0), np.tile(0.99**RUNS.recorded, (2, 1)), rtol=1e-4)
