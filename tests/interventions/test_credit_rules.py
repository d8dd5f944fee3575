from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.interventions import CREDIT_RULES, FeedbackConvolution, FeedbackDense
from dynascope.interventions.credit_rules import regularizer
from dynascope.theory.interventions import alignment_primitive

PRIMITIVES = ("decay", "amplification", "null", "sparse", "self_alignment")


@given(seed=st.integers(0, 2**31))
def test_the_regularizer_of_a_dense_layer_is_the_sum_of_the_primitives(seed):
    draw = np.random.default_rng(seed)
    x, w, b = (draw.normal(size=shape) for shape in ((6, 4), (4, 3), (4, 3)))
    coefficients = dict(zip(PRIMITIVES, draw.uniform(size=5), strict=True))
    with jax.enable_x64(True):
        value, slope = jax.value_and_grad(lambda b: regularizer(FeedbackDense(w, np.zeros(3)), x, b, coefficients))(b)
    parts = {name: alignment_primitive(name, x, w, b) for name in PRIMITIVES}
    assert float(value) == pytest.approx(sum(coefficients[name] * float(parts[name].value) for name in PRIMITIVES))
    expected = sum(coefficients[name] * parts[name].gradient for name in PRIMITIVES)
    np.testing.assert_allclose(slope, expected, rtol=1e-9, atol=1e-10)


def test_a_kernel_of_one_pixel_has_the_primitives_of_a_dense_layer_on_its_pixels():
    draw = np.random.default_rng(0)
    images, w, b = (draw.normal(size=shape) for shape in ((2, 3, 3, 4), (4, 3), (4, 3)))
    layer = FeedbackConvolution(w[None, None], np.zeros(3))
    for name in PRIMITIVES:
        with jax.enable_x64(True):
            found = float(regularizer(layer, images, b[None, None], {name: 1.0}))
        expected = float(alignment_primitive(name, images.reshape(-1, 4), w, b).value)
        assert found == pytest.approx(expected, rel=1e-12)


def test_every_rule_has_a_fixed_point():
    draw = np.random.default_rng(0)
    w, initial = draw.normal(size=(2, 4, 3))
    for name, rule in CREDIT_RULES.items():
        found = rule.fixed_point(w, np.eye(4), initial)
        aligned = name not in ("feedback alignment", "sign symmetry", "information alignment")
        assert np.allclose(found, w) == aligned, name
        assert (name == "feedback alignment") == np.allclose(found, initial)
    signs = CREDIT_RULES["sign symmetry"].fixed_point(w, np.eye(4), initial)
    np.testing.assert_allclose(signs, np.sign(w) * np.abs(w).mean())
