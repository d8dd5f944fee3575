import dataclasses
import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import DivergenceError, DivergenceWarning, InputError
from dynascope.networks import ResNet18, TwoLayer
from dynascope.tasks import Labelled, Stream, Task
from dynascope.training import Batches, Descent, descend

TASK = Task([[1.0], [1.0]], [[1.0], [1.0]])


class Line(eqx.Module):
    w: np.ndarray

    def __call__(self, x):
        return self.w * x


LINE = Line(np.array(0.0))
RECORDED = [0, 5, 10, 30]


def norm(network):
    return jnp.abs(network.w)


def trained(rates, **options):
    """The distance to the solution is multiplied by 1 − η, and the loss by its square, in each step."""
    statistics = {"norm": (norm, ())}
    return descend(TASK, LINE, Descent(learning_rate=rates, steps=30, save=RECORDED, statistics=statistics), **options)


def test_of_an_ensemble_one_member_stops_and_the_others_go_on():
    with pytest.warns(
        DivergenceWarning, match=r"1 of 3 members \(learning_rate 3\); the other members continued.*smaller"
    ) as told:
        run, end = trained([0.5, 3.0, 1.5], return_networks=True)
    # The loss is 4^step/2 and passes 1e8 times the first at step 14.
    assert run.diverged_step.to_numpy().tolist() == [-1, 14, -1]
    assert run.diverged_loss.to_numpy()[1] == pytest.approx(4.0**14 / 2)
    assert np.isnan(run.diverged_loss.to_numpy()[[0, 2]]).all()
    assert told[0].message.time == pytest.approx(14 * 3.0)
    for place, rate in [(0, 0.5), (2, 1.5)]:
        expected = (1 - rate) ** (2 * np.array(RECORDED)) / 2
        assert run.loss.to_numpy()[place] == pytest.approx(expected, rel=1e-12)
    # What was recorded before is kept, and nothing is made up afterwards.
    assert run.loss.to_numpy()[1] == pytest.approx([0.5, 4.0**5 / 2, 4.0**10 / 2, np.nan], nan_ok=True)
    assert np.isnan(run.norm.to_numpy()[1]).tolist() == [False, False, False, True]
    # The weights stay where they were when it was noticed.
    assert end.w[1] == pytest.approx(1 - (-2.0) ** 14)


def test_a_run_whose_members_all_diverge_is_an_error_with_step_loss_and_remedy():
    with pytest.raises(
        DivergenceError, match=r"loss exploded to 1.34e\+08 by step 14, time 42.*smaller learning rate"
    ) as caught:
        descend(TASK, LINE, Descent(learning_rate=3.0, steps=30, save=RECORDED))
    assert caught.value.time == pytest.approx(42)


def test_a_run_that_grows_and_comes_back_is_none_that_diverged():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = descend(TASK, LINE, Descent(learning_rate=3.0, steps=10, save=[0, 5, 10]))
    assert run.loss[-1] == pytest.approx(4.0**10 / 2)
    assert "diverged_step" not in run


@pytest.mark.slow
def test_it_is_also_noticed_in_the_last_step_and_between_recorded_ones():
    # One step of a huge rate takes the weights of a product beyond the numbers.
    network = TwoLayer(1, 2, 1, seed=1)
    with pytest.raises(DivergenceError, match="by step 1,"):
        descend(Task([[1e100], [1e100]], [[1.0], [1.0]]), network, Descent(learning_rate=1e300, steps=1, save=[0]))


def test_a_start_at_the_solution_may_leave_it():
    solved = Line(np.array(1.0))
    shifted = descend(TASK, solved, Descent(learning_rate=0.1, steps=3, save=[0, 3]))
    assert shifted.loss.to_numpy() == pytest.approx([0, 0])


@pytest.mark.slow
def test_epsilon_zero_with_a_constant_channel_is_named():
    images = np.random.default_rng(0).normal(size=(8, 4, 4, 2))
    images[..., 1] = 0
    network = ResNet18((4, 4, 2), 2, width=1, epsilon=0)
    # One of its blocks will do.
    shorter = (network.blocks[:1], network.classifier[:1])
    network = eqx.tree_at(lambda each: (each.blocks, each.classifier), network, shorter)
    # Only the second channel reaches the first convolution, and it is constant.
    stem = eqx.tree_at(lambda each: each.stem.kernel, network, network.stem.kernel.copy())
    stem.stem.kernel[:, :, 0] = 0
    task = Labelled(images, np.arange(8) % 2)
    with pytest.raises(InputError, match="variance of a channel is zero") as caught:
        descend(task, stem, Descent(learning_rate=0.1, steps=2, loss="cross_entropy", batches=4, save=[0, 2]))
    assert caught.value.argument == "epsilon"


def test_a_network_that_is_not_finite_is_told():
    class Broken(eqx.Module):
        w: np.ndarray

        def __call__(self, x):
            return jnp.log(self.w * x)

    with pytest.raises(DivergenceError, match="became non-finite by step 0"):
        descend(TASK, Broken(np.array(-1.0)), Descent(learning_rate=0.1, steps=2, save=[0, 2]))


def broken(key, inputs):
    return inputs / jnp.zeros(())


@dataclasses.dataclass(frozen=True)
class Late(Stream):
    """Samples of which some small batches are not finite."""

    def sample(self, key, samples, *, dtype=float):
        inputs = jax.random.normal(key, (samples, 1), dtype)
        spoiled = (jax.random.uniform(key) < 0.2) & (samples < 10)
        return jnp.where(spoiled, jnp.inf, inputs), jnp.zeros_like(inputs)


@pytest.mark.parametrize(("task", "augmentation", "argument"), [(TASK, broken, "augmentation"), (Late(), None, "task")])
def test_a_batch_that_is_not_finite_is_named(task, augmentation, argument):
    batches = Batches(2, augmentation=augmentation)
    with pytest.raises(InputError, match=r"inputs of the batch at step \d+ are not finite") as caught:
        descend(task, LINE, Descent(learning_rate=0.1, steps=30, batches=batches, save=[0, 30]))
    assert caught.value.argument == argument


@pytest.mark.parametrize(("loss", "start"), [("logistic", 30.0), ("exponential", 12.0)])
def test_a_start_with_hardly_any_loss_may_meet_a_sample_that_it_gets_wrong(loss, start):
    signs = Task(np.array([[1.0]] * 9 + [[-1.0]]), np.ones((10, 1)))
    options = {"steps": 10, "batches": 1, "save": [0, 10]}
    run = descend(signs, Line(np.array(start)), Descent(learning_rate=1e-14, loss=loss, **options), seed=1)
    assert run.loss[0] > 1
    assert "diverged_step" not in run
