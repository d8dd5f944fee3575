from __future__ import annotations

import numpy as np
import pytest
from scipy.special import zeta

from dynascope.errors import InputError
from dynascope.tasks.parity.skills import skill_frequencies
from dynascope.theory.scaling_laws import power_laws
from dynascope.theory.skills.multilinear import training_loss

MODEL = {"target_scale": 1.0, "initial_strength": 0.01}


@pytest.mark.parametrize(
    ("alpha", "time", "samples", "parameters", "compute"),
    [
        (0.3, 0.645323747263, 0.529389879829, 0.423877974227, 0.564665965834),
        (0.6, 0.600061773079, 0.441858764708, 0.364575138145, 0.532018495525),
        (0.9, 0.530337130400, 0.366534989196, 0.317506322289, 0.483567134560),
    ],
)
def test_prefactors_golden(alpha, time, samples, parameters, compute):
    laws = power_laws(alpha, **MODEL)
    # Golden numbers are stored with 12 digits; that of the samples is for R₀ = 0.
    found = [law.prefactor for law in laws]
    np.testing.assert_allclose(found, [time, samples * 0.99**2, parameters, compute], rtol=3e-12)
    beta = alpha / (alpha + 1)
    np.testing.assert_allclose([law.exponent for law in laws], [beta, beta, alpha, alpha / (alpha + 2)])


def test_units_of_loss_and_time():
    # Twice S and R₀ at half the rate is the same motion with four times the loss.
    laws = power_laws(0.6, target_scale=1.0, initial_strength=0.01, learning_rate=0.4)
    scaled = power_laws(0.6, target_scale=2.0, initial_strength=0.02, learning_rate=0.2)
    for law, other in zip(laws, scaled, strict=True):
        np.testing.assert_allclose(other.prefactor, 4 * law.prefactor, rtol=1e-12)
    np.testing.assert_allclose(laws.time.loss([1.0, 16.0]), laws.time.prefactor * np.array([1, 16**-0.375]))


def test_small_start_of_the_time_prefactor():
    alpha, mu = 0.6, np.log(1e12 - 1)
    beta = alpha / (alpha + 1)
    law = power_laws(alpha, target_scale=1.0, initial_strength=1e-12).time
    normalisation = 2 * alpha * power_laws(alpha, target_scale=1.0, initial_strength=1e-12).parameters.prefactor
    small = mu**beta / beta * (1 - beta / mu + np.pi**2 * beta * (beta - 1) / 6 / mu**2)
    # The next term of the expansion is of order μ⁻³.
    np.testing.assert_allclose(
        law.prefactor, normalisation / 2 / (alpha + 1) * (2 * normalisation) ** -beta * small, rtol=1e-4
    )


def test_time_law_is_that_of_the_skills():
    # Skills beyond 200 000 have not begun at T = 300; their loss is added by the law of parameters.
    skills, alpha = 200_000, 0.9
    laws = power_laws(alpha, **MODEL)
    frequencies = skill_frequencies(skills, alpha) * (1 - 2 * laws.parameters.loss(skills + 0.5))
    observed = training_loss([300.0], frequencies, **MODEL) + 0.99**2 * laws.parameters.loss(skills + 0.5)
    # 1e-5 is the correction of the integral at this time.
    np.testing.assert_allclose(laws.time.loss([300.0]), observed, rtol=2e-5)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("exponent", {"exponent": 0.0}),
        ("target_scale", {"target_scale": np.nan}),
        ("initial_strength", {"initial_strength": 1.0}),
        ("initial_strength", {"initial_strength": 0.0}),
        ("learning_rate", {"learning_rate": -1.0}),
    ],
)
def test_bad_input_is_refused_by_name(argument, change):
    with pytest.raises(InputError) as refusal:
        power_laws(**{"exponent": 0.6, **MODEL, **change})
    assert refusal.value.argument == argument
    with pytest.raises(InputError, match="choose finite numbers above 0"):
        power_laws(0.6, **MODEL).time.loss([0.0])


def test_finitely_many_skills_are_each_asked_for_more_often():
    finite, infinite = power_laws(0.6, skills=1000, **MODEL), power_laws(0.6, **MODEL)
    more = zeta(1.6) / (zeta(1.6) - zeta(1.6, 1001))
    ratios = [one.prefactor / other.prefactor for one, other in zip(finite, infinite, strict=True)]
    # A^(1/(α+1)), A^(1/(α+1)), A and A^(2/(α+2)), to the digits to which the best time of compute is found.
    np.testing.assert_allclose(ratios, more ** np.array([1 / 1.6, 1 / 1.6, 1, 2 / 2.6]), rtol=1e-10)
