"""Training of transformers on labels at every position, with biases that training draws once per step."""

from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

from dynascope.errors import InputError
from dynascope.flows import progress_listener
from dynascope.networks import QueryValueBiases, Transformer, language_model
from dynascope.tasks import Labelled
from dynascope.training import Batches, Descent, Latest, descend, loop

VOCABULARY, CONTEXT, SAMPLES = 5, 6, 24
BIASES = QueryValueBiases([0.5, -0.4], 0.5, [0.2, 0.9], 0.5)
DRAW = np.random.default_rng(0)
WINDOWS = DRAW.integers(VOCABULARY, size=(SAMPLES, CONTEXT + 1))
DATA = Labelled(WINDOWS[:, :-1], WINDOWS[:, 1:])


def network(unlearned=BIASES, seed=1, kind=np.float64, **options):
    made = language_model(
        VOCABULARY, CONTEXT, width=4, heads=2, blocks=1, broken_symmetry=unlearned, seed=seed, **options
    )
    return jax.tree.map(lambda leaf: leaf.astype(kind), made)


def with_learned_biases(end, query, value):
    """The network without unlearned biases, but with the given learned biases in both heads."""
    plain = network(None, biases=True)
    weights = jax.tree.leaves(eqx.filter(end, eqx.is_array))
    matrices = jax.tree.unflatten(jax.tree.structure(network(None, biases=False)), weights)
    names = [name for name in vars(plain.blocks[0]) if name.endswith("_bias")]
    block = eqx.tree_at(
        lambda each: (each.query_bias, each.value_bias),
        eqx.tree_at(
            lambda each: [getattr(each, name) for name in names],
            matrices.blocks[0],
            [getattr(plain.blocks[0], name) for name in names],
            is_leaf=lambda leaf: leaf is None,
        ),
        (np.tile(query, 2), np.tile(value, 2)),
    )
    return eqx.tree_at(lambda each: each.blocks[0], matrices, block)


def method(steps=3, **options):
    fields = {"optimizer": optax.sgd, "learning_rate": 0.1, "loss": "cross_entropy", "save": range(steps + 1)}
    return Descent(steps=steps, **fields | options)


def losses_by_hand(outputs, labels):
    """The cross-entropy at every position."""
    outputs = np.asarray(outputs)
    chosen = np.take_along_axis(outputs, labels[..., None], axis=-1)[..., 0]
    return np.log(np.exp(outputs).sum(axis=-1)) - chosen


def step_key(seed, step):
    """The documented dependence of the draws: on the seed and the step only."""
    return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), step), 2)


@pytest.mark.slow
def test_loss_and_accuracy_are_means_over_samples_and_positions():
    record = descend(DATA, network(), method(1))
    with jax.enable_x64(True):
        outputs = np.asarray(network()(DATA.inputs))
    assert float(record.loss[0]) == pytest.approx(losses_by_hand(outputs, DATA.labels).mean(), rel=1e-12)
    assert float(record.accuracy[0]) == pytest.approx(np.mean(outputs.argmax(axis=-1) == DATA.labels), rel=1e-12)


@pytest.mark.slow
def test_steps_use_the_drawn_biases_and_records_use_their_means():
    start = network()
    record, end = descend(DATA, start, method(4), seed=9, return_networks=True)

    def loss(network, key):
        outputs = network.sampled_outputs(DATA.inputs, key)
        return optax.softmax_cross_entropy_with_integer_labels(outputs, DATA.labels).mean()

    with jax.enable_x64(True):
        gradient = eqx.filter_jit(eqx.filter_grad(loss))
        now, losses = start, []
        for step in range(5):
            losses.append(losses_by_hand(now(DATA.inputs), DATA.labels).mean())
            if step < 4:
                now = jax.tree.map(lambda w, g: w - 0.1 * g, now, gradient(now, step_key(9, step)))
    np.testing.assert_allclose(record.loss, losses, rtol=1e-10)
    for mine, yours in zip(jax.tree.leaves(end), jax.tree.leaves(now), strict=True):
        np.testing.assert_allclose(mine, yours, rtol=1e-9, atol=1e-11)


@pytest.mark.slow
def test_all_micro_batches_of_a_step_share_the_biases():
    whole = descend(DATA, network(), method(3, batches=12), seed=2)
    parts = descend(DATA, network(), method(3, batches=Batches(12, micro_size=4)), seed=2)
    np.testing.assert_allclose(parts.loss, whole.loss, rtol=1e-10)


@pytest.mark.slow
def test_the_recorded_step_loss_changes_with_the_draw_and_another_seed_draws_other_biases():
    options = {"learning_rate": 1e-12, "statistics": {"step_loss": Latest(lambda step: step.loss)}}
    one, again, other = (descend(DATA, network(), method(3, **options), seed=seed) for seed in (0, 0, 1))
    drawn = one.step_loss.to_numpy()[1:]
    np.testing.assert_array_equal(drawn, again.step_loss[1:])
    assert np.abs(np.diff(drawn)).min() > 1e-5
    assert np.abs(drawn - other.step_loss.to_numpy()[1:]).min() > 1e-5
    # The weights do not move, so the losses with the means are constant.
    np.testing.assert_allclose(one.loss, float(one.loss[0]), rtol=1e-9)


@pytest.mark.slow
def test_weight_decay_changes_every_weight_but_not_the_biases():
    start = network(biases=False)
    decayed = method(5, optimizer=lambda rate: optax.adamw(rate, weight_decay=0.5))
    _, end = descend(DATA, start, decayed, scale=2.0, return_networks=True)
    # The scale and the decay change all weights, and the biases are still the means: as learned biases of each head,
    # the means give the same outputs.
    learned = with_learned_biases(end, *BIASES.means(2))
    with jax.enable_x64(True):
        np.testing.assert_allclose(learned(DATA.inputs), end(DATA.inputs), rtol=1e-12)
    for old, new in zip(jax.tree.leaves(start), jax.tree.leaves(end), strict=True):
        assert not np.array_equal(2 * old, new)


@pytest.mark.slow
@pytest.mark.parametrize("independent", [False, True])
def test_members_of_an_ensemble_are_single_runs(independent):
    networks = [network(seed=seed) for seed in range(3)]
    batches = Batches(12, independent=independent)
    record = descend(DATA, networks, method(4, batches=batches))
    single = [descend(DATA, each, method(4, batches=batches)).loss for each in networks]
    same = [np.allclose(record.loss[place], single[place], rtol=1e-10) for place in range(3)]
    # With independent batches, a single run draws the batches and biases of the first member.
    assert same == [True, not independent, not independent]
    twins = descend(DATA, [networks[0]] * 2, method(4, batches=Batches(independent=independent)))
    assert np.allclose(twins.loss[0], twins.loss[1], rtol=1e-10) == (not independent)


@pytest.mark.slow
def test_a_run_resumes_with_the_same_draws(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_SECONDS", 1e-9)
    monkeypatch.setattr(loop, "_GROWTH", 4)
    path, options = tmp_path / "run.npz", {"optimizer": optax.adamw, "batches": 8}
    whole, end = descend(DATA, network(), method(60, **options), return_networks=True)

    def stop(done, *_):
        if done >= 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), progress_listener(stop):
        descend(DATA, network(), method(60, checkpoint=path, **options))
    resumed, other = descend(DATA, network(), method(60, checkpoint=path, **options), return_networks=True)
    np.testing.assert_array_equal(whole.loss, resumed.loss)
    for mine, yours in zip(jax.tree.leaves(end), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(mine, yours)
    with pytest.raises(InputError, match="another network"):
        descend(DATA, network("resampled"), method(60, checkpoint=path, **options))


@pytest.mark.slow
@pytest.mark.parametrize("compute_dtype", [None, "bfloat16"])
def test_a_language_model_learns_a_cycle_of_tokens(compute_dtype):
    tokens = (np.arange(CONTEXT + 1) + np.arange(SAMPLES)[:, None]) % VOCABULARY
    data = Labelled(tokens[:, :-1], tokens[:, 1:])
    made = network("resampled", kind=np.float32)
    learner = method(200, optimizer=optax.adamw, learning_rate=0.02, save=[0, 200], test=data)
    record = descend(data, made, Descent(**{**vars(learner), "compute_dtype": compute_dtype}))
    assert float(record.loss[0]) > 1
    assert float(record.loss[1]) < 0.1
    assert float(record.accuracy[1]) == float(record.test_accuracy[1]) == 1


@pytest.mark.parametrize("where", ["task", "test"])
def test_a_token_outside_the_vocabulary_is_named_before_training(where):
    inputs = DATA.inputs.copy()
    inputs[7, 2] = VOCABULARY
    bad = Labelled(inputs, DATA.labels)
    task, test = (bad, DATA) if where == "task" else (DATA, bad)
    with pytest.raises(InputError, match=f"the token {VOCABULARY}, which is outside the vocabulary") as error:
        descend(task, [network(), network(seed=2)], method(test=test))
    assert error.value.argument == "inputs"


def test_a_label_outside_the_vocabulary_is_named_before_training():
    labels = DATA.labels.copy()
    labels[7, 2] = VOCABULARY
    with pytest.raises(InputError, match="the labels go up to 5, but the network has 5 outputs"):
        descend(Labelled(DATA.inputs, labels), network(), method())


def test_outputs_at_the_last_position_do_not_fit_labels_at_every_position():
    last = Transformer(VOCABULARY, CONTEXT, VOCABULARY, width=4, heads=2)
    with pytest.raises(InputError, match="the outputs of the network have shape"):
        descend(DATA, last, method())
