import numpy as np
import optax
import pytest

from dynascope.flows import progress_listener
from dynascope.networks import TwoLayer
from dynascope.tasks import Task
from dynascope.training import Batches, Descent, Sampled, Total, descend, loop

draw = np.random.default_rng(0)
TASK = Task(draw.normal(size=(20, 2)), draw.normal(size=(20, 1)))
NETWORKS = [TwoLayer(2, 3, 1, seed=seed) for seed in range(3)]
STATISTICS = {
    "path": Total(lambda step: step.loss),
    "batch_loss": Sampled(lambda step: step.loss, [0, 7, 50, 299]),
}
OPTIONS = {
    "steps": 300,
    "learning_rate": [0.01, 0.02],
    "batches": Batches(6, independent=True),
    "optimizer": optax.adam,
    "save": [0, 3, 64, 65, 200],
    "statistics": STATISTICS,
}


def in_pieces(monkeypatch, seconds, growth, **options):
    monkeypatch.setattr(loop, "_SECONDS", seconds)
    monkeypatch.setattr(loop, "_GROWTH", growth)
    told = []
    with progress_listener(lambda done, planned, _: told.append((done, planned))):
        run, ends = descend(TASK, NETWORKS, Descent(**OPTIONS | options), return_networks=True)
    return run, ends, told


@pytest.mark.slow
@pytest.mark.parametrize("probe", [None, lambda network: {"first_norm": ((), np.sum(network.first**2))}])
def test_pieces_have_the_bits_of_the_whole(monkeypatch, probe):
    whole, ends, once = in_pieces(monkeypatch, 1e9, 10**9)
    # No piece is longer than the first, of a single step.
    pieces, others, many = in_pieces(monkeypatch, 1e-9, 1, probe=probe)
    assert len(once) == 2
    assert len(many) == 300 + (probe is not None)
    assert many[-1] == (300, 300)
    for name in whole.data_vars:
        np.testing.assert_array_equal(whole[name], pieces[name])
    np.testing.assert_array_equal(ends.first, others.first)
    if probe is not None:
        assert pieces["first_norm"].dims == ("seed", "learning_rate", "step")


@pytest.mark.slow
def test_progress_is_told_between_pieces_until_the_end(monkeypatch):
    *_, told = in_pieces(monkeypatch, 1e-9, 4)
    steps = [done for done, _ in told]
    assert steps == sorted(set(steps))
    assert {all_steps for _, all_steps in told} == {300}
    assert steps[-1] == 300


@pytest.mark.slow
def test_an_interrupt_ends_the_run(monkeypatch):
    def stop(done, *_):
        if done >= 20:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop, "_SECONDS", 1e-9)
    monkeypatch.setattr(loop, "_GROWTH", 2)
    with pytest.raises(KeyboardInterrupt), progress_listener(stop):
        descend(TASK, NETWORKS, Descent(**OPTIONS))


@pytest.mark.slow
def test_runs_that_record_fewer_steps_have_the_bits_of_the_one_that_records_more():
    def recorded(steps):
        return descend(TASK, NETWORKS, Descent(**OPTIONS | {"save": steps}))

    more, fewer = recorded([0, 3, 5, 64, 65, 200, 300]), recorded([0, 3, 64, 65, 200])
    assert fewer.sizes["step"] == 5
    for name in ("loss", "path"):
        np.testing.assert_array_equal(fewer[name], more[name].sel(step=fewer["step"]))
