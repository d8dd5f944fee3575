from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.interventions import AlignmentCoefficients, alignment_primitive

NAMES = ("decay", "amplification", "null", "sparse", "self_alignment")


def sines(shape, frequency):
    return np.sin(frequency * np.arange(1, 1 + np.prod(shape))).reshape(shape)


# The ledger's forward weights map columns, so they are transposed here.
LAYER = {"inputs": sines((4, 3), 0.5), "weights": sines((2, 3), 1).T, "backward": sines((3, 2), 2)}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("decay", 1.5201720267781822),
        ("amplification", -0.3157062801327586),
        ("null", 4.005641125456625),
        ("sparse", 0.12211689776488492),
        ("self_alignment", -0.2082605112354763),
    ],
)
def test_every_primitive_has_its_reference_value(name, value):
    np.testing.assert_allclose(alignment_primitive(name, **LAYER).value, value, rtol=1e-13)


def test_the_gradient_of_the_null_primitive_has_its_reference_value():
    expected = [
        [2.95152834927385, -3.081850052344053],
        [-2.278058465257932, 2.381498262572542],
        [0.026548418266545, -0.031452242512582],
    ]
    np.testing.assert_allclose(alignment_primitive("null", **LAYER).gradient, expected, rtol=1e-11)


@given(seed=st.integers(0, 2**31), samples=st.integers(1, 6), inputs=st.integers(1, 5), outputs=st.integers(1, 4))
def test_gradients_are_derivatives_of_the_values(seed, samples, inputs, outputs):
    draw = np.random.default_rng(seed)
    x, w, b, direction = (draw.normal(size=shape) for shape in ((samples, inputs), *[(inputs, outputs)] * 3))
    for name in NAMES:
        # Every primitive is at most quadratic in B, so central differences are exact up to rounding.
        above, below = (alignment_primitive(name, x, w, b + sign * direction).value for sign in (1, -1))
        slope = np.sum(direction * alignment_primitive(name, x, w, b).gradient)
        np.testing.assert_allclose((above - below) / 2, slope, rtol=1e-9, atol=1e-9)


@given(seed=st.integers(0, 2**31))
def test_equal_amplification_and_null_are_the_loss_of_an_autoencoder_with_decoder_b(seed):
    draw = np.random.default_rng(seed)
    x, w = draw.normal(size=(7, 4)), draw.normal(size=(4, 3))

    def rest(b):
        found = sum(float(alignment_primitive(name, x, w, b).value) for name in ("amplification", "null"))
        return np.sum((x - x @ w @ b.T) ** 2) / (2 * len(x)) - found

    assert rest(draw.normal(size=(4, 3))) == pytest.approx(rest(draw.normal(size=(4, 3))), abs=1e-9)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"backward": np.ones((2, 3))}, "backward"),
        ({"inputs": np.ones((4, 2))}, "inputs"),
        ({"weights": np.ones(3)}, "weights"),
        ({"inputs": np.full((4, 3), np.nan)}, "inputs"),
        ({"name": "mirror"}, "name"),
    ],
)
def test_bad_input_is_rejected_by_name(change, argument):
    with pytest.raises(InputError) as caught:
        alignment_primitive(**{"name": "null", **LAYER, **change})
    assert caught.value.argument == argument


def test_a_negative_coefficient_is_rejected_by_name():
    with pytest.raises(InputError) as caught:
        AlignmentCoefficients(null=-1.0)
    assert caught.value.argument == "null"
