from __future__ import annotations

import numpy as np
from diagnosed_runs import facts

from dynascope.diagnosis.lines.tied_weights import tied_weights

DRAW = np.random.default_rng(0)
EMBEDDING, OTHER = DRAW.normal(size=(9, 4)), DRAW.normal(size=(9, 4))


def started(moved=(1.0, 2.0, 3.0), **weights):
    return facts(
        {"displacement": ("parameter", [[0.0] * len(weights), moved[: len(weights)]])},
        labels={"parameter": [*weights]},
        initial_weights=weights,
    )


def test_an_untied_copy_is_found_and_independent_weights_are_no_copies():
    copied = tied_weights(started(embedding=EMBEDDING, head=EMBEDDING.copy()))
    independent = tied_weights(started(embedding=EMBEDDING, head=OTHER))
    assert (copied.state, independent.state) == ("copied", "no copies")
    assert (copied.number, copied.weight) == (1, 3)
    assert "'embedding'" in copied.sentence
    assert "'head'" in copied.sentence


def test_a_transposed_copy_is_found():
    assert tied_weights(started(embedding=EMBEDDING, head=EMBEDDING.T.copy())).state == "copied"


def test_each_pair_counts():
    assert tied_weights(started(a=EMBEDDING, b=EMBEDDING, c=EMBEDDING)).number == 3


def test_constant_and_small_parameters_are_no_copies():
    small = DRAW.normal(size=4)
    assert tied_weights(started(gain=np.ones(64), scale=np.ones(64))).state == "no copies"
    assert tied_weights(started(bias=small, shift=small)).state == "no copies"


def test_copies_that_the_loop_keeps_equal_are_tied():
    assert tied_weights(started((1.5, 1.5), embedding=EMBEDDING, head=EMBEDDING)).state == "no copies"


def test_copies_without_measured_displacements_are_found():
    run = facts({"loss": [1.0]}, initial_weights={"embedding": EMBEDDING, "head": EMBEDDING})
    assert tied_weights(run).state == "copied"


def test_without_initial_weights_nothing_is_known():
    assert tied_weights(facts({"loss": [1.0]})).state == "not measured"
