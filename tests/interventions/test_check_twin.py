from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr

from dynascope.errors import InputError
from dynascope.interventions import check_twin
from dynascope.networks import DeepLinear
from dynascope.tasks import Task
from dynascope.theory.regimes import OptimizerSettings, twin_of
from dynascope.training import Descent, descend

SETTINGS = OptimizerSettings("sgd", 0.05, momentum=0.5, coupled_decay=1e-3)


def losses(scales, settings, *, curvature=1.0, clip=None, steps=200):
    """Losses of gradient descent on a small tanh network, with scaled targets and outputs."""
    draw = np.random.default_rng(0)
    with jax.enable_x64(True):
        x, y = jnp.asarray(draw.normal(size=(8, 3))), jnp.asarray(draw.normal(size=(8, 1)))
        theta = (jnp.asarray(draw.normal(size=(3, 6))), jnp.asarray(draw.normal(size=(6, 1))))

        @jax.jit
        @jax.value_and_grad
        def loss(theta):
            error = scales.output * jnp.tanh(x @ theta[0]) @ theta[1] - scales.target * y
            return curvature * jnp.mean(error**2) / 2

        velocity, found = None, []
        for step in range(steps):
            value, slopes = loss(theta)
            found.append(float(value))
            slopes = [g + settings.coupled_decay * w for g, w in zip(slopes, theta, strict=True)]
            velocity = (
                slopes
                if velocity is None
                else [settings.momentum * v + g for v, g in zip(velocity, slopes, strict=True)]
            )
            rate = settings.learning_rate * (clip if clip and step > 50 else 1)
            theta = tuple(w - rate * v for w, v in zip(theta, velocity, strict=True))
    return np.array(found)


TWIN = twin_of("output scale", 3.0, layers=2)
RUN = losses(TWIN.run, SETTINGS)


def test_rounding_suffices_for_twins_and_powers_of_two_are_identical():
    found = check_twin(RUN, losses(TWIN.twin, TWIN.settings(SETTINGS)[0][0]), loss_factor=TWIN.loss_factor)
    assert found.first_difference is not None
    assert found.parting_step is None
    assert found.rounding_suffices
    even = twin_of("output scale", 2.0, layers=2)
    pair = losses(even.run, SETTINGS), losses(even.twin, even.settings(SETTINGS)[0][0])
    assert check_twin(*pair, loss_factor=even.loss_factor).identical


@pytest.mark.parametrize("setting", ["learning_rate", "coupled_decay"])
def test_an_unmatched_setting_is_not_rounding(setting):
    matched = TWIN.settings(SETTINGS)[0][0]
    wrong = dataclasses.replace(matched, **{setting: getattr(SETTINGS, setting)})
    found = check_twin(RUN, losses(TWIN.twin, wrong), loss_factor=TWIN.loss_factor)
    assert found.parting_step is not None
    assert not found.rounding_suffices


def test_a_late_event_is_found_at_its_step():
    late = losses(TWIN.twin, TWIN.settings(SETTINGS)[0][0], clip=0.5)
    found = check_twin(RUN, late, loss_factor=TWIN.loss_factor)
    assert not found.rounding_suffices
    assert found.parting_step == pytest.approx(52, abs=2)


def test_exponential_growth_of_rounding_errors_is_rounding():
    steps = np.arange(60)
    found = check_twin(np.ones(60), (1 + 1e-15 * 2.0**steps).clip(max=1.5))
    assert found.rounding_suffices
    assert found.parting_step == 31  # √L differs by half as much as L


def recorded(losses, steps):
    return xr.Dataset({"loss": ("step", losses)}, {"step": steps})


def test_records_have_their_steps():
    steps = [0, 10, 20, 30]
    run, other = recorded([np.nan, 4.0, 2.0, 1.0], steps), recorded([np.nan, 4.0, 2.0, 1.5], steps)
    assert check_twin(run, run).identical
    for pair in ((run, other), (run, [4.0, 2.0, 1.5]), ([4.0, 2.0, 1.0], other)):
        assert check_twin(*pair).parting_step == 30
    training = Descent(learning_rate=0.1, steps=40)
    task, network = Task(np.eye(2), np.eye(2)), DeepLinear((2, 2))
    run = descend(task, network, training)
    assert check_twin(run, run).identical
    with pytest.raises(InputError) as caught:
        check_twin(run, descend(task, [network, network], training))
    assert caught.value.argument == "twin"


@pytest.mark.parametrize(
    ("arguments", "options", "argument"),
    [
        (([1.0, np.nan], [1.0, 1.0]), {}, "run"),
        (([1.0, 1.0], [1.0, -1.0]), {}, "twin"),
        (([1.0, 1.0], [1.0]), {}, "twin"),
        (([0.0, 0.0], [1.0, 1.0]), {}, "run"),
        (([1.0, 1.0], [1.0, 1.0]), {"steps": [3, 2]}, "steps"),
        (([1.0, 1.0], [1.0, 1.0]), {"loss_factor": 0.0}, "loss_factor"),
        (([1.0, 1.0], [1.0, 1.0]), {"growth": 1.0}, "growth"),
        (("losses", [1.0, 1.0]), {}, "run"),
        ((recorded([1.0, 1.0], [0, 1]), recorded([1.0, 1.0], [0, 2])), {}, "twin"),
        ((recorded([1.0, np.nan], [0, 1]), [1.0, 1.0]), {}, "run"),
    ],
)
def test_bad_input_is_rejected_by_name(arguments, options, argument):
    with pytest.raises(InputError) as caught:
        check_twin(*arguments, **options)
    assert caught.value.argument.startswith(argument)
