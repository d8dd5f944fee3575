"""Training loops of PyTorch, each with one defect: the audit finds it and names it, and no loop without one."""

from __future__ import annotations

import contextlib
import functools
import math

import pytest

from dynascope import symmetry, tasks

torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
library = pytest.importorskip("dynascope.torch")

STEPS, BATCH = 60, 32
DIGITS = tasks.digits()
INPUTS, LABELS = torch.tensor(DIGITS.inputs).float(), torch.tensor(DIGITS.targets.argmax(axis=1))


class Block(torch.nn.Module):
    """A transformer block over the rows of an image."""

    def __init__(self, dropout=0.0, activation="relu"):
        super().__init__()
        options = {"dropout": dropout, "activation": activation, "batch_first": True, "norm_first": True}
        self.embedding = torch.nn.Linear(8, 8)
        self.layer = torch.nn.TransformerEncoderLayer(8, 2, 16, **options)
        self.norm = torch.nn.LayerNorm(8)
        self.output = torch.nn.Linear(8, 10)

    def forward(self, x):
        return self.output(self.norm(self.layer(self.embedding(x.reshape(-1, 8, 8)))).mean(1))


def perceptron(activation=torch.nn.ReLU):
    linear = torch.nn.Linear
    return torch.nn.Sequential(linear(64, 8), activation(), linear(8, 8), activation(), linear(8, 10))


NETWORKS = {"perceptron": perceptron, "block": Block}


@functools.cache
def structure(name):
    torch.manual_seed(0)
    model = NETWORKS[name]().eval()
    return symmetry.find_symmetries(lambda module, x: module(x).log_softmax(-1), model, INPUTS[:20])


class Scheduled(torch.optim.SGD):
    """SGD whose rate is another than its groups declare."""

    made = 0

    def step(self, closure=None):
        factor = self.factor(self.made)
        self.made += 1
        for group in self.param_groups:
            group["lr"] *= factor
        super().step(closure)
        for group in self.param_groups:
            group["lr"] /= factor


def scheduled(factor):
    return type("Scheduled", (Scheduled,), {"factor": staticmethod(factor)})


def penalty(power, *, of=""):
    def penalised(model):
        return 2e-3 * sum((each.abs() ** power).sum() for name, each in model.named_parameters() if of in name)

    return penalised


def signs(model):
    for each in model.parameters():
        each.grad += 1e-3 * each.detach().sign()


def by_norm(model):
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)


def audited(
    name,
    *,
    model=None,
    optimizer=torch.optim.SGD,
    lr=0.05,
    momentum=0.9,
    weight_decay=1e-3,
    nesterov=False,
    zeroed=True,
    penalised=None,
    autocast=None,
    change=lambda model: None,
    batches=1,
    declared_schedule=None,
    declared=None,
    dtype=torch.float32,
    seed=0,
):
    """The audit of a loop with the symmetries of the network of this name."""
    torch.manual_seed(seed)
    model = (model or NETWORKS[name])().to(dtype)
    inputs = INPUTS.to(dtype)
    # That there was another optimiser before makes PyTorch run the hooks of a subclass and of its base.
    torch.optim.SGD(model.parameters(), lr=0.1)
    trained = optimizer(model.parameters(), lr=lr, momentum=momentum, weight_decay=weight_decay, nesterov=nesterov)
    schedule = declared_schedule(trained) if declared_schedule else None
    found = structure(name)
    with library.watch_charges(model, trained, found.symmetries, causes=True, **(declared or {})) as watched:
        for _ in range(STEPS):
            if zeroed:
                trained.zero_grad()
            for _ in range(batches):
                chosen = torch.randint(len(inputs), (BATCH,))
                with torch.autocast("cpu", autocast) if autocast else contextlib.nullcontext():
                    outputs = model(inputs[chosen]).to(dtype)
                loss = torch.nn.functional.cross_entropy(outputs, LABELS[chosen])
                ((loss + penalised(model) if penalised else loss) / batches).backward()
            change(model)
            trained.step()
            if schedule is not None:
                schedule.step()
    return symmetry.audit(watched.record(), found.symmetries)


CLEAN = {
    "as declared": {},
    "plain descent": {"momentum": 0.0, "weight_decay": 0.0},
    "Nesterov's momentum": {"nesterov": True},
    "double precision": {"dtype": torch.float64},
    "a declared schedule": {"declared_schedule": lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, STEPS)},
    "clipping by the global norm": {"change": by_norm},
    "accumulated batches": {"batches": 3},
    "a subclass that steps as its base": {"optimizer": scheduled(lambda made: 1.0)},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("kind", CLEAN)
def test_a_loop_without_a_defect_is_clean(kind, name):
    found = audited(name, **CLEAN[kind], seed=len(kind))
    assert found.clean, found.table


def warm_up(made):
    return min((made + 1) / 20, 1)


def cosine(made):
    return (1 + math.cos(math.pi * made / STEPS)) / 2


DEFECTS = [
    ("different learning rate", "perceptron", {"optimizer": scheduled(lambda made: 2.0)}),
    ("different learning rate", "perceptron", {"optimizer": scheduled(lambda made: 1.1), "weight_decay": 1e-2}),
    ("different learning rate", "perceptron", {"optimizer": scheduled(lambda made: 0.5), "nesterov": True}),
    ("different learning rate", "perceptron", {"optimizer": scheduled(warm_up)}),
    ("different learning rate", "perceptron", {"optimizer": scheduled(cosine), "momentum": 0.0}),
    ("different learning rate", "perceptron", {"optimizer": scheduled(cosine), "nesterov": True}),
    ("different learning rate", "perceptron", {"optimizer": scheduled(cosine), "weight_decay": 0.0}),
    ("different learning rate", "block", {"optimizer": scheduled(warm_up)}),
    ("different learning rate", "perceptron", {"optimizer": scheduled(lambda made: 2.0), "change": by_norm}),
    ("different momentum", "perceptron", {"declared": {"momentum": 0.8}}),
    ("different momentum", "block", {"declared": {"momentum": 0.0}}),
    ("different weight decay", "perceptron", {"declared": {"weight_decay": 0.0}}),
    ("gradients not zeroed", "perceptron", {"zeroed": False, "lr": 1e-3}),
    ("gradients not zeroed", "perceptron", {"zeroed": False, "lr": 3e-3, "momentum": 0.0, "change": by_norm}),
    ("gradients not zeroed", "block", {"zeroed": False, "lr": 1e-3, "momentum": 0.0}),
    ("L1 penalty in the loss", "perceptron", {"penalised": penalty(1)}),
    ("L1 penalty in the loss", "perceptron", {"penalised": penalty(1, of="weight"), "batches": 2}),
    ("L1 penalty in the loss", "block", {"penalised": penalty(1)}),
    ("L2 penalty in the loss", "perceptron", {"penalised": penalty(2)}),
    ("L2 penalty in the loss", "block", {"penalised": penalty(2)}),
    ("undeclared L1 decay", "perceptron", {"change": signs}),
    ("lower precision", "perceptron", {"autocast": torch.bfloat16}),
    ("lower precision", "perceptron", {"autocast": torch.bfloat16, "batches": 3}),
    ("lower precision", "block", {"autocast": torch.bfloat16}),
    ("dropout", "block", {"model": lambda: Block(dropout=0.1)}),
    ("dropout", "block", {"model": lambda: Block(dropout=0.5), "weight_decay": 0.0}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("cause", "name", "options"), DEFECTS)
def test_a_defect_is_found_and_named(cause, name, options):
    found = audited(name, **options)
    assert not found.clean
    assert found.cause is not None, found.table
    assert [each.name for each in found.causes] == [cause], found.table


@pytest.mark.slow
def test_another_activation_is_not_taken_for_noise():
    for name, model in (
        ("perceptron", lambda: perceptron(torch.nn.GELU)),
        ("block", lambda: Block(activation="gelu")),
    ):
        found = audited(name, model=model)
        assert not found.clean
        assert not {"dropout", "lower precision"} & {each.name for each in found.causes}, found.table
