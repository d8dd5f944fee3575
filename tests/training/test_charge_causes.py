from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

from dynascope.networks import TwoLayer
from dynascope.symmetry import Charge, Part, audit, charges
from dynascope.symmetry.step_rules import DEPARTURES, RULES
from dynascope.tasks import Task
from dynascope.training import Descent, charge_statistics, descend

STEPS, RATE, MOMENTUM, DECAY, MORE = 30, 0.05, 0.8, 0.02, 0.01
DRAW = np.random.default_rng(0)
TASK = Task(DRAW.normal(size=(12, 3)), DRAW.normal(size=(12, 2)))
NETWORK = TwoLayer(3, 4, 2, activation="relu")
UNITS = np.arange(4)
FIRST, SECOND = (
    jax.tree_util.keystr(path)
    for path, _ in jax.tree_util.tree_leaves_with_path(eqx.filter(NETWORK, eqx.is_inexact_array))
)
RESCALE = Charge("rescale", (Part(FIRST, UNITS[None], -1.0), Part(SECOND, UNITS[:, None], 1.0)), 4)
# No symmetry of the network, but its sums of weights go by the same rules.
SHIFT = Charge("translation", (Part(SECOND, np.arange(2)[None], 1.0),), 2)


def heavy_ball(rate):
    return optax.chain(optax.add_decayed_weights(DECAY), optax.sgd(rate, momentum=MOMENTUM))


def nesterov(rate):
    return optax.chain(optax.add_decayed_weights(DECAY), optax.sgd(rate, momentum=MOMENTUM, nesterov=True))


def decoupled(rate, more=0.0):
    decay = optax.add_decayed_weights(DECAY + more)
    return optax.chain(optax.trace(MOMENTUM), decay, optax.scale_by_learning_rate(rate))


def trained(rule, name, *, rate=RATE):
    with jax.enable_x64(True):
        return descend(
            TASK,
            NETWORK,
            Descent(
                rule,
                learning_rate=rate,
                steps=STEPS,
                batches=4,
                save=range(STEPS + 1),
                statistics=charge_statistics(
                    [RESCALE, SHIFT], optimizer=name, momentum=MOMENTUM, weight_decay=DECAY, causes=True
                ),
            ),
        )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rule", "name"), [(heavy_ball, "heavy_ball"), (nesterov, "nesterov"), (decoupled, "decoupled")]
)
def test_the_gradient_that_updates_imply_is_the_gradient_and_steps_at_rate_zero_are_believed(rule, name):
    run = trained(rule, name, rate=optax.warmup_cosine_decay_schedule(0.0, RATE, 5, STEPS))
    steps = run.isel(step=slice(1, None))
    assert run.applied_rate[1] == 0
    assert (abs(run.measured_charge - run.predicted_charge) <= run.charge_bound).isel(charge=slice(4)).all()
    assert (abs(steps.part_pull - steps.part_slope) <= steps.part_pull_rounding).all()
    assert (abs(steps.part_slope).sum("step")[:4] > 1e3 * steps.part_pull_rounding.sum("step")[:4]).all()
    assert (steps.change < 1e-9).all()  # of buffers that add up what is rounded
    # Parts are those before the step, and add up to the charge.
    np.testing.assert_allclose(steps.part_charge.sum("part"), run.measured_charge[:-1], rtol=1e-12)
    np.testing.assert_allclose(steps.part_slope.sum("part")[:, :4], 0, atol=1e-14)


@pytest.mark.slow
@pytest.mark.parametrize("declared", RULES)
def test_the_rule_that_was_not_declared_is_named(declared):
    for name, rule in zip(RULES, (heavy_ball, nesterov, decoupled), strict=True):
        run = trained(rule, declared)
        by_rule = run.change_by_rule[1:].max(["step", "layer"]).to_numpy()
        assert by_rule[RULES.index(name)] < 1e-9 < 1e-3 < np.delete(by_rule, RULES.index(name)).min()
        found = audit(run, [RESCALE, SHIFT]).cause
        if name == declared:
            assert (run.change_by_rule[1:, :, RULES.index(name)] == run.change[1:]).all()
        else:
            assert found is not None
            assert found.name == "different momentum rule"
            assert set(found.paths) == {FIRST, SECOND}


@pytest.mark.slow
def test_decay_that_is_not_declared_is_the_departure_of_every_step():
    steps = trained(lambda rate: decoupled(rate, MORE), "decoupled").isel(step=slice(1, None))
    decay = DEPARTURES.index("decay")
    np.testing.assert_allclose(steps.departure_factor[..., decay], MORE, rtol=1e-9)
    assert (steps.departure_rest[..., decay] < 1e-12).all()


@pytest.mark.slow
def test_norms_and_what_is_cut_off_are_those_of_each_parameter():
    run = trained(lambda rate: optax.chain(optax.clip(0.01), heavy_ball(rate)), "heavy_ball")
    assert run.sizes["layer"] == 2
    assert run.clipping[1:].max() < 1e-10 < 1e-2 < run.change[1:].min()
    assert (run.gradient_largest[1:] <= run.gradient_norm[1:]).all()
    # From rest, with entries of the clipped gradient of at most 0.01.
    weights = eqx.filter(NETWORK, eqx.is_inexact_array)
    most = [0.01 * np.sqrt(leaf.size) + DECAY * np.linalg.norm(leaf) for leaf in jax.tree.leaves(weights)]
    assert (run.update_norm[1] <= RATE * np.array(most)).all()
    np.testing.assert_allclose(charges(weights, [RESCALE]), run.measured_charge[0, :4], rtol=1e-12)
