"""Losses between two rows are summarised without reading their values in between."""

import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.diagnosis.loss_window import LossWindow
from dynascope.errors import InputError


@pytest.mark.parametrize("scalar", [float, np.float32, jnp.asarray])
def test_last_mean_and_largest_loss(scalar):
    window = LossWindow()
    for loss in (2.0, 6.0, 1.0):
        window.add(scalar(loss))
    assert window.take() == {"loss": 1.0, "mean_loss": 3.0, "max_loss": 6.0, "loss_count": 3.0}


def test_each_window_starts_empty():
    window = LossWindow()
    window.add(5.0)
    window.take()
    empty = window.take()
    assert empty.pop("loss_count") == 0
    assert all(np.isnan(value) for value in empty.values())
    window.add(1.0)
    assert window.take()["max_loss"] == 1.0


def test_a_loss_of_several_numbers_is_rejected():
    window = LossWindow()
    window.add(np.array([2.0]))
    assert window.take()["loss"] == 2.0
    with pytest.raises(InputError, match="loss has shape") as caught:
        window.add(np.ones(3))
    assert caught.value.argument == "loss"


def test_a_loss_that_is_not_finite_is_seen_until_the_next_row():
    window = LossWindow()
    for loss in (1.0, np.nan, 2.0):
        window.add(loss)
    found = window.take()
    assert found["loss"] == 2.0
    assert np.isnan(found["mean_loss"])


def test_pytorch_losses_that_are_overwritten_later_keep_their_value():
    torch = pytest.importorskip("torch")
    window, loss = LossWindow(), torch.tensor(3.0, requires_grad=True)
    window.add(loss)
    with torch.no_grad():
        loss.fill_(0.0)
    assert window.take() == {"loss": 3.0, "mean_loss": 3.0, "max_loss": 3.0, "loss_count": 1.0}
