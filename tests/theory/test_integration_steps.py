import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.theory.integration_steps import MOST_STEPS, step_control

DURATION = 3.0


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def solved(control, power, start, dt0=None):
    """y' = −y^p, of which y^(1−p) grows evenly."""
    return diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, y, _: -(jnp.abs(y) ** power) * jnp.sign(y)),
        diffrax.Tsit5(),
        0.0,
        DURATION,
        dt0,
        jnp.asarray(start),
        stepsize_controller=control,
        max_steps=MOST_STEPS,
        throw=False,
    )


@pytest.mark.slow
def test_the_steps_are_those_of_the_usual_control_where_the_end_is_in_reach():
    ours, usual = step_control(1e-6, 1e-9, jnp.asarray(DURATION)), diffrax.PIDController(rtol=1e-6, atol=1e-9)
    one, other = (solved(control, 3.0, 2.0) for control in (ours, usual))
    assert int(one.stats["num_steps"]) == int(other.stats["num_steps"])
    # The compiler may order sums otherwise.
    np.testing.assert_allclose(one.ys, other.ys, rtol=1e-14)


@pytest.mark.slow
def test_a_step_that_overflows_is_taken_again_and_shorter():
    ours, usual = step_control(1e-6, 1e-9, jnp.asarray(DURATION)), diffrax.PIDController(rtol=1e-6, atol=1e-9)
    one, other = (solved(control, 3.0, 1e3, dt0=1.0) for control in (ours, usual))
    assert one.result == diffrax.RESULTS.successful != other.result
    np.testing.assert_allclose(one.ys[-1], (1e3**-2 + 2 * DURATION) ** -0.5, rtol=1e-5)
