from __future__ import annotations

import equinox as eqx
import numpy as np
import pytest
from drawn_modules import drawn

from dynascope import predict, which
from dynascope.errors import InputError
from dynascope.flows import progress_listener
from dynascope.networks import MLP, TwoLayer
from dynascope.tasks import Task

X = np.random.default_rng(0).normal(size=(20, 3))
TASK = Task(X, X @ [[1.0], [0.5], [0.0]])
WIDE = TwoLayer(3, 500, 1, activation="relu")


def laziness(network, scale):
    found = {each.name: each for each in which(TASK, network, scale=scale)}["kernel-regression"]
    return found.assumptions[0].value


def test_weights_move_less_from_larger_starts():
    moved = [laziness(WIDE, scale) for scale in (1.0, 2.0, 4.0)]
    assert moved[0] > 2 * moved[1] > 4 * moved[2] > 0


def test_a_linear_model_is_lazy_from_any_start():
    assert laziness(MLP((3, 1), activation="linear", bias=False), 1e-3) == 0


def test_the_record_says_how_far_the_weights_move_and_how_far_the_loss_may_be_off():
    predicted = predict(TASK, WIDE, scale=4.0, theory="kernel-regression").record
    assert predicted.attrs["movement"] == pytest.approx(laziness(WIDE, 4.0), rel=0.05)
    assert predicted.attrs["loss_tolerance"] == pytest.approx(0.15 * predicted.attrs["movement"])
    assert float(predicted["loss"][0]) == pytest.approx(TASK.loss(TwoLayer(3, 500, 1, activation="relu", scale=4.0)))


def test_what_is_far_from_lazy_or_no_function_of_rows_is_refused():
    with pytest.raises(InputError, match="lazy training: ") as caught:
        predict(TASK, WIDE, scale=0.1, theory="kernel-regression")
    assert caught.value.argument == "theory"
    names = [each.name for each in which(TASK, WIDE, scale=1.0, normalised=True)]
    assert "kernel-regression" not in names
    with pytest.raises(
        InputError, match=r"the network has input and output dimensions \(4, 1\), but the task has dimensions \(3, 1\)"
    ):
        which(TASK, MLP((4, 5, 1)), scale=1.0)
    perceptron = drawn(eqx.nn.MLP, 4, 1, 5, 2)
    found = {each.name: each for each in which(TASK, perceptron, scale=1.0)}
    assert "shape (3,)" in found["kernel-regression"].obstacle


def test_it_tells_how_far_it_is():
    heard = []
    with progress_listener(lambda done, planned, unit: heard.append((done, planned, unit))):
        predict(TASK, WIDE, scale=4.0, theory="kernel-regression")
    assert (0, 20, "samples") in heard
