from __future__ import annotations

import operator

import equinox as eqx
import numpy as np
import pytest
from drawn_modules import drawn

import dynascope
from dynascope import predict, which
from dynascope.errors import InputError
from dynascope.groups import encoding_from_frequencies
from dynascope.networks import (
    MLP,
    DeepDiagonal,
    DeepLinear,
    DiagonalLinear,
    LinearAttention,
    MergedAttention,
    TwoLayer,
    balanced_linear,
)
from dynascope.prediction.theories.catalogue import THEORIES
from dynascope.tasks import InContextRegression, ModularAddition, MultiIndex, Task

DRAW = np.random.default_rng(0)
X, MAP = DRAW.normal(size=(40, 3)), DRAW.normal(size=(3, 3))
PLAIN = Task(X, X @ MAP[:, :2] + 0.1 * DRAW.normal(size=(40, 2)))
WHITE = PLAIN.whitened()
ONE, WHITE_ONE = PLAIN.only("y1"), PLAIN.only("y1").whitened()
SQUARE = Task(X, X @ MAP).whitened()
LINE = Task(np.outer(X[:, 0], [1.0, 2.0, 0.5]), X[:, 0] + 0.1 * X[:, 1])
ORTHOGONAL = Task(np.diag([1.0, 2.0, 1.5]), [1.0, -2.0, 1.0])
AXES = Task(np.linalg.qr(X)[0] * [3.0, 5.0, 2.0], X @ MAP[:, 0])
PROMPTS = InContextRegression(np.diag([1.0, 0.5]), 20.0)
ADDITION = ModularAddition(encoding_from_frequencies(7, {1: 1.0, 2: 0.5}))
INDEX = MultiIndex([[0.0, 0.0, 1.0]], [[0.0, 1.0]])


def bent(task: Task, amount: float) -> Task:
    """The task with its first input stretched, or moved off a line, or to another sample."""
    x = task.inputs.copy()
    x[:, 0] *= 1 + amount
    x[0, 1] += amount * np.abs(x).max()
    return Task(x, task.targets)


def tilted(network: TwoLayer, amount: float) -> TwoLayer:
    """The network with its first layer larger."""
    return eqx.tree_at(lambda each: each.first, network, network.first + amount * np.ones_like(network.first))


def equal_layers(size: float) -> DeepLinear:
    """Three layers that are the same multiple of the identity."""
    network = DeepLinear((3, 3, 3, 3))
    return eqx.tree_at(lambda each: each.weights, network, tuple(size * np.eye(3) for _ in range(3)))


FEW = Task(np.random.default_rng(5).normal(size=(4, 5)), np.eye(4)[:, :2])
ALIKE = Task(WHITE.inputs, WHITE.inputs[:, :2] * [1.0, 0.97])


def equal_sized(width: int) -> DeepLinear:
    network = DeepLinear((width,) * 4)
    return eqx.tree_at(lambda each: each.weights, network, tuple(0.5 * np.eye(width) for _ in range(3)))


def large_outputs() -> TwoLayer:
    network = TwoLayer(3, 8, 1, activation="relu")
    return eqx.tree_at(lambda each: each.second, network, 10 * np.sign(network.second))


INSIDE = {
    "small linear": (PLAIN, TwoLayer(3, 9, 2), 1e-4, "linear-staircase"),
    "small linear by name": (PLAIN, "linear", 1e-6, "linear-staircase"),
    "small linear of two layers": (PLAIN, DeepLinear((3, 6, 2)), 1e-4, "linear-staircase"),
    "small linear on white inputs": (WHITE, TwoLayer(3, 9, 2), 1e-4, "linear-staircase"),
    "balanced": (WHITE, balanced_linear(3, 5, 2), 0.5, "balanced"),
    "balanced and small": (WHITE, balanced_linear(3, 5, 2), 1e-5, "balanced"),
    "balanced with a larger second layer": (WHITE, balanced_linear(3, 2, 2, balance=1.0), 1.0, "balanced"),
    "balanced with a larger first layer": (WHITE, balanced_linear(3, 2, 2, balance=-1.0), 1.0, "balanced"),
    "balanced of two layers of DeepLinear": (SQUARE, DeepLinear((3, 3)), 0.5, "linear-model"),
    "isotropic": (PLAIN, balanced_linear(3, 5, 2), 0.5, "isotropic"),
    "isotropic with an imbalance": (PLAIN, balanced_linear(3, 2, 2, balance=0.7), 1.0, "isotropic"),
    "deep isotropic": (Task(X, X @ MAP), equal_layers(0.5), 1.0, "deep-isotropic"),
    "deep isotropic on white inputs": (SQUARE, equal_layers(0.1), 1.0, "deep-isotropic"),
    "one neuron": (WHITE_ONE, TwoLayer(3, 1, 1), 0.5, "balanced"),
    "one neuron on any inputs": (ONE, TwoLayer(3, 1, 1), 0.5, "neuron-function-space"),
    "one neuron that starts small": (ONE, TwoLayer(3, 1, 1), 1e-4, "neuron-function-space"),
    "line": (LINE, TwoLayer(3, 7, 1), 0.8, "line"),
    "line from a small initialisation": (LINE, TwoLayer(3, 7, 1), 1e-5, "line"),
    "diagonal": (ONE, DiagonalLinear(3), 1e-4, "diagonal-staircase"),
    "diagonal on its axes": (AXES, DiagonalLinear(3), 0.5, "independent-modes"),
    "deep diagonal": (ONE, DeepDiagonal(3, 3), 1e-3, "deep-diagonal-staircase"),
    "linear model": (PLAIN, MLP((3, 2), activation="linear", bias=False), 1.0, "linear-model"),
    "attention": (PROMPTS, LinearAttention(2, 6), 1e-3, "linear-attention"),
    "merged attention": (PROMPTS, MergedAttention(2, 6), 1e-3, "merged-attention"),
    "modular addition": (ADDITION, TwoLayer(14, 30, 7, activation="quadratic"), 1e-3, "modular-addition"),
    "multi-index": (INDEX, TwoLayer(2, 12, 1, activation="quadratic"), 1e-3, "alternating-flow"),
    "ReLU": (PLAIN, TwoLayer(3, 8, 2, activation="relu"), 1e-4, "alternating-flow"),
    "ReLU on orthogonal samples": (ORTHOGONAL, large_outputs(), 1e-5, "orthogonal-relu"),
    "ReLU whose output weights are small": (ORTHOGONAL, TwoLayer(3, 8, 1, activation="relu"), 1e-5, "alternating-flow"),
    "quadratic": (PLAIN, TwoLayer(3, 8, 2, activation="quadratic"), 1e-3, "alternating-flow"),
    "lazy ReLU": (PLAIN, TwoLayer(3, 4000, 2, activation="relu"), 6.0, "kernel-regression"),
    "lazy perceptron": (PLAIN, MLP((3, 60, 60, 2), activation="tanh"), 4.0, "kernel-regression"),
}

# The theory that just misses, what it misses, and whether it still says something.
OUTSIDE = {
    "nearly white": (bent(WHITE, 1e-3), balanced_linear(3, 5, 2), 0.5, "balanced", "white inputs", "almost"),
    "not white": (PLAIN, balanced_linear(3, 5, 2), 0.5, "balanced", "white inputs", "no"),
    "nearly balanced": (WHITE, tilted(balanced_linear(3, 5, 2), 1e-3), 0.5, "balanced", "balanced layers", "almost"),
    "not balanced": (WHITE, tilted(balanced_linear(3, 5, 2), 3.0), 0.5, "balanced", "balanced layers", "no"),
    "nearly on a line": (bent(LINE, 1e-3), TwoLayer(3, 7, 1), 0.8, "line", "inputs on a line", "almost"),
    "two outputs on a line": (
        Task(LINE.inputs, np.repeat(LINE.targets, 2, axis=1)),
        TwoLayer(3, 7, 2),
        0.8,
        "line",
        "one output",
        "no",
    ),
    "nearly orthogonal": (
        bent(ORTHOGONAL, 1e-2),
        large_outputs(),
        1e-5,
        "orthogonal-relu",
        "orthogonal samples",
        "no",
    ),
    "start that is not small": (PLAIN, TwoLayer(3, 9, 2), 0.05, "linear-staircase", "small initialisation", "almost"),
    "diagonal with two targets": (PLAIN, DiagonalLinear(3), 1e-4, "diagonal-staircase", "one output", "no"),
    "diagonal on white inputs with two targets": (
        WHITE,
        DiagonalLinear(3),
        0.5,
        "independent-modes",
        "one output",
        "no",
    ),
    "ReLU that is not lazy": (
        PLAIN,
        TwoLayer(3, 300, 2, activation="relu"),
        3.0,
        "kernel-regression",
        "lazy training",
        "almost",
    ),
    "more inputs than samples": (FEW, balanced_linear(5, 5, 2), 0.5, "balanced", "enough samples", "no"),
    "two modes at nearly one time": (ALIKE, TwoLayer(3, 9, 2), 1e-4, "linear-staircase", "separated times", "almost"),
    "deep with other widths": (SQUARE, DeepLinear((3, 4, 5, 3)), 0.5, "deep-isotropic", "equal widths", "no"),
}


@pytest.mark.parametrize("case", INSIDE)
def test_the_first_choice_is_the_theory_that_covers_the_case(case):
    task, network, scale, expected = INSIDE[case]
    first = which(task, network, scale=scale)[0]
    assert (first.name, first.status, first.violated) == (expected, "applies", ())


@pytest.mark.parametrize("case", OUTSIDE)
def test_just_outside_a_domain_the_violated_assumption_is_named(case):
    task, network, scale, name, assumption, status = OUTSIDE[case]
    found = {candidate.name: candidate for candidate in which(task, network, scale=scale)}
    candidate = found[name]
    assert candidate.status == status
    assert assumption in [each.assumption.name for each in candidate.violated]
    if status == "no":
        with pytest.raises(InputError, match=assumption) as caught:
            predict(task, network, scale=scale, theory=name)
        assert caught.value.argument == "theory"


@pytest.mark.parametrize("network", [MLP((3, 2), activation="linear"), drawn(eqx.nn.Linear, 3, 2)])
def test_what_is_linear_in_its_weights_is_lazy_from_any_start_with_a_bias_too(network):
    shifted = Task(X, PLAIN.targets + 3.0)
    first = which(shifted, network, scale=1.0)[0]
    assert (first.name, first.status) == ("kernel-regression", "applies")
    assert {each.assumption.name: each.value for each in first.assumptions}["lazy training"] == 0
    record = predict(shifted, network, scale=1.0, theory="kernel-regression").record
    with_ones = np.column_stack([X, np.ones(len(X))])
    best = np.linalg.lstsq(with_ones, shifted.targets)[0]
    rest = np.mean(np.sum((with_ones @ best - shifted.targets) ** 2, axis=1)) / 2
    # A thousandth of the fall is left at the end.
    assert record["loss"][-1] == pytest.approx(rest, abs=2e-3 * float(record["loss"][0]))


def test_two_linear_layers_of_a_perceptron_are_a_linear_network():
    network = MLP((3, 9, 2), activation="linear", bias=False)
    found = which(PLAIN, network, scale=1e-4)
    assert (found.network, found[0].name, found[0].status) == (
        "linear network of 2 layers",
        "linear-staircase",
        "applies",
    )
    known = {"task": PLAIN, "network": network, "predict": predict}
    expected = predict(PLAIN, network, scale=1e-4, theory="linear-staircase")["jump_time"].to_numpy()
    np.testing.assert_array_equal(eval(found[0].call, known)["jump_time"], expected)


def test_functions_beside_a_theory_are_told_where_they_are():
    found = [theory for theory in THEORIES if theory.further]
    assert len(found) >= 8
    for theory in found:
        for name in theory.further:
            assert callable(operator.attrgetter(name)(dynascope))
    assert "theory.balanced.ntk" in str(which(WHITE, balanced_linear(3, 5, 2), scale=0.5)[0])


def test_how_far_a_theory_is_off_is_not_told_as_if_all_held():
    task, network, scale, name, *_ = OUTSIDE["nearly white"]
    rough = {each.name: each for each in which(task, network, scale=scale)}[name]
    assert rough.error == ""
    small = which(PLAIN, TwoLayer(3, 9, 2), scale=0.05)[0]
    assert (small.status, "73 %" in small.error) == ("almost", True)


def test_what_applies_comes_first_and_what_is_violated_less_before_what_is_more():
    order = {"applies": 0, "almost": 1, "no": 2}
    for task, network, scale, _ in INSIDE.values():
        ranks = [order[candidate.status] for candidate in which(task, network, scale=scale)]
        assert ranks == sorted(ranks)


def test_steps_and_batches_are_assumed_by_all():
    usual = which(PLAIN, "linear", scale=1e-4)
    rough = which(PLAIN, "linear", scale=1e-4, learning_rate=0.05, batch_size=8)
    assert all({"small steps", "full batches"} <= {each.assumption.name for each in found.violated} for found in rough)
    assert usual[0].status == "applies"
    assert rough[0].status == "almost"
    assert [each.assumption.name for each in rough[0].training] == ["small steps", "equal rates", "full batches"]


def test_layers_may_have_rates_of_their_own():
    def asked(*rates: float):
        return which(WHITE, balanced_linear(3, 5, 2), scale=0.5, learning_rate=rates)[0]

    assert asked(1e-3, 1e-3).status == "applies"
    found = asked(1e-3, 8e-4)
    assert (found.name, found.status) == ("balanced", "almost")
    assert [(each.assumption.name, round(each.value, 9)) for each in found.violated] == [("equal rates", 0.2)]
    assert asked(1e-3, 1e-5).status == "no"
    with pytest.raises(InputError, match="learning_rate has length 3, but the network has 2 layers: give one number"):
        asked(1e-3, 1e-3, 1e-3)
    with pytest.raises(InputError, match="learning_rate is -1"):
        asked(1e-3, -1.0)


def test_rates_of_their_own_are_those_of_the_network_that_the_remedy_names():
    """Descent with two rates is descent with their geometric mean from layers over the roots of what is left."""
    rates, network = np.array([0.02, 0.005]), TwoLayer(3, 5, 2)
    first, second = 0.5 * np.asarray(network.first, float), 0.5 * np.asarray(network.second, float)
    mean = np.sqrt(rates.prod())
    turned = [first / np.sqrt(rates[0] / mean), second / np.sqrt(rates[1] / mean)]
    plain = [first, second]
    x, y = WHITE.inputs, WHITE.targets

    def step(layers, rates):
        back = x.T @ (x @ layers[0] @ layers[1] - y) / len(x)
        return [layers[0] - rates[0] * back @ layers[1].T, layers[1] - rates[1] * layers[0].T @ back]

    for _ in range(50):
        plain, turned = step(plain, rates), step(turned, [mean, mean])
    np.testing.assert_allclose(plain[0] @ plain[1], turned[0] @ turned[1], rtol=0, atol=1e-12)


def test_what_cannot_be_measured_is_neither_taken_to_hold_nor_to_fail():
    # The curvature at the end of training is known of products of layers alone.
    found = which(PLAIN, TwoLayer(3, 8, 2, activation="relu"), scale=1e-4, learning_rate=0.01)
    first = found[0]
    assert (first.name, first.status, first.violated) == ("alternating-flow", "unknown", ())
    assert [(each.assumption.name, each.holds, each.almost) for each in first.unmeasured] == [
        ("small steps", None, None)
    ]
    assert {each.status for each in found} == {"unknown", "no"}  # what is known to fail fails
    assert [each.status for each in found] == sorted((each.status for each in found), reverse=True)
    assert 'theory="alternating-flow")' in str(found)


@pytest.mark.slow
def test_a_theory_of_which_something_was_not_measured_is_used_if_it_is_asked_for_and_says_so():
    # Equal singular values leave their directions free, so that nothing tells whether the start is along them.
    task = Task(np.diag([1.0, 1.0, 1.0]) * 3**0.5, np.diag([2.0, 2.0, 1.0]) * 3**0.5)
    found = {each.name: each for each in which(task, equal_layers(0.5))}
    assert (found["deep-isotropic"].status, found["deep-modes"].status) == ("applies", "unknown")
    assert predict(task, equal_layers(0.5)).record.attrs["theory_name"] == "deep-isotropic"
    record = predict(task, equal_layers(0.5), theory="deep-modes").record
    assert "ligned layers" in " ".join(record.attrs["warnings"])


def test_curvature_is_that_at_the_end_of_training():
    # Of f = x a b with E x² = 1 and the target 4 the Hessian at a = b = 2 has the eigenvalue a² + b² = 8.
    task = Task([[1.0], [-1.0]], [[4.0], [-4.0]])
    rate = 0.01
    first = which(task, TwoLayer(1, 1, 1), scale=1e-3, learning_rate=rate)[0]
    measured = {each.assumption.name: each for each in first.training}
    assert measured["small steps"].value == pytest.approx(rate * 8 / 2)


@pytest.mark.slow
def test_large_data_get_the_same_first_theory():
    draw = np.random.default_rng(1)
    x = draw.normal(size=(100_000, 200)).astype(np.float32)
    task = Task(x, x[:, :2])
    assert which(task, "relu", scale=1e-4)[0].name == "alternating-flow"
    assert which(task, "linear", scale=1e-4)[0].name == "linear-staircase"


def test_costs_are_those_that_were_measured():
    # benchmarks/theory_costs.py, on one core: 0.14 s, 17 s, 0.06 s, 0.5 to 32 s, and 0.2 to 6 s.
    def cost(name, task, network, scale):
        return {each.name: each.cost for each in which(task, network, scale=scale)}[name]

    x = DRAW.normal(size=(200, 60))
    wide = Task(x, x[:, :5])
    relu = TwoLayer(60, 400, 1, activation="relu")
    assert cost("balanced", wide, balanced_linear(60, 20, 5), 0.5) == "under a second"
    assert cost("deep-isotropic", Task(x, x), equal_sized(60), 1.0) == "from seconds to minutes"
    assert cost("kernel-regression", wide.only("y1"), relu, 6.0) == "under a second"
    assert cost("deep-isotropic", Task(x[:, :10], x[:, :10]), equal_sized(10), 1.0) == "from under a second to seconds"
    # 2 s for ten modes and 10 s for fifty, each a root at every time.
    assert cost("deep-modes", Task(x, x), equal_sized(60), 1.0) == "seconds"
    small = TwoLayer(3, 50, 2, activation="relu")
    assert cost("alternating-flow", PLAIN, small, 1e-3) == "from under a second to seconds"


@pytest.mark.usefixtures("unchecked_types")
def test_bad_arguments_are_named():
    def attempt(**changed):
        with pytest.raises(InputError) as caught:
            which(**{"task": PLAIN, "network": "linear", "scale": 1e-4, **changed})
        return caught.value.argument

    assert attempt(scale=0.0) == "scale"
    assert attempt(scale=float("nan")) == "scale"
    assert attempt(learning_rate=-1.0) == "learning_rate"
    assert attempt(batch_size=0) == "batch_size"
    assert attempt(network="transformer") == "network"


@pytest.mark.parametrize(
    "network",
    [
        TwoLayer(4, 8, 2, activation="relu"),
        TwoLayer(3, 8, 1, activation="relu"),
        DeepLinear((4, 5, 5, 2)),
        DiagonalLinear(4),
        MLP((4, 5, 2)),
    ],
)
@pytest.mark.parametrize("ask", [which, predict])
def test_a_network_of_other_dimensions_than_the_data_is_refused(ask, network):
    with pytest.raises(InputError, match="input") as caught:
        ask(PLAIN, network, scale=1e-3)
    assert caught.value.argument == "network"


def test_what_has_one_output_is_not_followed_on_two():
    found = which(PLAIN, DiagonalLinear(3), scale=1e-4)
    assert all(each.status == "no" for each in found)
    assert "alternating-flow" not in [each.name for each in found]


def test_a_theory_for_other_networks_is_refused_with_those_that_are_for_this_one():
    with pytest.raises(InputError, match="choose linear-staircase") as caught:
        predict(PLAIN, "linear", scale=1e-4, theory="deep-isotropic")
    assert caught.value.argument == "theory"
