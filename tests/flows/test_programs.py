"""The program of every flow computes without calling Python, so that it can be kept for the next run."""

import jax
import numpy as np
import optax
import pytest

from dynascope.alternating import active_set_descent, alternating_flow, predict_next_activation
from dynascope.flows import descend, diagonal_flow, gradient_flow, linear_flow, train_classifier
from dynascope.networks import MLP, DiagonalLinear, TwoLayer
from dynascope.tasks import Task

TASK = Task(np.eye(2) * 2**0.5, np.diag([2.0, 1.0]) * 2**0.5)
ONE = Task(np.eye(2) * 2**0.5, np.array([[2.0], [0.5]]) * 2**0.5)
STOPS = {"loss_target": 1e-3, "stationarity": 1e-3}
SMALL = {"duration": 2.0, "scale": 0.1, "save": 3}
WEIGHTS = np.array([[1.0, 0.5], [-0.5, 1.0]])
IMAGES = np.linspace(0, 1, 32).reshape(8, 4)
FLOWS = {
    "gradient flow, explicit": lambda: gradient_flow(TwoLayer(2, 3, 2), TASK, **SMALL),
    "gradient flow, stabilised": lambda: gradient_flow(TwoLayer(2, 3, 2), TASK, solver="stabilised", **SMALL),
    "gradient flow, stiff": lambda: gradient_flow(TwoLayer(2, 3, 2), TASK, solver="stiff", **SMALL),
    "gradient flow of an ensemble": lambda: gradient_flow([TwoLayer(2, 3, 2)] * 2, TASK, **STOPS, **SMALL),
    "normalised flow": lambda: gradient_flow(TwoLayer(2, 3, 2), TASK, normalised=True, **SMALL),
    "descent": lambda: descend([TwoLayer(2, 3, 2)] * 2, TASK, steps=3, learning_rate=0.1),
    "descent on batches": lambda: descend(
        TwoLayer(2, 3, 2), TASK, steps=3, learning_rate=0.1, batch_size=1, optimizer=optax.adam
    ),
    "training of a classifier": lambda: train_classifier(
        MLP((4, 3, 2)), IMAGES, np.arange(8) % 2, epochs=1, learning_rate=0.1, batch_size=4
    ),
    "flow of a linear network": lambda: linear_flow(TASK, WEIGHTS, WEIGHTS, scale=1e-2, duration=3.0),
    "flow of a diagonal network": lambda: diagonal_flow(ONE, scale=1e-2, duration=3.0),
    "alternating flow": lambda: alternating_flow(DiagonalLinear(2), ONE, scale=1e-3),
    "alternating flow of many weights": lambda: alternating_flow(
        TwoLayer(2, 3, 2, activation="relu"), TASK, scale=1e-3, jumps=1
    ),
    "next activation": lambda: predict_next_activation(DiagonalLinear(2).with_neurons(np.full((2, 2), 1e-6)), ONE),
    "descent of an active set": lambda: active_set_descent(TwoLayer(2, 1, 2), TASK, max_neurons=1, starts=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("flow", FLOWS)
def test_no_program_calls_python(flow, tmp_path):
    jax.clear_caches()
    jax.config.update("jax_dump_ir_to", str(tmp_path))
    try:
        FLOWS[flow]()
    finally:
        jax.config.update("jax_dump_ir_to", "")
    programs = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert programs
    assert not [name for name, text in programs.items() if "callback" in text]
