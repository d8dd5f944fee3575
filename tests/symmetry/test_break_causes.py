from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.symmetry import Charge, Part
from dynascope.symmetry.break_causes import causes_of
from dynascope.symmetry.evidence import Evidence
from dynascope.symmetry.step_rules import DEPARTURES

STEPS, UNITS = 30, 4
DRAW = np.random.default_rng(0)
SLOPES, CHARGES = DRAW.normal(size=(STEPS, UNITS)), DRAW.uniform(1, 2, size=(STEPS, UNITS, 2)) * [-1, 1]


def symmetry(kind="rescale", first="first", last="second"):
    labels = np.arange(UNITS)[:, None]
    return Charge(kind, (Part(first, labels, -1.0), Part(last, labels, 1.0)), UNITS, UNITS if kind == "matrix" else 1)


PAIR = (symmetry(),)


def evidence(slopes, *, symmetries=PAIR, charges=CHARGES, absolute=None, stale=None, bits=53):
    """That of gradients with these slopes, which the updates follow."""
    layers = len({path for each in symmetries for path in each.paths})
    rounding, of_layers = np.full(slopes.shape, 1e-12), np.ones((STEPS, layers))
    return Evidence(
        tuple(symmetries),
        part_charge=charges,
        part_absolute=np.zeros_like(slopes) if absolute is None else absolute,
        part_slope=slopes,
        part_stale=np.zeros_like(slopes) if stale is None else stale,
        part_slope_rounding=rounding,
        part_pull=slopes,
        part_pull_rounding=rounding,
        gradient_norm=of_layers,
        gradient_largest=of_layers,
        gradient_bits=bits * of_layers,
        update_norm=of_layers,
        clipping=0 * of_layers,
        change=0 * of_layers,
        change_by_rule=np.zeros((STEPS, layers, 3)),
        departure_factor=np.zeros((STEPS, layers, len(DEPARTURES))),
        departure_rest=np.zeros((STEPS, layers, len(DEPARTURES))),
    )


def supported(found):
    return [each for each in found if each.supported]


def test_a_gradient_with_the_symmetry_has_no_cause():
    found = causes_of(evidence(np.stack([-SLOPES, SLOPES], -1)), 0)
    assert supported(found) == []


def test_weights_that_were_changed_between_steps_are_told_first():
    changed = np.zeros((STEPS, 2))
    changed[3:7, 1] = 1
    # What the change does to the slopes is no fault of the gradient.
    given = dataclasses.replace(evidence(np.stack([-2 * SLOPES, SLOPES], -1)), changed_between=changed)
    cause, *_ = causes_of(given, 0)
    assert (cause.name, cause.paths) == ("weights changed between steps", ("second",))
    assert "4 of 30" in cause.evidence


@pytest.mark.parametrize("factor", [-1.0, 0.5, 2.0])
def test_a_factor_of_the_backward_pass_is_told_with_its_layer(factor):
    [cause] = supported(causes_of(evidence(np.stack([-factor * SLOPES, SLOPES], -1)), 0))
    assert (cause.name, cause.paths) == ("wrong backward pass", ("first",))
    assert f"{factor:.4g} times" in cause.evidence


def test_of_a_chain_the_layer_with_the_factor_is_named():
    chain = (symmetry(), symmetry(first="second", last="third"))
    # The middle gradient is negated, and breaks the laws on both sides.
    slopes = np.concatenate([np.stack([-SLOPES, -SLOPES], -1), np.stack([SLOPES, SLOPES], -1)], 1)
    given = evidence(slopes, symmetries=chain, charges=np.concatenate([CHARGES, CHARGES], 1))
    for number in (0, 1):
        [cause] = supported(causes_of(given, number))
        assert (cause.name, cause.paths) == ("wrong backward pass", ("second",))


def test_a_penalty_is_told_with_its_strength():
    slopes = np.stack([-SLOPES, SLOPES + 0.03 * CHARGES[..., 1]], -1)
    [cause] = supported(causes_of(evidence(slopes), 0))
    assert (cause.name, cause.paths) == ("L2 penalty in the loss", ("second",))
    assert "0.03 " in cause.evidence


def test_an_l1_penalty_is_distinguished_from_an_l2_penalty():
    absolute = DRAW.uniform(1, 2, size=CHARGES.shape) * [-1, 1]
    slopes = np.stack([-SLOPES, SLOPES + 0.03 * absolute.sum(2)], -1)
    [cause] = supported(causes_of(evidence(slopes, absolute=absolute), 0))
    assert (cause.name, cause.paths) == ("L1 penalty in the loss", ("first", "second"))
    assert cause.evidence.count("0.03 ") == 2
    # If all weights have the same size, the two penalties have the same slopes.
    both = supported(causes_of(evidence(slopes, absolute=absolute, charges=2 * absolute), 0))
    assert [each.name for each in both] == ["L2 penalty in the loss", "L1 penalty in the loss"]
    assert str(both[0]) == "L2 penalty in the loss or L1 penalty in the loss: first second"


@pytest.mark.parametrize("shares", [np.ones(STEPS), np.linspace(0.2, 1, STEPS)])
def test_gradients_that_hold_those_of_the_step_before_were_not_zeroed(shares):
    stale = DRAW.normal(size=SLOPES.shape)
    slopes = np.stack([-SLOPES, SLOPES + shares[:, None] * stale], -1)
    [cause] = supported(causes_of(evidence(slopes, stale=np.stack([0 * stale, stale], -1)), 0))
    assert (cause.name, cause.paths) == ("gradients not zeroed", ("first", "second"))
    assert f"{np.median(shares):.4g} times" in cause.evidence


def test_noise_is_of_lower_precision_if_gradients_have_few_bits_and_of_dropout_otherwise():
    noise = 0.3 * np.random.default_rng(1).normal(size=SLOPES.shape)
    slopes, shift = np.stack([-SLOPES, SLOPES + noise], -1), [symmetry("translation")]
    [cause] = supported(causes_of(evidence(slopes, symmetries=shift), 0))
    assert (cause.name, cause.paths) == ("dropout", ("first", "second"))
    # Masks keep what rescales units.
    assert supported(causes_of(evidence(slopes), 0)) == []
    few = evidence(slopes, symmetries=shift, bits=8)
    [cause] = supported(causes_of(few, 0))
    assert (cause.name, "bfloat16" in cause.evidence) == ("lower precision", True)
    # Noise far above the rounding of bfloat16 has a second cause.
    more = dataclasses.replace(few, part_slope_rounding=few.part_slope_rounding / 100)
    assert [each.name for each in supported(causes_of(more, 0))] == ["lower precision", "dropout"]


def test_weak_noise_may_be_of_either_cause():
    noise = np.random.default_rng(1).normal(size=SLOPES.shape)
    slopes = np.stack([-SLOPES, SLOPES + 1e-3 * noise], -1)
    coarse = {"part_slope_rounding": np.full(slopes.shape, 1e-4), "unit": 2.0**-24}
    shift = dataclasses.replace(evidence(slopes, symmetries=[symmetry("translation")]), **coarse)
    found = supported(causes_of(shift, 0))
    assert [each.name for each in found] == ["lower precision", "dropout"]
    assert [each.rivals for each in found] == [("dropout",), ("lower precision",)]
    [cause] = supported(causes_of(dataclasses.replace(evidence(slopes), **coarse), 0))
    assert (cause.name, cause.rivals) == ("lower precision", ())


@pytest.mark.parametrize("shape", [lambda steps: 1 + 0 * steps, lambda steps: np.sin(steps / 5)])
def test_what_repeats_from_step_to_step_is_no_noise(shape):
    noise = 0.03 * np.random.default_rng(1).normal(size=UNITS) * shape(np.arange(STEPS))[:, None]
    slopes = np.stack([-SLOPES, SLOPES + noise], -1)
    assert supported(causes_of(evidence(slopes, symmetries=[symmetry("translation")]), 0)) == []


def test_what_acts_on_each_unit_alone_breaks_a_matrix_off_its_diagonal():
    matrix = symmetry("matrix")
    shape = (STEPS, matrix.size)
    first, noise = DRAW.normal(size=shape), DRAW.normal(size=shape)
    rows, columns = np.triu_indices(UNITS)
    slopes = np.stack([-first, first + noise * (rows != columns)], -1)
    given = evidence(slopes, symmetries=[matrix], charges=np.ones((*shape, 2)))
    # An activation repeats from step to step; a mask that is drawn at each step does not.
    cause, random = supported(causes_of(given, 0))
    assert (cause.name, cause.paths) == ("elementwise operation inside", ("first", "second"))
    assert random.name == "dropout"
    constant = slopes + np.stack([0 * noise, (1 - noise) * (rows != columns)], -1)
    repeated = evidence(constant, symmetries=[matrix], charges=np.ones((*shape, 2)))
    assert [each.name for each in supported(causes_of(repeated, 0))] == ["elementwise operation inside"]
    whole = evidence(np.stack([-first, first + noise], -1), symmetries=[matrix], charges=np.ones((*shape, 2)))
    assert supported(causes_of(whole, 0)) == []


def test_a_slope_along_a_scale_is_that_of_a_norm():
    scale = symmetry("scale")
    noise = DRAW.normal(size=SLOPES.shape)
    [cause] = supported(causes_of(evidence(np.stack([SLOPES, noise], -1), symmetries=[scale]), 0))
    assert cause.name.startswith("norm: its ε")
