from __future__ import annotations

import numpy as np
import pytest
from diagnosed_runs import clusters, facts, relu_network, trained

from dynascope.diagnosis.lines.features import features_used, neural_collapse, redundancy


def layers(variables, **options):
    return facts(
        {name: ("layer", np.reshape(each, (-1, 1))) for name, each in variables.items()},
        labels={"layer": ["input of 2"]},
        **options,
    )


def used(kappa, number, outputs):
    return layers({"kappa_cka": kappa, "effective_dimension_utilization": number, "output_dimension": outputs})


@pytest.fixture(scope="module")
def collapsed():
    x, y, _ = clusters()
    return trained(relu_network(20, 64, 64, 4), x, y, steps=600, decay=5e-3)


@pytest.fixture(scope="module")
def short():
    x, y, _ = clusters()
    return trained(relu_network(20, 64, 64, 4), x, y, steps=20)


@pytest.mark.slow
def test_features_collapse_in_a_long_run_with_weight_decay_and_not_in_a_short_one(collapsed, short):
    long, other = neural_collapse(collapsed), neural_collapse(short)
    assert (long.state, other.state) == ("collapsed", "not collapsed")
    assert long.number < other.number


@pytest.mark.slow
def test_collapsed_features_are_minimal_and_initial_features_are_not(collapsed):
    assert features_used(collapsed).state == "minimal features"
    start = type(collapsed)(collapsed.record.isel(step=[0, 1]), initial_weights=collapsed.initial_weights)
    assert features_used(start).state == "extended features"


@pytest.mark.slow
def test_collapsed_features_are_redundant(collapsed):
    line = redundancy(collapsed)
    assert line.state == "redundant features"
    assert line.number == pytest.approx(float(collapsed.record["effective_dimension"][-1, -1]) / 64)


def test_a_layer_whose_features_fill_its_width_is_not_redundant():
    run = layers({"effective_dimension": [6.0, 7.0]}, initial_weights={"2.weight": np.zeros((4, 8))})
    assert redundancy(run).state == "not redundant"
    assert redundancy(layers({"effective_dimension": [6.0, 7.0]})).state == "not measured"


@pytest.mark.parametrize(
    ("nc1", "angle", "nc4", "state"),
    [
        (0.05, 0.1, 0.0, "collapsed"),
        (0.3, 0.1, 0.0, "not collapsed"),
        (0.05, 0.5, 0.0, "not collapsed"),
        (0.05, 0.1, 0.2, "not collapsed"),
        (0.0, 0.1, 0.0, "not measured"),
    ],
)
def test_collapse_requires_all_metrics_and_several_examples_per_class(nc1, angle, nc4, state):
    run = facts({"nc1": [1.0, nc1], "nc2_angle": [0.5, angle], "nc4": [0.9, nc4]})
    assert neural_collapse(run).state == state


def test_the_line_names_the_metrics_that_prevent_collapse():
    run = facts({"nc1": [1.0, 0.01], "nc2_angle": [0.5, 0.5], "nc4": [0.9, 0.3]})
    assert "because of NC2, NC4" in neural_collapse(run).sentence


def test_features_are_minimal_below_the_threshold_of_kappa():
    states = [features_used(used([0.5, kappa], [30, 12], [10, 10])).state for kappa in (0.05, 0.3)]
    assert states == ["minimal features", "extended features"]


def test_outputs_that_lose_dimensions_are_reported():
    lost = features_used(used([0.5, 0.3], [30, 2], [10, 3]))
    assert (lost.state, lost.number, lost.threshold) == ("features lost", 3, 10)
    # Softmax does not depend on the mean over classes, so weight decay removes this dimension.
    assert features_used(used([0.5, 0.05], [30, 9], [10, 9])).state == "minimal features"


def test_the_line_does_not_apply_if_the_outputs_span_all_features():
    assert features_used(used([0.3, 0.4], [8, 8], [8, 8])).state == "does not apply"


@pytest.mark.parametrize("line", [features_used, redundancy, neural_collapse])
def test_lines_without_measurements_name_the_probe(line):
    found = line(facts({"loss": [1.0, 0.5]}))
    assert found.state == "not measured"
    assert 'probe "' in found.sentence
