from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.symmetry.modified_flow import study as modified_flow
from dynascope.studies.symmetry.modified_flow.study import ModifiedFlow

SMALL = ModifiedFlow.tiny


@pytest.mark.slow
def test_orders_are_as_predicted_for_fields_drawn_at_random():
    random = np.random.default_rng(0)
    fields = {
        "momentum": float(random.uniform(0.2, 0.8)),
        "weight_decay": float(random.uniform(0, 0.1)),
        "duration": float(random.uniform(0.5, 2)),
        "seed": int(random.integers(1000)),
    }
    assert ModifiedFlow(**SMALL | fields).run().verdict.outcome == "agree"


@pytest.mark.slow
def test_plain_descent_needs_no_shift():
    tree = ModifiedFlow(**SMALL | {"momentum": 0.0}).run()
    assert tree.verdict.outcome == "agree"
    distance = tree.observed["distance"]
    assert float(distance.sel(run="modified flow")[-1]) < 0.05 * float(distance.sel(run="gradient flow")[-1])
    same = distance.sel(run="modified flow, shifted start") / distance.sel(run="modified flow")
    # Both flows are integrated, to 1e-11.
    assert np.allclose(same, 1, rtol=1e-5)


@pytest.mark.slow
def test_another_power_of_one_less_momentum_in_the_modified_loss_is_refuted(monkeypatch):
    def wrong(loss, sgd):
        def decayed(weights):
            return loss(weights) + sgd.weight_decay / 2 * jnp.sum(weights**2)

        def modified(weights):
            value, slope = jax.value_and_grad(decayed)(weights)
            share = sgd.learning_rate * (1 + sgd.momentum) / (4 * (1 - sgd.momentum) ** 2)
            return value / (1 - sgd.momentum) + share * jnp.sum(slope**2)

        return modified

    monkeypatch.setattr(modified_flow, "modified_loss", wrong)
    tree = ModifiedFlow(**SMALL).run()
    assert tree.verdict.outcome == "disagree"
    assert float(tree.observed["order"].sel(run="modified flow, shifted start")) < 1.3


@pytest.mark.slow
def test_a_shift_of_the_wrong_sign_is_refuted(monkeypatch):
    monkeypatch.setattr(modified_flow, "shifted_start", lambda start, slope, sgd: start - sgd.learning_rate * slope)
    assert ModifiedFlow(**SMALL).run().verdict.outcome == "disagree"


@pytest.mark.parametrize(
    ("argument", "value"),
    [("momentum", 1.0), ("weight_decay", -0.1), ("largest_ratio", 0.9), ("rates", 4), ("duration", 0.0)],
)
def test_bad_fields_are_named(argument, value):
    with pytest.raises(InputError) as caught:
        ModifiedFlow(**{argument: value})
    assert caught.value.argument == argument
