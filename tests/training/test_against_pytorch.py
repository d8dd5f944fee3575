import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax
import pytest

from dynascope.networks import MLP, ResNet18, Transformer
from dynascope.networks.batch_normalisation import running_statistics, trained_weights
from dynascope.tasks import Labelled, Task
from dynascope.training import Batches, Descent, Loss, Sampled, descend

torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
functional = torch.nn.functional
pytestmark = pytest.mark.slow

STEPS, BATCH, CLASSES = 100, 8, 5
# Double precision rounds at 1e-16. The rates are those at which a hundred steps multiply that by less than 1000.
PRECISION = 1e-12
OF_STEPS = {
    "batch_loss": Sampled(lambda step: step.loss, range(STEPS)),
    "inputs": Sampled(lambda step: step.batch.inputs, range(STEPS), ["sample", "feature"]),
}
OF_NUMBERS = OF_STEPS | {"targets": Sampled(lambda step: step.batch.targets, range(STEPS), ["sample", "target"])}
OF_CLASSES = OF_STEPS | {"targets": Sampled(lambda step: step.batch.targets, range(STEPS), ["sample"])}


class Case(NamedTuple):
    network: Any
    task: Any
    options: dict[str, Any]
    outputs: Any
    loss: Any


def perceptron(weights, x, _):
    for layer in range(2):
        x = torch.tanh(functional.linear(x, weights[f"weights.{layer}"].T, weights[f"biases.{layer}"]))
    return functional.linear(x, weights["weights.2"].T, weights["biases.2"])


def convolved(weights, running, name, x, stride=1):
    kernel = weights[f"{name}.kernel"].permute(3, 2, 0, 1)
    normalisation = f"{name}.normalisation"
    return functional.batch_norm(
        functional.conv2d(x, kernel, stride=stride, padding=kernel.shape[-1] // 2),
        running[f"{normalisation}.statistics.mean"],
        running[f"{normalisation}.statistics.variance"],
        weights[f"{normalisation}.gain"],
        weights[f"{normalisation}.shift"],
        training=True,
        momentum=0.1,
        eps=1e-5,
    )


def residual(weights, x, running):
    x = x.reshape(-1, 8, 8, 3).permute(0, 3, 1, 2)
    x = torch.relu(convolved(weights, running, "stem", x))
    for block in sorted({name.split(".")[1] for name in weights if name.startswith("blocks")}):
        name, halved = f"blocks.{block}", f"blocks.{block}.shortcut.kernel" in weights
        z = torch.relu(convolved(weights, running, f"{name}.first", x, 1 + halved))
        z = convolved(weights, running, f"{name}.second", z)
        x = torch.relu(z + (convolved(weights, running, f"{name}.shortcut", x, 2) if halved else x))
    return x.mean((2, 3)) @ weights["classifier"] + weights["classifier_bias"]


def transformer(weights, x, _):
    tokens = functional.pad(x.reshape(len(x), 3, CLASSES).argmax(-1), (0, 1), value=CLASSES)
    h = functional.embedding(tokens, weights["embedding"]) + weights["positions"]
    for block in ("blocks.0", "blocks.1"):
        normal = functional.layer_norm(h, (8,))
        heads = [
            (normal @ weights[f"{block}.{part}"]).unflatten(-1, (2, 4)).transpose(1, 2)
            for part in ("queries", "keys", "values")
        ]
        mixed = functional.scaled_dot_product_attention(*heads, is_causal=True)
        h = h + mixed.transpose(1, 2).flatten(-2) @ weights[f"{block}.outputs"]
        hidden = functional.gelu(functional.layer_norm(h, (8,)) @ weights[f"{block}.first"], approximate="tanh")
        h = h + hidden @ weights[f"{block}.second"]
    return functional.layer_norm(h, (8,))[:, -1] @ weights["unembedding"]


def half_of_squares(outputs, targets):
    # Theirs is the mean over outputs too.
    return functional.mse_loss(outputs, targets) * CLASSES / 2


def cross_entropy(smoothing):
    loss = torch.nn.CrossEntropyLoss(label_smoothing=smoothing)
    return lambda outputs, targets: loss(outputs, targets.long())


draw = np.random.default_rng(0)
REGRESSION = Task(draw.normal(size=(40, 6)), draw.normal(size=(40, CLASSES)))
IMAGES = Labelled(draw.normal(size=(40, 8 * 8 * 3)), np.arange(40) % CLASSES)
TOKENS = Labelled(np.eye(CLASSES)[draw.integers(CLASSES, size=(40, 3))].reshape(40, -1), np.arange(40) % CLASSES)
EIGHTEEN = ResNet18((8, 8, 3), CLASSES, width=2, seed=2)
# Two of its blocks have all that the others have. In the last, images are one pixel and normalised by eight values,
# which multiplies rounding: by 1e7 in a hundred plain steps at the rate 0.01, between two runs of PyTorch as well.
TWO_BLOCKS = eqx.tree_at(
    lambda each: (each.blocks, each.classifier), EIGHTEEN, (EIGHTEEN.blocks[1:3], EIGHTEEN.classifier[:4])
)
ATTENTION = Transformer(CLASSES, 3, CLASSES, width=8, heads=2, blocks=2, activation="gelu", layer_norm=True, seed=3)
CLASSIFIES = {"loss": "cross_entropy", "statistics": OF_CLASSES}
SMOOTHED = {"loss": Loss("cross_entropy", label_smoothing=0.1)}
CASES = {
    "perceptron": Case(
        MLP((6, 16, 16, CLASSES), activation="tanh", seed=1),
        REGRESSION,
        {"statistics": OF_NUMBERS},
        perceptron,
        half_of_squares,
    ),
    "residual": Case(TWO_BLOCKS, IMAGES, CLASSIFIES, residual, cross_entropy(0.0)),
    "transformer": Case(
        ATTENTION,
        TOKENS,
        CLASSIFIES | {"loss": Loss("cross_entropy", label_smoothing=0.1)},
        transformer,
        cross_entropy(0.1),
    ),
}
PERCEPTRON = CASES["perceptron"]

momentum = functools.partial(optax.sgd, momentum=0.9)
nesterov = functools.partial(optax.sgd, momentum=0.9, nesterov=True)
adamw = functools.partial(optax.adamw, weight_decay=0.01)
OPTIMIZERS = {
    "sgd": (optax.sgd, 0.03, torch.optim.SGD),
    "momentum": (momentum, 0.003, functools.partial(torch.optim.SGD, momentum=0.9)),
    "nesterov": (nesterov, 0.003, functools.partial(torch.optim.SGD, momentum=0.9, nesterov=True)),
    "adamw": (adamw, 0.001, torch.optim.AdamW),
}


def tensors(part, **options):
    """The arrays of a network under their names."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(part)
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): torch.tensor(np.asarray(leaf), **options)
        for path, leaf in leaves
    }


def theirs(case, record, made_by, parts=1):
    """Losses, weights and running statistics of a loop in PyTorch over the batches of a record."""
    weights = tensors(trained_weights(case.network), requires_grad=True)
    running = tensors(running_statistics(case.network))
    made, losses = made_by(weights), []
    for batch in zip(record["inputs"].to_numpy(), record["targets"].to_numpy(), strict=True):
        made.zero_grad()
        loss = 0.0
        for inputs, targets in zip(*(torch.tensor(values).chunk(parts) for values in batch), strict=True):
            part = case.loss(case.outputs(weights, inputs, running), targets) / parts
            part.backward()
            loss += part.item()
        made.step()
        losses.append(loss)
    return np.array(losses), weights, running


def assert_equal(case, made_by, *, parts=1, **options):
    """Every loss, and what is left at the end, is that of PyTorch."""
    options = {"steps": STEPS, "save": [0, STEPS], "batches": BATCH, **case.options, **options}
    record, end = descend(case.task, case.network, Descent(**options), return_networks=True)
    losses, weights, running = theirs(case, record, made_by, parts)
    np.testing.assert_allclose(record["batch_loss"], losses, rtol=PRECISION, atol=0)
    found = tensors(trained_weights(end)), tensors(running_statistics(end))
    for own, other in zip(found, (weights, running), strict=True):
        assert own.keys() == other.keys()
        for name, values in own.items():
            # Weights are sums of steps of about the largest of them.
            scale = float(values.abs().max())
            expected = other[name].detach().numpy()
            np.testing.assert_allclose(values.numpy(), expected, rtol=0, atol=PRECISION * scale, err_msg=name)
    return record


# What an optimizer does to one array it does to any, and the gradient does not depend on it. Adam would not see a
# factor on all gradients, so the larger networks learn by others.
@pytest.mark.parametrize(
    ("network", "optimizer"),
    [*(("perceptron", each) for each in OPTIMIZERS), ("residual", "nesterov"), ("transformer", "momentum")],
)
def test_a_hundred_steps_are_those_of_pytorch(network, optimizer):
    made, rate, torch_optimizer = OPTIMIZERS[optimizer]
    assert_equal(
        CASES[network],
        lambda weights: torch_optimizer(weights.values(), lr=rate),
        optimizer=made,
        learning_rate=rate,
    )


def test_a_hundred_steps_of_all_eighteen_layers_are_those_of_pytorch():
    case = CASES["residual"]._replace(network=EIGHTEEN)
    assert_equal(
        case, lambda weights: torch.optim.AdamW(weights.values(), lr=1e-3), optimizer=adamw, learning_rate=1e-3
    )


def test_micro_batches_accumulate_gradients_as_in_pytorch():
    assert_equal(
        PERCEPTRON,
        lambda weights: torch.optim.SGD(weights.values(), lr=0.03),
        parts=4,
        learning_rate=0.03,
        batches=Batches(BATCH, micro_size=BATCH // 4),
    )


def test_rates_of_layers_are_those_of_parameter_groups():
    rates = {"weights.0": 0.001, "weights.1": 0.002, "weights.2": 0.0005, "biases": 0.003}

    def groups(weights):
        return torch.optim.AdamW(
            [
                {"params": [values for name, values in weights.items() if name.startswith(part)], "lr": rate}
                for part, rate in rates.items()
            ]
        )

    record = assert_equal(PERCEPTRON, groups, optimizer=adamw, learning_rate=rates)
    assert float(record["time"][-1]) == pytest.approx(0.003 * STEPS, rel=1e-14)


def matrices(weights):
    return jax.tree.map(lambda values: values.ndim == 2, weights)


def decayed_adamw(rate):
    return optax.adamw(rate, weight_decay=0.3, mask=matrices)


def decayed_momentum(rate):
    return optax.chain(optax.add_decayed_weights(0.3, matrices), momentum(rate))


@pytest.mark.parametrize(
    ("optimizer", "rate", "torch_optimizer"),
    [
        (decayed_adamw, 0.001, torch.optim.AdamW),
        (decayed_momentum, 0.003, functools.partial(torch.optim.SGD, momentum=0.9)),
    ],
)
def test_weights_decay_where_they_do_in_parameter_groups(optimizer, rate, torch_optimizer):
    def groups(weights):
        return torch_optimizer(
            [
                {"params": [values for values in weights.values() if values.ndim == 2], "weight_decay": 0.3},
                {"params": [values for values in weights.values() if values.ndim == 1], "weight_decay": 0.0},
            ],
            lr=rate,
        )

    assert_equal(PERCEPTRON, groups, optimizer=optimizer, learning_rate=rate)


LARGEST = 2.5  # norm of a gradient; some of the run are larger, and some are not


def clipped_sgd(rate):
    return optax.chain(optax.clip_by_global_norm(LARGEST), optax.sgd(rate))


def test_clipped_gradients_are_those_of_pytorch_but_for_its_epsilon():
    norms = []

    def clipping(weights, exact):
        made = torch.optim.SGD(weights.values(), lr=0.03)

        def clip(*_):
            norm = torch.nn.utils.get_total_norm([values.grad for values in weights.values()])
            norms.append(float(norm))
            # PyTorch divides by the norm plus 1e-6, which this factor takes out.
            torch.nn.utils.clip_grad_norm_(weights.values(), LARGEST * (1 + 1e-6 / float(norm) if exact else 1))

        made.register_step_pre_hook(clip)
        return made

    options = {"optimizer": clipped_sgd, "learning_rate": 0.03}
    record = assert_equal(PERCEPTRON, functools.partial(clipping, exact=True), **options)
    assert min(norms) < 0.9 * LARGEST < 1.1 * LARGEST < max(norms)
    losses, _, _ = theirs(PERCEPTRON, record, functools.partial(clipping, exact=False))
    off = np.abs(losses / record["batch_loss"].to_numpy() - 1).max()
    # Each clipped gradient is off by 1e-6 of itself at most, and so is the way of the weights.
    assert PRECISION < off < 1e-6


def test_a_schedule_is_that_of_pytorch_and_time_is_the_sum_of_its_rates():
    rates = []

    def annealed(weights):
        made = torch.optim.SGD(weights.values(), lr=0.05, momentum=0.9)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(made, T_max=STEPS)

        def later(*_):
            rates.append(schedule.get_last_lr()[0])
            schedule.step()

        made.register_step_post_hook(later)
        return made

    cosine = optax.cosine_decay_schedule(0.05, STEPS)
    record = assert_equal(PERCEPTRON, annealed, optimizer=momentum, learning_rate=cosine, save=range(STEPS + 1))
    # PyTorch multiplies from rate to rate what the formula gives at once.
    np.testing.assert_allclose(record["applied_rate"], [0, *rates], rtol=0, atol=1e-15)
    np.testing.assert_allclose(record["time"], np.cumsum([0, *rates]), rtol=1e-13)
