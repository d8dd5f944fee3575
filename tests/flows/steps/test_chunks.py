import functools

import jax
import numpy as np
import optax
import pytest

from dynascope.flows import Sampled, Total, descend
from dynascope.flows.steps import chunks
from dynascope.groups import encoding_from_frequencies
from dynascope.networks import Convolutional, TwoLayer
from dynascope.tasks import ModularAddition, Task

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
    "batch_size": 6,
    "batches": "independent",
    "optimizer": optax.adam,
    "record_steps": [0, 3, 64, 65, 200],
    "step_statistics": STATISTICS,
    "return_networks": True,
}


def in_pieces(monkeypatch, seconds, growth, **options):
    monkeypatch.setattr(chunks, "_SECONDS", seconds)
    monkeypatch.setattr(chunks, "_GROWTH", growth)
    told = []
    run, ends = descend(NETWORKS, TASK, progress=lambda *each: told.append(each), **OPTIONS | options)
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


@pytest.mark.parametrize("steps", [100, 100_000])
@pytest.mark.parametrize(
    ("network", "task"),
    [
        (TwoLayer(2, 20, 1), TASK),
        # 54 weights, in an average whose samples nobody counts.
        (TwoLayer(6, 6, 3, activation="quadratic"), ModularAddition(encoding_from_frequencies(3, {1: 1.0}))),
        # 30 weights, of which nine at each of 64 pixels.
        (Convolutional((8, 8), 2, channels=(1,), width=1), Task(np.ones((7, 64)), np.ones((7, 2)))),
    ],
    ids=["samples", "an average", "pixels"],
)
def test_what_trains_for_long_is_compiled_well(monkeypatch, network, task, steps):
    class SeenError(Exception):
        pass

    def seen(*_, **__):
        raise SeenError

    usual, other = ("advance_briefly", "advance")[:: 1 if steps == 100 else -1]
    monkeypatch.setattr(chunks, usual, seen)
    monkeypatch.setattr(chunks, other, None)
    with pytest.raises(SeenError):
        descend(network, task, steps=steps, learning_rate=1e-3, record_steps=[0, steps])


class Chosen(Exception):  # noqa: N818 - it tells of a choice, and nothing is wrong
    pass


@pytest.mark.parametrize(
    ("options", "how"),
    [
        ({"statistics": {"one": (lambda network, x, y: network.first.sum(), ())}}, "well"),
        ({"statistics": {"one": (lambda network: network.first.sum(), ())}}, "briefly"),
        ({"steps": 1_000_000, "batches": "independent"}, "well"),
        ({"steps": 1_000_000}, "briefly"),
    ],
    ids=["statistics of samples", "statistics of weights", "samples of their own", "shared samples"],
)
def test_statistics_of_samples_and_samples_of_their_own_take_long_too(monkeypatch, options, how):
    def chosen(*_, kind):
        raise Chosen(kind)

    for name, kind in (("advance", "well"), ("advance_briefly", "briefly")):
        monkeypatch.setattr(chunks, name, functools.partial(chosen, kind=kind))
    task, usual = Task(np.ones((3000, 2)), np.ones((3000, 1))), {"steps": 2, "learning_rate": 1e-3, "batch_size": 1}
    with pytest.raises(Chosen, match=how):
        descend([TwoLayer(2, 3, 1)] * 2, task, record_steps=[0, 2], **usual | options)


@pytest.mark.slow
def test_progress_is_told_between_pieces_until_the_end(monkeypatch):
    *_, told = in_pieces(monkeypatch, 1e-9, 4)
    steps = [done for done, _ in told]
    assert steps == sorted(set(steps))
    assert {all_steps for _, all_steps in told} == {300}
    assert steps[-1] == 300


@pytest.mark.slow
def test_an_interrupt_ends_the_run(monkeypatch):
    def stop(done, _):
        if done >= 20:
            raise KeyboardInterrupt

    monkeypatch.setattr(chunks, "_SECONDS", 1e-9)
    monkeypatch.setattr(chunks, "_GROWTH", 2)
    with pytest.raises(KeyboardInterrupt):
        descend(NETWORKS, TASK, progress=stop, **OPTIONS)


@pytest.mark.slow
def test_a_piece_takes_about_as_long_as_it_should(monkeypatch):
    monkeypatch.setattr(chunks, "_SECONDS", 0.02)
    clock = iter(range(10**6))
    monkeypatch.setattr(chunks.time, "monotonic", lambda: next(clock) * 0.02)
    told = []
    descend(NETWORKS[0], TASK, steps=40, learning_rate=0.01, progress=lambda done, _: told.append(done))
    # By this clock each piece takes as long as it should, so that after the first ones none is longer.
    assert np.diff(told)[1:-1].tolist() == [8] * (len(told) - 3)


@pytest.mark.slow
def test_runs_that_record_fewer_steps_find_the_program_and_have_the_bits_of_the_one_that_records_more():
    def recorded(steps):
        return descend(NETWORKS, TASK, **OPTIONS | {"record_steps": steps, "return_networks": False})

    compiled, more = [], recorded([0, 3, 5, 64, 65, 200, 300])
    jax.monitoring.register_event_duration_secs_listener(compiling := lambda name, *_, **__: compiled.append(name))
    fewer = recorded([0, 3, 64, 65, 200])
    jax.monitoring.unregister_event_duration_listener(compiling)
    assert not [name for name in compiled if name.endswith("backend_compile_duration")]
    assert fewer.sizes["step"] == 5
    for name in ("loss", "path"):
        np.testing.assert_array_equal(fewer[name], more[name].sel(step=fewer["step"]))
