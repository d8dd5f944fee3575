from __future__ import annotations

import numpy as np
import pytest
import torch
from diagnosed_runs import clusters, facts, relu_network, trained

from dynascope.diagnosis.lines.units import dead_units, duplicate_units, vanishing_units


def parallel_share(network: torch.nn.Module) -> float:
    """The share of hidden units whose weights are parallel to those of another unit."""
    weights = network[0].weight.detach().numpy()  # pyright: ignore
    directions = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    return float(((directions @ directions.T >= 0.99).sum(1) > 1).mean())


def with_duplicates(run):
    """Turn the measured share of parallel units into that of the first matrix."""
    shares = run.record["parallel"].to_numpy()[:, None]
    record = run.record.isel(matrix=[0]).assign(duplicate_fraction=(("step", "matrix"), shares))
    return type(run)(record, initial_weights=run.initial_weights)


def dead(shares, **options):
    count = len(shares[0])
    return facts({"dead_fraction": ("activation", shares)}, labels={"activation": [*map(str, range(count))]}, **options)


def matrix(name, shares, **options):
    return facts(
        {name: ("matrix", shares)},
        labels={"matrix": [f"{k}.weight" for k in range(len(shares[0]))]},
        **options,
    )


@pytest.mark.slow
def test_a_large_learning_rate_kills_units_and_a_small_one_does_not():
    x, y, _ = clusters(gap=1.5)
    killed = dead_units(trained(relu_network(20, 64, 64, 4), x, y, steps=100, rate=1.0))
    alive = dead_units(trained(relu_network(20, 64, 64, 4), x, y, steps=100))
    assert (killed.state, killed.weight) == ("dead units", 3)
    assert (alive.state, alive.weight) == ("no dead units", 0)
    assert killed.number >= killed.threshold > alive.number
    assert "learning rate" in killed.action


@pytest.mark.slow
def test_units_that_were_dead_at_initialisation_call_for_other_initial_weights():
    x, y, _ = clusters()
    network = relu_network(20, 64, 4)
    with torch.no_grad():
        network[0].bias -= 20.0
    line = dead_units(trained(network, x, y, steps=10))
    assert line.state == "dead units"
    assert line.number == 1
    assert "initial weights" in line.action


def test_the_line_names_the_layer_and_the_step_at_which_half_of_its_units_had_died():
    line = dead_units(dead([[0, 0], [0, 0.1], [0.1, 0.3], [0.1, 0.5]], steps=[0, 10, 20, 30]))
    assert line.number == 0.5
    assert "'1'" in line.sentence
    assert "step 20" in line.sentence


def test_revived_units_are_not_dead():
    assert dead_units(dead([[0.5], [0.1]])).state == "no dead units"


@pytest.mark.parametrize("line", [dead_units, duplicate_units, vanishing_units])
def test_lines_without_measurements_name_the_probe(line):
    found = line(facts({"loss": [1.0, 0.5]}))
    assert found.state == "not measured"
    assert 'probe "' in found.sentence
    assert not found.is_answer


@pytest.mark.slow
def test_small_initial_weights_align_units_and_large_ones_do_not():
    x, y, _ = clusters(classes=2)
    states = []
    for scale in (0.01, 1.0):
        network = relu_network(20, 50, 2, scale=scale)
        run = trained(network, x, y, steps=300, measure=lambda each: {"parallel": parallel_share(each)})
        states.append(duplicate_units(with_duplicates(run)).state)
    assert states == ["duplicate units", "no duplicate units"]


def test_units_that_are_parallel_in_the_first_row_are_not_reported():
    few_inputs = matrix("duplicate_fraction", [[0.7, np.nan], [0.75, np.nan]])
    assert duplicate_units(few_inputs).state == "no duplicate units"


@pytest.mark.parametrize("transposed", [False, True])
def test_identical_initial_units_are_a_defect(transposed):
    weights = np.random.default_rng(0).normal(size=(8, 5))
    copies = np.repeat(weights[:4], 2, axis=0)
    lines = [
        duplicate_units(
            matrix(
                "duplicate_fraction",
                [[share], [share]],
                initial_weights={"0.weight": each.T if transposed else each},
            )
        )
        for each, share in ((copies, 1.0), (weights, 0.0))
    ]
    assert [(line.state, line.weight) for line in lines] == [("duplicate units", 3), ("no duplicate units", 0)]


def test_copies_that_training_separates_are_no_duplicates():
    copies = np.repeat(np.random.default_rng(0).normal(size=(4, 5)), 2, axis=0)
    run = matrix("duplicate_fraction", [[1.0], [0.0]], initial_weights={"0.weight": copies})
    assert duplicate_units(run).state == "no duplicate units"


def test_zero_initial_weights_are_no_copies():
    run = matrix("duplicate_fraction", [[0.0], [0.05]], initial_weights={"0.weight": np.zeros((8, 5))})
    assert duplicate_units(run).state == "no duplicate units"


def test_units_vanish_only_if_their_share_grows():
    states = [vanishing_units(matrix("vanishing_fraction", [[0.3], [last]])).state for last in (0.6, 0.3, 0.0)]
    assert states == ["vanishing units", "no vanishing units", "no vanishing units"]


def test_units_do_not_vanish_if_the_largest_units_exploded():
    shares, norms = ("matrix", [[0.0], [0.9]]), ("parameter", [[1.0], [50.0]])
    run = facts(
        {"vanishing_fraction": shares, "weight_norm": norms},
        labels={"matrix": ["0.weight"], "parameter": ["0.weight"]},
    )
    assert vanishing_units(run).state == "few large units"
