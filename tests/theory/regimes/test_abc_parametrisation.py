from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.line_inputs import LineData, LineNetwork, layer_norms, line_limit
from dynascope.theory.regimes import (
    ABCParametrisation,
    Parametrisation,
    abc_class,
    abc_of_two_layers,
    abc_parametrisations,
    phase,
    phase_table,
)

NAMED = abc_parametrisations()
# The class and r of the ledger, and of the variants by two-layer theory.
TABLE = {
    "NTK": ("kernel", 0.5),
    "muP": ("feature learning", 0.0),
    "standard": ("unstable", -1.0),
    "standard, rate 1/n": ("kernel", 0.5),
    "mean field": ("feature learning", 0.0),
    "Kaiming+": ("feature learning", 0.0),
    "Kaiming−": ("kernel", 1.5),
    "Xavier+": ("feature learning", 0.0),
    "Xavier−": ("unstable", 1.0),
}
halves = st.integers(-4, 4).map(lambda number: number / 2)
abc = st.builds(ABCParametrisation, *[halves] * 7, hidden_layers=st.integers(1, 3))


@pytest.mark.parametrize("name", TABLE)
def test_named_parametrisations_have_the_class_and_exponent_of_the_table(name):
    found = abc_class(NAMED[name])
    assert (found.name, -found.feature_exponent) == TABLE[name]


def test_the_initial_output_alone_makes_the_kernel_variant_of_xavier_unstable():
    assert len(abc_class(NAMED["Xavier−"]).violated) == 1
    assert phase(phase_table()["Xavier"]["kernel"]).name == "kernel"


@given(abc, halves)
def test_a_shift_changes_no_class(parametrisation, shift):
    assert abc_class(parametrisation.shifted(shift)) == abc_class(parametrisation)


@given(st.builds(Parametrisation, st.just(1.0), *[halves] * 5))
def test_the_phase_of_a_linear_network_is_that_of_its_abc_parametrisation(parametrisation):
    found, linear = abc_class(abc_of_two_layers(parametrisation)), phase(parametrisation)
    divergent = [each for each in found.violated if "initial output" in each]
    if not divergent:  # the phase of a linear network allows a divergent initial output
        names = {"learning": "feature learning", "frozen": "trivial"}
        assert found.name == names.get(linear.name, linear.name)


def test_mean_field_is_mup_of_one_hidden_layer_and_the_variant_of_xavier_too():
    mup = ABCParametrisation(-0.5, 0.0, 0.5, 0.5, 0.0, 0.5, hidden_layers=1)
    assert NAMED["Xavier+"] == mup
    assert NAMED["mean field"].shifted(-0.5).multipliers == mup.multipliers
    assert NAMED["mean field"].shifted(-0.5).deviations == mup.deviations
    assert NAMED["mean field"].shifted(-0.5).learning_rate == mup.learning_rate
    assert abc_of_two_layers(phase_table()["mean field"]["stable rates"]) == mup


def test_the_first_layer_of_the_standard_parametrisation_changes_less_than_the_second():
    assert abc_class(NAMED["standard, rate 1/n"]).layer_exponents == (-1.5, -0.5, 0)
    assert abc_class(NAMED["NTK"]).layer_exponents == (-0.5, -0.5, 0)


@given(abc)
def test_later_hidden_layers_change_at_least_as_much(parametrisation):
    found = abc_class(parametrisation)
    *hidden, output = found.layer_exponents
    assert sorted(hidden) == hidden
    assert (hidden[-1], output) == (found.feature_exponent, found.output_exponent)


def changes(parametrisation, width, seed):
    """Root mean square changes of the first and last hidden layer and of the output in ten steps of SGD, η = 0.1."""
    factors = parametrisation.at(width)
    draw = np.random.default_rng(seed)
    x, y = jnp.asarray(draw.normal(size=(4, 5))), jnp.asarray(draw.normal(size=(4, 1)))
    sizes = [5, *(width,) * parametrisation.hidden_layers, 1]
    weights = [
        jnp.asarray(draw.normal(size=shape) * deviation)
        for shape, deviation in zip(itertools.pairwise(sizes), factors.deviations, strict=True)
    ]

    def layers(weights):
        hidden = [x]
        for weight, multiplier in zip(weights[:-1], factors.multipliers, strict=False):
            hidden.append(jnp.tanh(multiplier * hidden[-1] @ weight))
        return hidden[1], hidden[-1], factors.multipliers[-1] * hidden[-1] @ weights[-1]

    slope = jax.jit(jax.grad(lambda weights: jnp.mean((layers(weights)[2] - y) ** 2) / 2))
    trained = weights
    for _ in range(10):
        trained = [w - 0.1 * factors.learning_rate * g for w, g in zip(trained, slope(trained), strict=True)]
    pairs = zip(layers(trained), layers(weights), strict=True)
    return [float(jnp.sqrt(jnp.mean((after - before) ** 2))) for after, before in pairs]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["NTK", "muP", "standard, rate 1/n", "mean field", "Kaiming+", "Kaiming−"])
def test_trained_networks_have_the_exponents(name):
    deep = NAMED[name].hidden_layers == 2
    widths, seeds = ([128, 512, 1024], 4) if deep else ([512, 2048, 8192], 16)
    with jax.enable_x64(True):  # the smallest changes are near single precision
        runs = [[np.log(changes(NAMED[name], width, seed)) for seed in range(seeds)] for width in widths]
    measured = np.mean(runs, axis=1)
    first, features, output = np.polyfit(np.log(widths), measured, 1)[0]
    found = abc_class(NAMED[name])
    assert first == pytest.approx(found.layer_exponents[0], abs=0.12)
    assert features == pytest.approx(found.feature_exponent, abs=0.12)
    assert output == pytest.approx(found.output_exponent, abs=0.2)


@pytest.mark.parametrize(
    ("name", "row", "exponent"),
    [
        ("NTK", "default", -1),
        ("mean field", "stable rates", 0),
        ("Kaiming", "learning", 0),
        ("Kaiming", "kernel", -2),
        ("Xavier", "learning", 0),
        ("Xavier", "kernel", -1),
    ],
)
def test_the_kernel_changes_with_the_exponent_of_the_ledger(name, row, exponent):
    assert phase(phase_table()[name][row]).kernel_exponent == exponent


@pytest.mark.parametrize(("c_u", "c_w", "exponent"), [(-1, 0, -1), (1, 0, -1), (0, 0, 0), (1, 1, 0), (-1, -1, 0)])
def test_at_fixed_width_the_kernel_changes_less_the_more_the_layers_differ(c_u, c_w, exponent):
    found = Parametrisation(multiplier=-(c_u + c_w) / 2, first_variance=c_w, second_variance=c_u)
    assert phase(found).kernel_exponent == exponent


def test_the_golden_change_of_the_kernel_trace():
    u, first = np.sin(1.1 * np.arange(1, 9)), np.sin(0.7 * np.arange(1, 25)).reshape(8, 3)
    network, data = LineNetwork(first.T, u, 0.8), LineData(np.array([1.0, 0.0, 0.0]), 1.0, 1.3)
    p, q = (np.sum((u + sign * first[:, 0]) ** 2) / 4 for sign in (1, -1))
    assert (p, q) == pytest.approx((2.2959288917, 1.6124171927), abs=1e-10)
    assert 0.8 * (p - q) == pytest.approx(0.5468093592, abs=1e-10)
    with jax.enable_x64(True):
        start, late = (layer_norms(network, data, time) for time in (0.0, 100.0))
        assert float(line_limit(network, data).strength) == pytest.approx(1.3)
    change = float(late.first**2 + late.second**2) / float(start.first**2 + start.second**2) - 1
    assert change == pytest.approx(0.0687776243, abs=1e-10)


def test_bad_exponents_are_rejected_by_name():
    with pytest.raises(InputError) as caught:
        abc_of_two_layers(Parametrisation(width=2.0))
    assert caught.value.argument == "parametrisation.width"
    with pytest.raises(InputError) as caught:
        abc_of_two_layers(Parametrisation(width=1.0, zero_output=True))
    assert caught.value.argument == "parametrisation.zero_output"
    with pytest.raises(InputError) as caught:
        ABCParametrisation(first_multiplier=-400.0).at(1000)
    assert caught.value.argument == "width"
    with pytest.raises(InputError) as caught:
        ABCParametrisation(hidden_layers=0)
    assert caught.value.argument == "hidden_layers"
