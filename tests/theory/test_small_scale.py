from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

from dynascope import predict
from dynascope.alternating import alternating_flow
from dynascope.compilation import jit
from dynascope.groups import cyclic
from dynascope.networks import DiagonalLinear
from dynascope.prediction.theories.catalogue import THEORIES
from dynascope.prediction.theories.time_tolerance import Solved
from dynascope.tasks import Task
from dynascope.theory.assumptions import SMALL_START
from dynascope.theory.domain import covers
from dynascope.theory.groups import composition_staircase
from dynascope.theory.staircase import deep_diagonal_staircase, diagonal_staircase, linear_staircase

X = np.random.default_rng(0).normal(size=(20, 3))
TASK = Task(X, X @ [1.0, 0.5, 0.0])
MOMENTS = (TASK.cross_moment, TASK.input_moment, TASK.target_power)


@pytest.mark.parametrize(
    "at",
    [
        lambda scale: linear_staircase(*MOMENTS, scale=scale),
        lambda scale: diagonal_staircase(X, TASK.targets[:, 0], scale=scale),
        lambda scale: deep_diagonal_staircase(X, TASK.targets[:, 0], depth=3, scale=scale),
        lambda scale: alternating_flow(TASK, DiagonalLinear(3), scale=scale, jumps=1),
        lambda scale: alternating_flow(TASK, DiagonalLinear(3), scale=[0.01, scale], jumps=1),
    ],
)
def test_theories_of_small_starts_warn_of_a_scale_that_is_not_with_the_amount(at):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        at(0.1)
    with pytest.warns(UserWarning, match=r"scale is 0\.5, which is above 0\.3"):
        at(0.5)


@pytest.mark.parametrize(
    "kind", [np.float32, np.float64, np.array, jnp.asarray, lambda scale: np.array([[0.01, scale]])]
)
def test_a_scale_is_warned_of_whatever_holds_it_and_however_it_is_given(kind):
    @covers(network="any", data="any", start="small", gives="itself", reference="none", assumes=(SMALL_START,))
    def theory_of(scale, *, times=1.0):
        return scale

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        theory_of(kind(0.1))
        jit(theory_of)(0.5)  # of what is traced nothing is known
    for call in (lambda: theory_of(kind(0.5)), lambda: theory_of(scale=kind(0.5))):
        with pytest.warns(UserWarning, match=r"theory_of .*scale is 0\.5"):
            call()


def test_a_scale_that_a_theory_has_by_default_is_warned_of_too():
    @covers(network="any", data="any", start="small", gives="itself", reference="none", assumes=(SMALL_START,))
    def theory_of(*, scale=0.9):
        return scale

    with pytest.warns(UserWarning, match=r"the scale is 0\.9"):
        theory_of()


def test_a_theory_says_what_a_large_start_costs_it():
    group = cyclic(3)
    with pytest.warns(UserWarning, match=r"2\.7/log\(1/scale\)"):
        composition_staircase(group, np.array([1.0, 0.0, -1.0]), 2, scale=0.5)


@pytest.mark.parametrize(
    "theory", [each for each in THEORIES if isinstance(each.solve, Solved)], ids=lambda each: each.name
)
def test_what_a_theory_says_of_larger_starts_is_what_its_record_allows(theory):
    assumed = next(each for each in theory.assumes if each == SMALL_START)
    trust = theory.solve.trust
    allowed = f"{trust.time_offset:g}/log(1/scale)" if trust.time_offset else f"{100 * trust.time_floor:g} %"
    assert allowed in assumed.growth


@pytest.mark.parametrize(
    ("scale", "said", "network"), [(0.1, False, "linear"), (0.5, True, "linear"), (0.5, True, DiagonalLinear(3))]
)
def test_a_prediction_says_it_in_its_record_and_warns_no_one_else(scale, said, network):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record = predict(TASK, network, scale=scale, curve=False).record
    told = record.attrs["warnings"]
    assert any("0.5 (above the limit 0.01)" in each for each in told) == said
