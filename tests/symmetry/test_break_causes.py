from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope.symmetry import Charge, Part
from dynascope.symmetry.break_causes import Evidence, causes_of

STEPS, UNITS = 30, 4
DRAW = np.random.default_rng(0)
SLOPES, CHARGES = DRAW.normal(size=(STEPS, UNITS)), DRAW.uniform(1, 2, size=(STEPS, UNITS, 2)) * [-1, 1]


def symmetry(kind="rescale", first="first", last="second"):
    labels = np.arange(UNITS)[:, None]
    return Charge(kind, (Part(first, labels, -1.0), Part(last, labels, 1.0)), UNITS, UNITS if kind == "matrix" else 1)


PAIR = (symmetry(),)


def evidence(slopes, *, symmetries=PAIR, charges=CHARGES):
    """That of gradients with these slopes, which the updates follow."""
    layers = len({path for each in symmetries for path in each.paths})
    rounding, of_layers = np.full(slopes.shape, 1e-12), np.ones((STEPS, layers))
    return Evidence(
        tuple(symmetries),
        *(charges, charges, slopes, rounding, slopes, rounding),
        *(of_layers, of_layers, of_layers, 0 * of_layers, 0 * of_layers, 0 * of_layers, np.zeros((STEPS, layers, 3))),
    )


def supported(found):
    return [each for each in found if each.supported]


def test_a_gradient_with_the_symmetry_has_no_cause():
    found = causes_of(evidence(np.stack([-SLOPES, SLOPES], -1)), 0)
    assert supported(found) == []
    assert {each.said[:24] for each in found[1:]} == {"the gradient keeps the s", "the updates follow from "}
    assert "nobody looked" in found[0].said


def test_weights_that_were_changed_between_steps_are_told_first():
    changed = np.zeros((STEPS, 2))
    changed[3:7, 1] = 1
    # What the change does to the slopes is no fault of the gradient.
    given = dataclasses.replace(evidence(np.stack([-2 * SLOPES, SLOPES], -1)), changed_between=changed)
    cause, *_ = causes_of(given, 0)
    assert (cause.name, cause.paths) == ("weights changed between steps", ("second",))
    assert "4 of 30" in cause.said


@pytest.mark.parametrize("factor", [-1.0, 0.5, 2.0])
def test_a_factor_of_the_backward_pass_is_told_with_its_layer(factor):
    [cause] = supported(causes_of(evidence(np.stack([-factor * SLOPES, SLOPES], -1)), 0))
    assert (cause.name, cause.paths) == ("wrong backward pass", ("first",))
    assert f"{factor:.4g} times" in cause.said


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
    assert (cause.name, cause.paths) == ("penalty in the loss", ("second",))
    assert "0.03 times" in cause.said


def test_what_acts_on_each_unit_alone_breaks_a_matrix_off_its_diagonal():
    matrix = symmetry("matrix")
    shape = (STEPS, matrix.size)
    first, noise = DRAW.normal(size=shape), DRAW.normal(size=shape)
    rows, columns = np.triu_indices(UNITS)
    slopes = np.stack([-first, first + noise * (rows != columns)], -1)
    given = evidence(slopes, symmetries=[matrix], charges=np.ones((*shape, 2)))
    [cause] = supported(causes_of(given, 0))
    assert (cause.name, cause.paths) == ("elementwise operation inside", ("first", "second"))
    whole = evidence(np.stack([-first, first + noise], -1), symmetries=[matrix], charges=np.ones((*shape, 2)))
    assert supported(causes_of(whole, 0)) == []


def test_a_slope_along_a_scale_is_that_of_a_norm():
    scale = symmetry("scale")
    noise = DRAW.normal(size=SLOPES.shape)
    [cause] = supported(causes_of(evidence(np.stack([SLOPES, noise], -1), symmetries=[scale]), 0))
    assert cause.name.startswith("norm: its ε")
