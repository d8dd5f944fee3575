from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies.linear_networks.lambda_balanced import LambdaBalanced

SMALL = LambdaBalanced.tiny


@pytest.mark.slow
@pytest.mark.parametrize("draw", [0])
def test_it_agrees_with_fields_drawn_at_random(draw):
    rng = np.random.default_rng(draw)
    fields = {
        "initial_size": float(rng.uniform(0.1, 1)),
        "largest_balance": float(rng.uniform(0.2, 6)),
        "first_rate": float(rng.uniform(0.4, 2)),
        "second_rate": float(rng.uniform(0.4, 2)),
        "seed": int(rng.integers(1000)),
    }
    assert LambdaBalanced(**SMALL | fields).run().verdict.outcome == "agree"


@pytest.mark.slow
def test_a_kernel_of_one_number_is_not_said_to_turn():
    tree = LambdaBalanced(**SMALL | {"inputs": 1, "outputs": 1, "width": 1}).run()
    assert tree.verdict.outcome == "agree", tree.verdict.sentence
    assert np.all(tree.observed["kernel_distance"] == 0)


@pytest.mark.slow
def test_large_balances_are_lazy_and_small_ones_rich():
    predicted = LambdaBalanced(**SMALL | {"balances": 3, "width": 2, "largest_balance": 30.0}).predict()
    change = predicted["kernel_change"].isel(time=-1).to_numpy()
    assert change[1] > 1
    assert np.all(change[[0, 2]] < 0.3)


@pytest.mark.parametrize(
    ("change", "argument"),
    [({"width": 4}, "width"), ({"weakest": 3.0}, "weakest"), ({"balances": 1}, "balances"), ({"times": 1}, "times")],
)
def test_bad_fields_are_named(change, argument):
    with pytest.raises(InputError) as caught:
        LambdaBalanced(**SMALL | change).run()
    assert caught.value.argument == argument
