from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest

from dynascope.errors import DivergenceError, DivergenceWarning, InputError
from dynascope.interventions import (
    CREDIT_RULES,
    CreditRule,
    CreditTraining,
    FeedbackNetwork,
    feedback_convolutional,
    feedback_mlp,
    train_with_feedback,
)
from dynascope.tasks import Labelled
from dynascope.theory.interventions import (
    AlignmentCoefficients,
    alignment_fixed_point,
    kolen_pollack_gap,
    mirror_misalignment,
    noise_misalignment,
)

pytestmark = pytest.mark.slow

X = np.random.default_rng(0).normal(size=(200, 16))
DATA = Labelled(X, (X[:, 0] * X[:, 1] > 0).astype(int))
NETWORK = feedback_mlp((16, 12, 12, 2), seed=3)
TRAINING = CreditTraining(0.1, steps=40, batch_size=20, records=4)


def backward(network):
    return [np.asarray(layer.backward) for layer in network.layers[1:]]


def weights(network):
    return [np.asarray(layer.weights) for layer in network.layers[1:]]


def trained(rule, network=NETWORK, **changes):
    training = dataclasses.replace(TRAINING, **changes)
    return train_with_feedback(DATA, network, CREDIT_RULES[rule], training, return_networks=True)


def test_backpropagation_equals_training_without_feedback_weights_in_its_last_layers():
    # A layer without feedback weights sends back exact errors.
    plain = FeedbackNetwork(
        [*(dataclasses.replace(each, backward=None) for each in NETWORK.layers[:2]), NETWORK.layers[2]]
    )
    (_, one), (_, other) = trained("backpropagation"), trained("backpropagation", plain)
    for layer, expected in zip(one.layers, other.layers, strict=True):
        np.testing.assert_allclose(layer.weights, expected.weights, rtol=1e-10)


def test_kolen_pollack_contracts_the_gap_by_the_same_factor_in_each_step():
    _, end = trained("Kolen-Pollack", weight_decay=0.3)
    for b0, w0, b, w in zip(backward(NETWORK), weights(NETWORK), backward(end), weights(end), strict=True):
        expected = kolen_pollack_gap(w0 - b0, 40, learning_rate=0.1, weight_decay=0.3)
        np.testing.assert_allclose(w - b, expected, rtol=0, atol=1e-12)


def test_feedback_weights_are_random_signs_or_copies_by_the_rule():
    for rule in ("feedback alignment", "sign symmetry", "backpropagation"):
        _, end = trained(rule)
        for start, w0, b, w in zip(backward(NETWORK), weights(NETWORK), backward(end), weights(end), strict=True):
            expected = {
                "feedback alignment": start,
                "sign symmetry": np.abs(w0).mean() * np.sign(w),
                "backpropagation": w,
            }[rule]
            np.testing.assert_allclose(b, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("rule", "coefficients"),
    [
        ("weight mirror", AlignmentCoefficients(0.5, 1.0)),
        ("information alignment", AlignmentCoefficients(0.5, 1.0, 0.25)),
        ("activation alignment", AlignmentCoefficients(0.5, 1.0, 0.0, 1.0)),  # with decay, for a unique fixed point
    ],
)
def test_the_warm_up_reaches_the_fixed_point_for_the_activities(rule, coefficients):
    network = feedback_mlp((16, 6, 5), seed=1)
    # Both samples are equal, so that the moment of a batch does not fluctuate.
    data = Labelled(np.tile(X[:1], (2, 1)), np.array([0, 1]))
    training = CreditTraining(1e-12, steps=1, records=1, warm_up=2000, feedback_rate=0.02, drive="activity")
    _, end = train_with_feedback(
        data, network, CreditRule(rule, coefficients=coefficients), training, return_networks=True
    )
    activity = np.maximum(X[:1] @ network.layers[0].weights, 0)
    target = alignment_fixed_point(coefficients, network.layers[1].weights, activity.T @ activity)
    np.testing.assert_allclose(end.layers[1].backward, target.backward, atol=1e-7)


def test_the_angle_of_the_weight_mirror_is_the_predicted_one():
    network = feedback_mlp((16, 48, 48), seed=1)
    training = CreditTraining(1e-12, steps=3000, records=100, batch_size=50, feedback_rate=0.1, warm_up=100)
    record = train_with_feedback(DATA, network, CREDIT_RULES["weight mirror"], training)
    predicted = mirror_misalignment(network.layers[1].weights, 50, feedback_rate=0.1)
    assert float(record["weight_angle"].mean()) == pytest.approx(float(predicted.angle), rel=0.02)


def test_the_angle_of_noisy_symmetric_alignment_is_the_predicted_one():
    network = feedback_mlp((16, 48, 48), seed=1)
    training = CreditTraining(
        1e-12, steps=3000, records=100, batch_size=5, feedback_rate=0.1, feedback_noise=0.3, warm_up=100
    )
    record = train_with_feedback(DATA, network, CREDIT_RULES["symmetric alignment"], training)
    w = network.layers[1].weights
    predicted = noise_misalignment(w, np.ones_like(w), feedback_rate=0.1, noise=0.3)
    assert float(record["weight_angle"].mean()) == pytest.approx(float(predicted.angle), rel=0.02)


def test_members_of_an_ensemble_equal_single_runs():
    rules = list(CREDIT_RULES.values())
    networks = [feedback_mlp((16, 12, 2), seed=seed) for seed in range(len(rules))]
    rates = np.linspace(0.05, 0.1, len(rules))
    settings = [dataclasses.replace(TRAINING, learning_rate=rate, weight_decay=0.1, warm_up=10) for rate in rates]
    together = train_with_feedback(DATA, networks, rules, settings)
    for k in (0, 3, 5):
        alone = train_with_feedback(DATA, networks[k], rules[k], settings[k])
        for name in alone:
            np.testing.assert_allclose(together[name].isel(member=k), alone[name], rtol=1e-9, atol=1e-5)


def test_convolutional_networks_align_in_single_precision():
    images = np.random.default_rng(1).normal(size=(60, 8, 8, 1))
    data = Labelled(images, (images[:, 3:5, 3:5].sum((1, 2, 3)) > 0).astype(int))
    network = feedback_convolutional((8, 8), 2, channels=(3, 4), hidden=(8,))
    network = jax.tree.map(lambda leaf: leaf.astype(np.float32), network)
    training = CreditTraining(0.05, steps=40, records=4, warm_up=200)
    record = train_with_feedback(data, network, CREDIT_RULES["symmetric alignment"], training)
    assert record["weight_angle"].dtype == np.float32
    assert float(record["weight_angle"].max()) < 8
    assert record["layer"].values.tolist() == [2, 3, 4]
    assert float(record["gradient_angle"][-1]) < 10


UNSTABLE = CreditRule("unstable", coefficients=AlignmentCoefficients(decay=1.0, self_alignment=1.0))


def test_a_norm_ratio_beyond_a_thousand_raises_and_names_the_layer():
    with pytest.raises(DivergenceError, match="layer 3"):
        train_with_feedback(DATA, NETWORK, UNSTABLE, dataclasses.replace(TRAINING, feedback_rate=5.0))


def test_members_that_diverge_are_reported_while_the_others_continue():
    settings = [dataclasses.replace(TRAINING, feedback_rate=rate) for rate in (0.1, 5.0)]
    with pytest.warns(DivergenceWarning, match="member 1"):
        record = train_with_feedback(DATA, [NETWORK] * 2, UNSTABLE, settings)
    assert record["diverged"].values[0] == -1
    assert record["diverged"].values[1] > 0
    assert np.isfinite(record["loss"][0]).all()
    assert np.isnan(record["loss"][1, -1])


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"networks": [NETWORK, feedback_mlp((16, 5, 2))]}, "networks"),
        ({"networks": feedback_mlp((16, 2))}, "networks"),
        ({"networks": feedback_mlp((15, 5, 2))}, "networks"),
        ({"networks": feedback_mlp((16, 5, 1))}, "networks"),
        ({"networks": [NETWORK] * 3, "rule": [UNSTABLE] * 2}, "networks"),
        ({"training": [TRAINING, dataclasses.replace(TRAINING, steps=80)]}, "training"),
    ],
)
def test_members_that_differ_too_much_are_rejected_by_name(change, argument):
    given = {"networks": NETWORK, "rule": UNSTABLE, "training": TRAINING, **change}
    with pytest.raises(InputError) as caught:
        train_with_feedback(DATA, **given)
    assert caught.value.argument == argument


def test_a_number_of_steps_between_records_is_rejected_by_name():
    with pytest.raises(InputError) as caught:
        CreditTraining(0.1, steps=15)
    assert caught.value.argument == "steps"
