from __future__ import annotations

import numpy as np
import pytest
from diagnosed_runs import clusters, facts, relu_network, trained, with_groups

from dynascope.diagnosis.lines.weight_decay import weight_decay
from dynascope.diagnosis.run_facts import RunFacts

SHAPES = {"wte.weight": (9, 4), "0.weight": (8, 4), "0.bias": (8,), "2.weight": (3, 8), "2.bias": (3,)}


def grouped(places, decays):
    run = facts(
        {"displacement": ("parameter", [[0.0] * len(SHAPES)])},
        labels={"parameter": [*SHAPES]},
        initial_weights={name: np.ones(shape) for name, shape in SHAPES.items()},
        groups=[{"lr": 0.1, "weight_decay": each} for each in decays],
    )
    return RunFacts(with_groups(run.record, places), run.initial_weights, groups=run.groups)


@pytest.mark.parametrize(
    ("places", "decays", "state"),
    [
        ([0, 0, 0, 0, 0], [1e-2], "uniform"),
        ([0, 0, 0, 0, 0], [0.0], "uniform"),
        ([0, 0, 1, 0, 1], [1e-2, 0.0], "uniform"),  # biases are usually excluded
        ([1, 0, 1, 0, 1], [1e-2, 0.0], "uniform"),  # embeddings too
        ([0, 0, 0, 1, 1], [1e-2, 0.0], "missing on one group"),
        ([0, 1, 0, 0, 0], [1e-2, 0.0], "missing on one group"),
        ([0, 0, 0, -1, -1], [1e-2], "uniform"),  # parameters outside the optimiser have no decay
        ([0, 0, 0, 1, 1], [1e-2, 1e-3], "differs by group"),
    ],
)
def test_decay_is_missing_if_a_matrix_has_none_while_others_have_it(places, decays, state):
    assert weight_decay(grouped(places, decays)).state == state


def test_the_line_names_and_counts_the_matrices():
    line = weight_decay(grouped([0, 0, 0, 1, 1], [1e-2, 0.0]))
    assert line.number == 1
    assert "2.weight" in line.sentence
    assert "0.weight" not in line.sentence
    assert line.weight == 3


@pytest.mark.slow
def test_the_groups_of_a_recorded_run_are_read():
    x, y, _ = clusters(40)
    line = weight_decay(trained(relu_network(20, 8, 4), x, y, steps=1, decay=1e-3))
    assert line.state == "uniform"
    assert "0.001" in line.sentence


def test_the_matrices_of_the_record_replace_missing_initial_weights():
    run = grouped([0, 0, 0, 1, 1], [1e-2, 0.0])
    record = run.record.assign_coords(matrix=["0.weight", "2.weight"])
    assert weight_decay(RunFacts(record, groups=run.groups)).state == "missing on one group"


def test_without_an_optimiser_nothing_is_known():
    assert weight_decay(facts({"loss": [1.0]})).state == "not measured"
