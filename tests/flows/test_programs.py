"""The program of every flow computes without calling Python, so that it can be kept for the next run."""

import importlib

import diffrax
import equinox as eqx
import jax
import numpy as np
import optax
import pytest

from dynascope.alternating import active_set_descent, alternating_flow, next_neuron, predict_next_activation
from dynascope.alternating.cost_phase import settle
from dynascope.flows import (
    Total,
    continuous,
    descend,
    diagonal_flow,
    gradient_flow,
    langevin,
    linear_flow,
    squared_norms,
)
from dynascope.flows.objective import Samples
from dynascope.flows.solvers import adaptive
from dynascope.flows.steps import chunks
from dynascope.flows.steps.program import advance, start
from dynascope.networks import MLP, DiagonalLinear, TwoLayer
from dynascope.tasks import CropAndFlip, Labelled, Task

TASK = Task(np.eye(2) * 2**0.5, np.diag([2.0, 1.0]) * 2**0.5)
ONE = Task(np.eye(2) * 2**0.5, np.array([[2.0], [0.5]]) * 2**0.5)
STOPS = {"loss_target": 1e-3, "stationarity": 1e-3}
SMALL = {"duration": 2.0, "scale": 0.1, "save": 3}
WEIGHTS = np.array([[1.0, 0.5], [-0.5, 1.0]])
IMAGES = Labelled(np.linspace(0, 1, 32).reshape(8, 2, 2, 1), np.arange(8) % 2)
by_solver = importlib.import_module("dynascope.flows.langevin")  # its function has the same name
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
    "flow of a linear network": (
        adaptive,
        lambda: linear_flow(TASK, WEIGHTS, WEIGHTS, scale=1e-2, duration=3.0),
    ),
    "flow of a diagonal network": (adaptive, lambda: diagonal_flow(ONE, scale=1e-2, duration=3.0)),
    "flow of a linear network, explicit": (
        adaptive,
        lambda: linear_flow(TASK, WEIGHTS, WEIGHTS, scale=1e-2, duration=3.0, solver="explicit"),
    ),
    "Langevin dynamics by a solver": (
        by_solver,
        lambda: langevin(
            [1.0], [0.0], noise=[0.1], times=[1.0], time_step=0.5, learning_rate=0.1, solver=diffrax.QUICSORT()
        ),
    ),
    "next activation": (
        next_neuron,
        lambda: predict_next_activation(DiagonalLinear(2).with_neurons(np.full((2, 2), 1e-6)), ONE),
    ),
}
NAMES = {continuous: "_integrate", next_neuron: "_grown", adaptive: "_advanced", by_solver: "langevin_steps"}
DESCENTS = {
    "all samples": lambda: descend([TwoLayer(2, 3, 2)] * 2, TASK, steps=3, learning_rate=0.1),
    "batches, and what is measured at each step": lambda: descend(
        TwoLayer(2, 3, 2), TASK, steps=3, learning_rate=0.1, batch_size=1, optimizer=optax.adam,
        step_statistics={"path": Total(lambda step: squared_norms(step.update), ["weight"])},
    ),
    "a classifier of augmented images": lambda: descend(
        Flat(MLP((4, 3, 2))), IMAGES, epochs=1, learning_rate=optax.constant_schedule(0.1), loss="cross_entropy",
        batch_size=4, augmentation=CropAndFlip(1), test=IMAGES, probe=lambda _: {},
    ),
}  # fmt: skip
FLOWS = {
    "alternating flow": lambda: alternating_flow(DiagonalLinear(2), ONE, scale=1e-3),
    "descent of an active set": lambda: active_set_descent(TwoLayer(2, 1, 2), TASK, max_neurons=1, starts=2),
}


class Flat(eqx.Module):
    """A network of flat inputs, applied to images."""

    network: MLP

    def __call__(self, images):
        return self.network(images.reshape(len(images), -1))


class Lowered(Exception):  # noqa: N818 - it carries a program, and nothing is wrong
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
@pytest.mark.parametrize("descent", DESCENTS)
def test_neither_the_start_of_descent_nor_its_steps_call_python(descent, monkeypatch):
    told = []

    def started(*arguments):
        told.append(start.lower(*arguments).as_text())
        shapes = eqx.filter_eval_shape(start, *arguments)
        return jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes)

    def advanced(*arguments):
        told.append(advance.lower(*arguments).as_text())
        raise Lowered

    monkeypatch.setattr(chunks, "start", started)
    monkeypatch.setattr(chunks, "advance", advanced)
    with pytest.raises(Lowered):
        DESCENTS[descent]()
    assert len(told) >= 2
    assert all("func.func public @main" in each and "callback" not in each for each in told)


@pytest.mark.slow
@pytest.mark.parametrize("implicit", [True, False])
def test_the_cost_phase_calls_no_python_in_whatever_manner(implicit):
    network, numbers = TwoLayer(2, 3, 2, activation="relu"), (1e-6, 1e-2, 1.0, 1e2, True)
    with jax.enable_x64(True):
        average = Samples(TASK.inputs, TASK.targets)
        program = settle.lower(network, average, network.neurons, *map(np.asarray, numbers), implicit, False)
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
