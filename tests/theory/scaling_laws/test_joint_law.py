from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.scaling_laws import JointLaw


@settings(max_examples=12, deadline=None)
@given(st.floats(0.1, 1), st.floats(0.1, 1), st.floats(-3, 3), st.floats(1, 1e25), st.floats(0.1, 100))
def test_the_split_is_the_least_loss_of_all_ways_to_spend_the_compute(a, b, ratio, compute, cost):
    law = JointLaw(0.5, float(np.exp(ratio)), a, 1.0, b)
    best = law.split(compute, cost=cost)
    np.testing.assert_allclose(cost * best.parameters * best.data, compute)
    curve = law.isoflop(compute, best.parameters * np.array([0.9, 1.0, 1.1]), cost=cost)
    np.testing.assert_allclose(curve.loss[1], best.loss)
    assert np.all(curve.loss[[0, 2]] >= best.loss)
    growth = np.log(law.split(10 * compute, cost=cost).parameters / best.parameters)
    np.testing.assert_allclose(growth, best.exponent * np.log(10))


def test_a_curve_of_equal_compute_is_about_its_best_size():
    law = JointLaw(1.69, 406.4, 0.34, 410.7, 0.28)
    curve, best = law.isoflop(1e21), law.split(1e21)
    np.testing.assert_allclose(6 * curve.parameters * curve.data, 1e21)
    assert curve.parameters[np.argmin(curve.loss)] == pytest.approx(best.parameters)
    np.testing.assert_allclose(curve.loss, law.loss(curve.parameters, curve.data))


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("compute", lambda law: law.split(0.0)),
        ("cost", lambda law: law.split(1e20, cost=-1.0)),
        ("law", lambda law: law._replace(data_exponent=0.0).split(1e20)),
        ("parameters", lambda law: law.loss(0.0, 1e9)),
        ("data", lambda law: law.loss(1e9, -1.0)),
        ("parameters", lambda law: law.isoflop(1e20, [1e9, -1.0])),
    ],
)
def test_bad_input_is_refused_by_name(argument, call):
    with pytest.raises(InputError) as refusal:
        call(JointLaw(1.69, 406.4, 0.34, 410.7, 0.28))
    assert refusal.value.argument == argument
