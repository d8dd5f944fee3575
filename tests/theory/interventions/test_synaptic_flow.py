from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.interventions import log_synaptic_flow, synflow_log_scores

FIRST = [
    [3.713577932687709, 4.012909440104417, 0.622790514769175],
    [3.410369023395985, 4.321187710623252, 1.259126344881636],
    [2.185891186370183, 3.291740616435894, 1.371178904390067],
    [2.416105048247198, 4.441153730771744, 2.383026154654530],
]
LAST = [
    [0.827503404817732, 1.323843406206259, 2.120181418256088, 2.771016876794036, 3.342505422155374],
    [4.403659780224938, 3.963992897604788, 4.6588310999321605, 4.939000365587393, 5.078521935753019],
]


def det(shape, a):
    return np.sin(a * np.arange(1, np.prod(shape) + 1)).reshape(shape)


def golden():
    return [det((4, 3), 1).T, det((5, 4), 2).T, det((2, 5), 3).T]


def test_the_golden_network_has_its_flow_and_scores():
    assert log_synaptic_flow(golden()) == pytest.approx(np.log(33.42905660733179), rel=1e-14)
    scores = [np.exp(each) for each in synflow_log_scores(golden())]
    np.testing.assert_allclose(scores[0].T, FIRST, rtol=1e-13)
    np.testing.assert_allclose(scores[2].T, LAST, rtol=1e-13)


def test_two_hundred_wide_layers_do_not_overflow():
    weights = [np.full((300, 300), 1e3)] * 200
    exact = 201 * np.log(300) + 200 * np.log(1e3)  # 300^201 paths
    assert log_synaptic_flow(weights) == pytest.approx(exact, rel=1e-14)
    scores = synflow_log_scores(weights)
    np.testing.assert_allclose([each[0, 0] for each in scores], exact - 2 * np.log(300), rtol=1e-14)


@given(seed=st.integers(0, 10**6), widths=st.lists(st.integers(1, 6), min_size=2, max_size=6))
def test_every_layer_and_every_unit_conserves_the_flow(seed, widths):
    draw = np.random.default_rng(seed)
    weights = [draw.normal(size=shape) * (draw.uniform(size=shape) < 0.8) for shape in itertools.pairwise(widths)]
    scores = [np.exp(each) for each in synflow_log_scores(weights)]
    flow = np.exp(log_synaptic_flow(weights))
    np.testing.assert_allclose([each.sum() for each in scores], flow, rtol=1e-12)
    product = np.linalg.multi_dot([np.ones((1, widths[0])), *map(np.abs, weights), np.ones((widths[-1], 1))])
    assert flow == pytest.approx(product.item(), rel=1e-12)
    for one, other in itertools.pairwise(scores):
        np.testing.assert_allclose(one.sum(axis=0), other.sum(axis=1), rtol=1e-12, atol=1e-300)


def test_a_weight_on_no_path_has_the_score_zero():
    scores = synflow_log_scores([[[1.0, 1.0]], [[1.0], [0.0]]])
    np.testing.assert_array_equal(scores[0], [[0.0, -np.inf]])
    assert log_synaptic_flow([[[1.0]], [[0.0]]]) == -np.inf


@pytest.mark.parametrize("weights", [[], [np.ones((2, 3)), np.ones((2, 3))], [np.ones(3)]])
def test_shapes_that_form_no_chain_are_rejected_by_name(weights):
    with pytest.raises(InputError, match="shape") as error:
        synflow_log_scores(weights)
    assert error.value.argument == "weights"
