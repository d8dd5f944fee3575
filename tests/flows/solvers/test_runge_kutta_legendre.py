import diffrax
import jax
import numpy as np
import pytest

from dynascope.compilation import filter_jit
from dynascope.flows.solvers.runge_kutta_legendre import RungeKuttaLegendre


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@filter_jit
def solved(field, start, duration, controller, first, arguments, times):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        RungeKuttaLegendre(),
        0.0,
        duration,
        first,
        start,
        arguments,
        stepsize_controller=controller,
        saveat=diffrax.SaveAt(t1=times is None, ts=times),
        max_steps=100_000,
    )


def solve(field, start, duration, controller, first=None, arguments=None, times=None):
    """The solution, by a program that is compiled once for each field."""
    first = None if first is None else np.asarray(first)
    return jax.device_get(solved(field, np.asarray(start), np.asarray(duration), controller, first, arguments, times))


def logistic(t, y, _):
    return y * (1 - y)


def decay(t, y, rates):
    return -rates * y


@pytest.mark.slow
def test_the_order_of_convergence_is_two():
    # y' = y(1 − y), the logistic function.
    exact = 1 / (1 + 9 * np.exp(-2.0))
    errors = []
    for steps in (100, 200, 400):
        end = solve(logistic, [0.1], 2.0, diffrax.ConstantStepSize(), 2.0 / steps).ys[-1, 0]
        errors.append(abs(end - exact))
    # Up to a third-order part that is smaller by the step.
    assert errors[0] / errors[1] == pytest.approx(4, abs=0.4)
    assert errors[1] / errors[2] == pytest.approx(4, abs=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("stiffness", [1e2, 1e4, 1e6])
def test_any_step_is_stable(stiffness):
    rates = np.array([1.0, stiffness / 7, stiffness])
    end = solve(decay, np.ones(3), 2.0, diffrax.ConstantStepSize(), 0.1, rates, np.linspace(0, 2, 37)).ys[-1]
    # Twenty steps with a local error of (hρ)³/18 each.
    assert end[0] == pytest.approx(np.exp(-2), rel=2e-3)
    # A fast direction at least halves in most steps; the first one or two find the curvature.
    assert np.all(np.abs(end[1:]) < 1e-3)


@pytest.mark.slow
def test_the_number_of_steps_does_not_grow_with_the_stiffness():
    steps = []
    for stiffness in (1e2, 1e4, 1e6):
        rates = np.geomspace(1.0, stiffness, 20)
        controller = diffrax.PIDController(rtol=1e-3, atol=1e-6)
        steps.append(int(solve(decay, np.ones(20), 5.0, controller, None, rates).stats["num_steps"]))
    # The rates in between must be resolved one after the other, so the number grows with the logarithm.
    assert steps[2] < 4 * steps[0]


@pytest.mark.slow
def test_the_interpolation_is_of_third_order():
    times = np.linspace(0, 1, 37)
    solution = solve(decay, np.ones(3), 1.0, diffrax.ConstantStepSize(), 0.01, np.ones(3), times)
    # The error of the steps, h²/18 · h per step in relative terms, leaves about 1e-5.
    assert solution.ys[:, 0] == pytest.approx(np.exp(-times), abs=1e-5)
