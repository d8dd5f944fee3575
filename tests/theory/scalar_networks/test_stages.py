from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.scalar_networks import clean_stages, is_stage_like, stage_threshold


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def test_threshold_golden():
    # Golden numbers are stored with 12 digits.
    np.testing.assert_allclose(stage_threshold(5.0, 1e-4, 1.0, 0.5), 0.0264270128547, rtol=1e-10)
    np.testing.assert_allclose(stage_threshold(2.0, 1e-3, 1.0, 0.4), 0.037064910693, rtol=1e-10)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.floats(0.5, 10), st.floats(1e-4, 0.05), st.floats(0.1, 0.95), st.floats(0.01, 0.45))
def test_modes_are_stage_like_above_the_threshold_only(target, scale, ratio, fraction):
    threshold = float(stage_threshold(target, scale**2, 1.0, ratio))
    # The formula is about modes that have not emerged at the start; equality is a matter of rounding.
    assume(scale**2 < fraction * target)
    assume(abs(fraction / threshold - 1) > 1e-6)
    stage_like = is_stage_like(target, np.array([1.0, ratio]), scale, scale, 0.7, fraction=fraction)
    assert stage_like.tolist() == [fraction > threshold]


@settings(max_examples=12, deadline=None)
@given(st.floats(0.1, 2), st.floats(1e-8, 1e-2), st.floats(0.01, 0.45))
def test_clean_stages_counts_the_pairs_below_the_threshold(exponent, start, fraction):
    ranks = np.arange(1, 400)
    power = ranks ** -(exponent + 1.0)
    thresholds = np.asarray(stage_threshold(1.0, start, power[:-1], power[1:]))
    assume(np.abs(fraction / thresholds - 1).min() > 1e-9)
    assert clean_stages(1.0, start, exponent, fraction=fraction) == np.sum(fraction > thresholds)


def test_a_mode_that_never_emerges_ends_no_stage():
    stage_like = is_stage_like(1.0, np.array([1.0, 0.3, 0.1]), 0.01, np.array([0.01, -0.01, 0.01]))
    # The second mode sits on the saddle: the first finishes before it, and it never finishes itself.
    assert stage_like.tolist() == [True, False]


@pytest.mark.parametrize(
    ("argument", "arguments"),
    [
        ("initial_strength", (1.0, 1.0, 1.0, 0.5)),
        ("initial_strength", (1.0, 0.0, 1.0, 0.5)),
        ("next_input_power", (1.0, 0.1, 0.5, 0.5)),
        ("next_input_power", (1.0, 0.1, 0.5, 0.0)),
        ("target", (-1.0, 0.1, 1.0, 0.5)),
    ],
)
def test_bad_input_to_the_threshold_is_refused_by_name(argument, arguments):
    with pytest.raises(InputError) as refusal:
        stage_threshold(*arguments)
    assert refusal.value.argument == argument


def test_bad_input_to_the_counts_is_refused_by_name():
    for call, argument in (
        (lambda: clean_stages(1.0, 2.0, 0.6), "initial_strength"),
        (lambda: clean_stages(1.0, 0.1, 0.0), "spectrum_exponent"),
        (lambda: clean_stages(1.0, 0.1, 0.6, fraction=0.5), "fraction"),
        (lambda: is_stage_like(1.0, 1.0, 0.1, 0.1), "target"),
    ):
        with pytest.raises(InputError) as refusal:
            call()
        assert refusal.value.argument == argument


def test_no_stage_is_clean_from_a_large_start():
    assert clean_stages(1.0, 0.3, 0.6) == 0
