"""The program of every flow computes without calling Python, so that it can be kept for the next run."""

import jax
import numpy as np
import optax
import pytest

from dynascope.alternating import active_set_descent, alternating_flow, next_neuron, predict_next_activation
from dynascope.alternating.cost_phase import settle
from dynascope.flows import (
    continuous,
    descend,
    diagonal_flow,
    discrete,
    gradient_flow,
    linear_flow,
    train_classifier,
)
from dynascope.flows.objective import Samples
from dynascope.flows.solvers import stepping
from dynascope.networks import MLP, DiagonalLinear, TwoLayer
from dynascope.tasks import Task

TASK = Task(np.eye(2) * 2**0.5, np.diag([2.0, 1.0]) * 2**0.5)
ONE = Task(np.eye(2) * 2**0.5, np.array([[2.0], [0.5]]) * 2**0.5)
STOPS = {"loss_target": 1e-3, "stationarity": 1e-3}
SMALL = {"duration": 2.0, "scale": 0.1, "save": 3}
WEIGHTS = np.array([[1.0, 0.5], [-0.5, 1.0]])
IMAGES = np.linspace(0, 1, 32).reshape(8, 4)
# Flows of one program, which is not compiled here; and the module that has it.
ONE_PROGRAM = {
    "gradient flow, explicit": (continuous, lambda: gradient_flow(TwoLayer(2, 3, 2), TASK, **SMALL)),
    "gradient flow, stabilised": (
        continuous,
        lambda: gradient_flow(TwoLayer(2, 3, 2), TASK, solver="stabilised", **SMALL),
    ),
    "gradient flow, stiff": (continuous, lambda: gradient_flow(TwoLayer(2, 3, 2), TASK, solver="stiff", **SMALL)),
    "gradient flow of an ensemble": (
        continuous,
        lambda: gradient_flow([TwoLayer(2, 3, 2)] * 2, TASK, **STOPS, **SMALL),
    ),
    "normalised flow": (continuous, lambda: gradient_flow(TwoLayer(2, 3, 2), TASK, normalised=True, **SMALL)),
    "descent": (discrete, lambda: descend([TwoLayer(2, 3, 2)] * 2, TASK, steps=3, learning_rate=0.1)),
    "descent on batches": (
        discrete,
        lambda: descend(TwoLayer(2, 3, 2), TASK, steps=3, learning_rate=0.1, batch_size=1, optimizer=optax.adam),
    ),
    "flow of a linear network": (stepping, lambda: linear_flow(TASK, WEIGHTS, WEIGHTS, scale=1e-2, duration=3.0)),
    "flow of a diagonal network": (stepping, lambda: diagonal_flow(ONE, scale=1e-2, duration=3.0)),
    "next activation": (
        next_neuron,
        lambda: predict_next_activation(DiagonalLinear(2).with_neurons(np.full((2, 2), 1e-6)), ONE),
    ),
}
NAMES = {continuous: "_integrate", discrete: "_train", next_neuron: "_grown", stepping: "_advance"}
FLOWS = {
    "training of a classifier": lambda: train_classifier(
        MLP((4, 3, 2)), IMAGES, np.arange(8) % 2, epochs=1, learning_rate=0.1, batch_size=4
    ),
    "alternating flow": lambda: alternating_flow(DiagonalLinear(2), ONE, scale=1e-3),
    "descent of an active set": lambda: active_set_descent(TwoLayer(2, 1, 2), TASK, max_neurons=1, starts=2),
}


class Lowered(Exception):  # noqa: N818 - no error
    """What a program is, instead of what it computes."""


@pytest.mark.slow
@pytest.mark.parametrize("flow", ONE_PROGRAM)
def test_no_program_calls_python_when_it_is_the_only_one(flow, monkeypatch):
    module, run = ONE_PROGRAM[flow]
    program = getattr(module, NAMES[module])

    def lower(*arguments):
        raise Lowered(program.lower(*arguments).as_text())

    monkeypatch.setattr(module, NAMES[module], lower)
    with pytest.raises(Lowered) as told:
        run()
    assert "func.func public @main" in str(told.value)
    assert "callback" not in str(told.value)


@pytest.mark.slow
@pytest.mark.parametrize("close", [True, False])
def test_the_cost_phase_calls_no_python_whether_it_is_followed_closely_or_not(close):
    network, numbers = TwoLayer(2, 3, 2, activation="relu"), (1e-6, 1e-2, 1.0, 1e2)
    with jax.enable_x64(True):
        average = Samples(TASK.inputs, TASK.targets)
        program = settle.lower(network, average, network.neurons, *map(np.asarray, numbers), close, False)
    assert "callback" not in program.as_text()


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
