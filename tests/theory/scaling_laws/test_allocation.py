from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.scaling_laws import JointLaw, PowerLaw, compute_optimum, fit, plan, power_laws, time_law
from dynascope.theory.scaling_laws.allocation import finite_optimum

MODEL = {"target_scale": 1.0, "initial_strength": 0.01}
TIME, PARAMETERS = PowerLaw(0.6, 0.4), PowerLaw(0.3, 0.5)


def test_optimum_golden():
    theta = [compute_optimum(1.0, alpha, **MODEL).theta for alpha in (0.3, 0.6, 0.9)]
    # Golden numbers are stored with 8 digits.
    np.testing.assert_allclose(theta, [6.9589046, 3.8843773, 2.8700627], rtol=0, atol=3e-7)


@pytest.mark.parametrize("alpha", [0.3, 0.6, 0.9])
def test_optimum_is_the_least_loss_of_all_ways_to_spend_the_compute(alpha):
    best = compute_optimum(1e9, alpha, **MODEL)
    np.testing.assert_allclose(best.time * best.neurons, 1e9)
    neurons = best.neurons * np.exp(np.linspace(-1, 1, 41))
    losses = [float(time_law(1e9 / count, alpha, neurons=count, **MODEL)) for count in neurons]
    # The optimum lies within a step of 5 % of N; the law is that of large N, 2e-4 off at this compute.
    assert abs(int(np.argmin(losses)) - 20) <= 1
    np.testing.assert_allclose(min(losses), best.loss, rtol=2e-4)


@settings(max_examples=10, deadline=None)
@given(st.floats(0.15, 1.5), st.floats(1e-6, 0.4), st.floats(1, 1e15))
def test_plan_of_skills_is_the_optimum_of_the_model(alpha, start, compute):
    model = {"target_scale": 1.0, "initial_strength": start}
    laws = power_laws(alpha, **model)
    best = compute_optimum(compute, alpha, **model)
    found = plan(compute, time=laws.time, parameters=laws.parameters, contrast=1 / start - 1)
    # θ* has half the digits of the loss.
    np.testing.assert_allclose([found.neurons, found.time], [best.neurons, best.time], rtol=1e-7)
    np.testing.assert_allclose([found.loss, laws.compute.loss(compute)], best.loss, rtol=1e-10)
    np.testing.assert_allclose(found.loss_exponent, laws.compute.exponent)


@settings(max_examples=12, deadline=None)
@given(st.floats(0.1, 2), st.floats(0.1, 2), st.floats(1e-3, 10), st.floats(1e-3, 10), st.floats(0.1, 10))
def test_plan_of_a_sum_is_its_least_value(t, n, a, b, cost):
    compute = np.array([1e3, 1e9])
    found = plan(compute, time=PowerLaw(a, t), parameters=PowerLaw(b, n), cost=cost, floor=0.1)
    np.testing.assert_allclose(cost * found.neurons * found.time, compute)

    def loss(neurons):
        return a * (compute / cost / neurons) ** -t + b * neurons**-n + 0.1

    np.testing.assert_allclose(found.loss, loss(found.neurons))
    assert np.all(loss(found.neurons * 1.01) > found.loss * (1 - 1e-15))
    assert np.all(loss(found.neurons / 1.01) > found.loss * (1 - 1e-15))
    growth = np.log(1e6)
    np.testing.assert_allclose(np.diff(np.log(found.neurons)), found.neurons_exponent * growth)
    np.testing.assert_allclose(np.diff(np.log(found.time)), found.time_exponent * growth)
    np.testing.assert_allclose(-np.diff(np.log(found.loss - 0.1)), found.loss_exponent * growth, rtol=1e-3)


def test_the_sum_counts_absent_skills_twice():
    laws, best = power_laws(0.6, **MODEL), compute_optimum(1e9, 0.6, **MODEL)
    found = plan(1e9, time=laws.time, parameters=laws.parameters)
    # The numbers of its docstring.
    np.testing.assert_allclose([found.loss / best.loss, found.neurons / best.neurons], [1.81, 1.64], atol=0.01)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("compute", {"compute": 0.0}),
        ("time", {"time": PowerLaw(1.0, -0.1)}),
        ("time", {"time": PowerLaw(1.0, 1.5), "contrast": 9.0}),
        ("parameters", {"parameters": PowerLaw(0.0, 0.1)}),
        ("contrast", {"contrast": 0.0}),
        ("cost", {"cost": 0.0}),
        ("floor", {"floor": -1.0}),
        ("time", {"time": None}),
        ("parameters", {"parameters": None}),
        ("joint", {"joint": JointLaw(1.0, 2.0, 0.3, 2.0, 0.3)}),
    ],
)
def test_bad_plans_are_refused_by_name(argument, change):
    with pytest.raises(InputError) as refusal:
        plan(**{"compute": 1e6, "time": TIME, "parameters": PARAMETERS, **change})
    assert refusal.value.argument == argument


def test_the_floor_of_a_slice_is_not_that_of_a_plan():
    x = np.geomspace(10, 1e5, 41)
    joint = JointLaw(1.0, 3.0, 0.5, 5.0, 0.4)
    in_time, in_size = fit(joint.loss(20.0, x), x), fit(joint.loss(x, 1e4), x)
    # Each slice holds what the other resource leaves: 3/√20 and 5 · 1e4^−0.4.
    np.testing.assert_allclose([in_time.floor, in_size.floor], [1.6708, 1.1256], rtol=1e-4)
    with pytest.raises(InputError, match="fall to") as refusal:
        plan(1e9, time=in_time, parameters=in_size, floor=in_time.floor)
    assert refusal.value.argument == "floor"
    known = plan(1e9, time=in_time, parameters=in_size, floor=1.0)
    np.testing.assert_allclose(known.loss, plan(1e9, joint=joint).loss, rtol=1e-6)


def test_bad_models_are_refused():
    with pytest.raises(InputError) as refusal:
        compute_optimum([1.0, -1.0], 0.6, **MODEL)
    assert refusal.value.argument == "compute"


def test_the_optimum_of_finite_compute_tends_to_that_of_large_compute():
    neurons, loss = finite_optimum(1e9, 0.6, 10, 1e5, **MODEL)
    best = compute_optimum(1e9, 0.6, **MODEL)
    # Half a neuron in thousands, and what the source says of the loss.
    assert neurons == pytest.approx(float(best.neurons), rel=1e-3)
    assert loss == pytest.approx(float(best.loss), rel=3e-4)
