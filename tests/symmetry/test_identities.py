from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from symmetry.zoo import (
    A1,
    BATCH,
    N1,
    attention,
    attention_loss,
    batch_normed,
    batch_normed_with_epsilon,
    classifier_loss,
    hidden,
    structure_of,
    wave,
)

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.symmetry import charges, check_identities, find_symmetries, orbit_directions

INPUTS = wave(np.sin, 0.8, 4, 3)


@functools.cache
def head_symmetries():
    return find_symmetries(attention, A1, INPUTS).symmetries


@functools.cache
def normed_scale():
    (scale,) = (each for each in find_symmetries(batch_normed, N1, BATCH).symmetries if each.kind == "scale")
    return scale


@functools.cache
def probability_symmetries():
    return find_symmetries(lambda p, x: jax.nn.log_softmax(hidden(p, x)), N1, BATCH).symmetries


def test_losses_of_the_fixtures_are_those_of_the_ledger():
    with jax.enable_x64(True):
        compiled = jit(classifier_loss, static_argnums=0)
        assert compiled(hidden, N1) == pytest.approx(1.085788754887, abs=1e-12)
        assert compiled(batch_normed, N1) == pytest.approx(0.616616521880, abs=1e-12)
        head = jit(attention_loss)
        assert head({name: A1[name] for name in "QKVO"}) == pytest.approx(1.253906739543, abs=1e-12)
        assert head(A1) == pytest.approx(0.809685714933, abs=1e-12)


def test_identities_hold_for_a_classifier_and_have_the_norms_of_the_ledger():
    found = probability_symmetries()
    checked = check_identities(lambda p: classifier_loss(hidden, p), N1, found)
    assert [(each.charge.kind, each.holds) for each in checked] == [
        ("rescale", True), ("translation", True), ("translation", True)
    ]  # fmt: skip
    # The ledger says 1e-14 of the gradient.
    assert max(np.abs(each.gradient).max() for each in checked) < 1e-14
    assert max(each.hessian for each in checked) < 1e-13
    with jax.enable_x64(True):
        gradient = jax.tree.map(np.asarray, jit(jax.grad(lambda p: classifier_loss(hidden, p)))(N1))
    (neurons,) = (each for each in found if each.kind == "rescale")
    assert neurons.form(gradient, gradient)[0] == pytest.approx(0.466435985145176 - 0.219206180239315, abs=1e-13)


def test_a_norm_with_epsilon_breaks_the_identity_by_the_amount_of_the_ledger():
    scale = normed_scale()
    (exact,) = check_identities(lambda p: classifier_loss(batch_normed, p), N1, [scale])
    (broken,) = check_identities(lambda p: classifier_loss(batch_normed_with_epsilon, p), N1, [scale])
    assert exact.holds
    assert np.abs(exact.gradient).max() < 1e-15
    assert not broken.holds
    assert broken.gradient[0] == pytest.approx(-0.000335387677, abs=1e-12)


def test_charges_of_batch_norm_are_those_of_the_ledger():
    scale = normed_scale()
    assert charges(N1, [scale])[0] == pytest.approx(2.2185902021, abs=1e-10)
    with jax.enable_x64(True):
        gradient = jax.tree.map(np.asarray, jit(jax.grad(lambda p: classifier_loss(batch_normed, p)))(N1))
    assert scale.form(gradient, gradient)[0] == pytest.approx(0.007151285757692, abs=1e-14)


def test_the_whole_matrix_identity_of_attention_holds_with_its_antisymmetric_part():
    checked = check_identities(attention_loss, A1, head_symmetries())
    assert [(each.charge.kind, each.holds, each.gradient.shape) for each in checked] == [
        ("matrix", True, (1, 2, 2))
    ] * 2


def test_a_gradient_that_is_wrong_is_found():
    @jax.custom_vjp
    def shrunk(z):
        return z

    shrunk.defvjp(lambda z: (z, None), lambda _, g: (0.9 * g,))
    found = find_symmetries(hidden, N1, BATCH).symmetries

    def loss(p):
        return classifier_loss(lambda q, x: jax.nn.relu(shrunk(x @ q["W1"].T) + q["b1"]) @ q["W2"].T, p)

    (checked,) = check_identities(loss, N1, found)
    assert not checked.holds


def test_identities_are_checked_in_the_precision_of_the_parameters():
    narrow = jax.tree.map(lambda each: jnp.asarray(each, jnp.float32), N1)
    found = find_symmetries(hidden, N1, BATCH).symmetries
    (checked,) = check_identities(lambda p: classifier_loss(hidden, p), narrow, found)
    assert checked.holds
    assert np.abs(checked.gradient).max() > 1e-12


def test_the_hessian_at_a_minimum_is_flat_along_orbits_and_nowhere_else():
    symmetries = structure_of("two-layer linear").symmetries
    random = np.random.default_rng(4)
    first, second, inputs = (random.normal(size=shape) for shape in ((2, 2), (2, 2), (6, 2)))
    targets = inputs @ first @ second
    with jax.enable_x64(True):
        flat, back = ravel_pytree([first, second])

        def loss(theta):
            one, other = back(theta)
            return jnp.mean((inputs @ one @ other - targets) ** 2)

        curvature = np.asarray(jit(jax.hessian(loss))(flat))
    along = orbit_directions([first, second], symmetries)
    # GL(2) has four directions, and the Hessian of four independent outputs as many that are not flat.
    assert along.shape == (4, 8)
    assert np.abs(curvature @ along.T).max() < 1e-13
    assert (np.linalg.eigvalsh(curvature) > 1e-6).sum() == 4


def test_translations_are_flat_anywhere():
    found = probability_symmetries()
    assert orbit_directions(N1, found, at="anywhere").shape == (5, 26)
    assert orbit_directions(N1, found[:1], at="anywhere").shape == (0, 26)


@pytest.mark.usefixtures("unchecked_types")
def test_what_is_no_loss_is_refused():
    found = structure_of("ReLU").symmetries
    with pytest.raises(InputError, match="one real number"):
        check_identities(
            lambda p: p["W1"], {k: np.ones(s) for k, s in {"W1": (2, 2), "b1": (2,), "W2": (1, 2)}.items()}, found
        )
    with pytest.raises(InputError, match="at is"):
        orbit_directions(N1, found, at="saddle")
