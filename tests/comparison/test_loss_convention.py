from __future__ import annotations

import own_training
import pytest

from dynascope.comparison.loss_convention import LOSSES, factor_of, ratio_names
from dynascope.errors import InputError

FACTS = {"output_dimension": 3, "samples": 40}


def test_factors_are_those_of_the_formulas():
    assert set(own_training.FACTORS) == set(LOSSES)
    for name, factor in own_training.FACTORS.items():
        assert factor_of(name, FACTS) == pytest.approx(factor(40, 3))


def test_pytorch_means_and_sums_as_it_is_said_here():
    torch = pytest.importorskip("torch")
    x, y = map(torch.tensor, own_training.data())
    for name, module in (("mse", torch.nn.MSELoss()), ("sum", torch.nn.MSELoss(reduction="sum"))):
        ours = float(((x[:, :3] - y) ** 2).sum(dim=1).mean() / 2)
        assert module(x[:, :3], y).item() == pytest.approx(factor_of(name, FACTS) * ours)


@pytest.mark.parametrize(("loss", "lacks"), [("mse", "output_dimension"), ("sum", "samples")])
def test_conventions_that_need_a_number_ask_for_it(loss, lacks):
    with pytest.raises(InputError, match=lacks) as caught:
        factor_of(loss, {name: value for name, value in FACTS.items() if name != lacks})
    assert caught.value.argument == "loss"


def test_a_wrong_convention_is_told_by_the_ratio_of_losses():
    assert ratio_names(3.0, "mse", FACTS, 0.02) == ["squared_norm"]
    assert ratio_names(0.5, "mse", FACTS, 0.02) == ["half_mse"]
    assert ratio_names(0.7, "mse", FACTS, 0.02) == []
    # What is the same for these data is no other convention.
    assert ratio_names(1.0, "mse", {"output_dimension": 1}, 0.02) == []
