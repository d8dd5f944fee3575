"""Results of `symmetry.audit` for training runs with a seeded defect, and for runs without one.

Fifty-five runs have a defect, five of each kind, which differ in network, layer, optimiser and seed. Forty runs have
none. Each run is trained, and audited with the symmetries of the declared network and the declared optimiser. The table
contains whether a law was broken, the cause and the parameters that the audit names, and whether these are the defect.
A copy of a tied weight is searched for in the structure of the trained function, which then has more charges.

Run `python benchmarks/audit.py [--file FILE] [--only WORD …] [--seed SEED]`. Runs that are already in the file are
skipped. `--only` selects runs whose names contain all words, and `--seed` changes weights, data and batches.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from resumable import keep, rows

from dynascope.symmetry import audit, find_symmetries
from dynascope.tasks import Labelled
from dynascope.training import Descent, charge_statistics, descend

FILE = Path(__file__).parent.parent / "docs" / "how-to" / "audit.csv"
COLUMNS = ("kind", "run", "seeded", "found", "cause", "named", "times", "since", "right")
STEPS, CLASSES, INPUTS, LENGTH = 300, 3, 6, 4


@jax.custom_vjp
def negated(x: jax.Array) -> jax.Array:
    """Return x, with the wrong sign in the backward pass."""
    return x


negated.defvjp(lambda x: (x, None), lambda _, cotangent: (-cotangent,))


class Defective(eqx.Module):
    """A network with possible defects in its forward or backward pass; none by default.

    Attributes:
        dropout: Share of elements dropped between linear layers.
        negated: The operation or parameter whose backward pass has the wrong sign.
        stopped: A parameter that no gradient reaches.
        epsilon: ε of the normalisation.
    """

    dropout: float = eqx.field(static=True, default=0.0, kw_only=True)
    negated: str = eqx.field(static=True, default="", kw_only=True)
    stopped: str = eqx.field(static=True, default="", kw_only=True)
    epsilon: float = eqx.field(static=True, default=0.0, kw_only=True)

    def get(self, name: str) -> jax.Array:
        """Return a parameter, with a possible defect in its backward pass."""
        value = getattr(self, name)
        value = jax.lax.stop_gradient(value) if name == self.stopped else value
        return negated(value) if name == self.negated else value

    def passed(self, name: str, x: jax.Array) -> jax.Array:
        """Return the result of an operation, with a possible defect in its backward pass."""
        return negated(x) if name == self.negated else x

    def dropped(self, x: jax.Array) -> jax.Array:
        """Apply dropout with a new mask for each batch, seeded by the sum of the batch."""
        if not self.dropout:
            return x
        seed = jax.lax.bitcast_convert_type(jnp.sum(x).astype(jnp.float32), jnp.int32)
        keep = jax.random.bernoulli(jax.random.key(jax.lax.stop_gradient(seed)), 1 - self.dropout, x.shape)
        return jnp.where(keep, x / (1 - self.dropout), 0)


class Perceptron(Defective):
    """A linear layer, followed by two ReLU layers."""

    inner: jax.Array
    hidden: jax.Array
    bias: jax.Array
    second: jax.Array
    shift: jax.Array
    last: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the outputs for a batch."""
        within = self.dropped(x @ self.get("inner"))
        one = self.passed("relu", jax.nn.relu(within @ self.get("hidden") + self.get("bias")))
        two = jax.nn.relu(one @ self.get("second") + self.get("shift"))
        return two @ self.get("last")


class Normalised(Defective):
    """A ReLU layer with normalisation over the batch or over its units, and a second ReLU layer."""

    first: jax.Array
    gain: jax.Array
    shift: jax.Array
    second: jax.Array
    last: jax.Array
    over: int = eqx.field(static=True)

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the outputs for a batch."""
        z = x @ self.get("first")
        z = (z - z.mean(self.over, keepdims=True)) / jnp.sqrt(z.var(self.over, keepdims=True) + self.epsilon)
        one = self.passed("relu", jax.nn.relu(z * self.get("gain") + self.get("shift")))
        return jax.nn.relu(one @ self.get("second")) @ self.get("last")


class Attention(Defective):
    """One head of softmax attention over the positions of a sequence, and a linear layer on the mean position."""

    query: jax.Array
    keys: jax.Array
    value: jax.Array
    output: jax.Array
    last: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the outputs for a batch."""
        x = x.reshape(len(x), LENGTH, -1)
        queries = self.dropped(x @ self.get("query"))
        scores = queries @ jnp.swapaxes(x @ self.get("keys"), 1, 2)
        values = self.passed("values", self.dropped(x @ self.get("value")))
        out = jax.nn.softmax(scores) @ values @ self.get("output")
        return jnp.tanh(out.mean(1)) @ self.get("last")


class Tied(eqx.Module):
    """ReLU layers with tied weights, unless copied: two layers share one weight, embedding and output another."""

    embedding: jax.Array
    shared: jax.Array
    copied: dict[str, jax.Array]
    last: jax.Array

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the outputs for a batch."""
        one = jax.nn.relu(x @ self.embedding)
        two = jax.nn.relu(one @ self.shared)
        three = jax.nn.relu(two @ self.copied.get("shared", self.shared))
        out = three @ self.copied.get("embedding", self.embedding).T
        return out @ self.last


def network(name: str, seed: int, dtype: str) -> Any:
    """Return a network with normal weights."""
    draw = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return (draw.normal(size=shape) / np.sqrt(shape[0])).astype(dtype)

    if name == "perceptron":
        shapes = ((INPUTS, 4), (4, 8), (8,), (8, 8), (8,), (8, CLASSES))
        return Perceptron(*(normal(*shape) for shape in shapes))
    if name == "attention":
        width = 4
        return Attention(*(normal(*s) for s in ((width, 3), (width, 3), (width, 3), (3, width), (width, CLASSES))))
    if name == "tied":
        return Tied(normal(INPUTS, 8), normal(8, 8), {}, normal(INPUTS, CLASSES))
    ones, zeros = np.ones(8, dtype), np.zeros(8, dtype)
    weights = normal(INPUTS, 8), ones, zeros, normal(8, 8), normal(8, CLASSES)
    return Normalised(*weights, over={"batch norm": 0, "layer norm": 1}[name])


def data(name: str, seed: int) -> Labelled:
    draw = np.random.default_rng((seed, 1))
    columns = 4 * LENGTH if name == "attention" else INPUTS
    inputs = draw.normal(size=(96, columns))
    return Labelled(inputs, (inputs @ draw.normal(size=(columns, CLASSES))).argmax(1))


@dataclasses.dataclass(frozen=True)
class Run:
    """A training run with its defect and the expected result of the audit.

    Attributes:
        kind: Kind of the defect, or "none".
        network: Name of the network.
        seed: Seed of weights, data and batches.
        momentum: Declared β.
        weight_decay: Declared λ.
        rule: Declared optimiser.
        rate: Learning rate, as trained and declared.
        schedule: "", "cosine" or "warm-up".
        batch_size: Batch size; None for all samples.
        dtype: Type of the weights.
        clip: Global norm to which the gradient is clipped.
        defect: The defect of the network or of the optimiser.
        cause: The cause that the audit should name.
        layers: The parameters that the audit may name; empty for any.
    """

    kind: str
    network: str
    seed: int
    momentum: float = 0.0
    weight_decay: float = 0.0
    rule: str = "heavy_ball"
    rate: float = 0.05
    schedule: str = ""
    batch_size: int | None = None
    dtype: str = "float64"
    clip: float = 0.0
    defect: tuple[tuple[str, Any], ...] = ()
    cause: str = ""
    layers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the run in the table."""
        parts = [self.network, self.rule.replace("_", " "), self.dtype, f"seed {self.seed}"]
        parts += [f"{word} {number:g}" for word, number in (("β", self.momentum), ("λ", self.weight_decay)) if number]
        parts += [f"batches of {self.batch_size}"] if self.batch_size else []
        parts += [self.schedule] if self.schedule else []
        return ", ".join(parts + ([f"clipped to {self.clip:g}"] if self.clip else []))

    @property
    def seeded(self) -> str:
        """Description of the defect."""
        return ", ".join(
            f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in self.defect
        )

    def optimizer(self, rate: Any) -> optax.GradientTransformation:
        """Return the optimiser, including its defect."""
        wrong = dict(self.defect)
        links = [optax.clip_by_global_norm(self.clip)] if self.clip else []
        links += [optax.clip(wrong["by value"])] if "by value" in wrong else []
        links += [optax.clip_by_block_rms(wrong["by tensor"])] if "by tensor" in wrong else []
        if "Adam" in wrong:
            return optax.chain(optax.add_decayed_weights(self.weight_decay), optax.adam(rate))
        decay = [optax.add_decayed_weights(self.weight_decay)] if self.weight_decay else []
        if "decay of" in wrong:
            decay.append(optax.add_decayed_weights(wrong["more"], only(wrong["decay of"])))
        rule = wrong.get("rule", self.rule)
        if rule == "decoupled":
            links += [optax.trace(self.momentum), *decay, optax.scale_by_learning_rate(rate)]
        else:
            links += [*decay, optax.sgd(rate, momentum=self.momentum or None, nesterov=rule == "nesterov")]
        if "rate times" in wrong:
            links.append(optax.scale(wrong["rate times"]))
        if "undeclared" in wrong:
            links.append(optax.scale_by_schedule(_schedule(wrong["undeclared"], 1.0)))
        if "frozen" in wrong:
            links.append(optax.masked(optax.set_to_zero(), only(wrong["frozen"])))
        return optax.chain(*links)


def only(name: str) -> Any:
    """Return a mask for one parameter."""
    return lambda weights: jax.tree_util.tree_map_with_path(
        lambda path, _: jax.tree_util.keystr(path) == f".{name}", weights
    )


def trained(run: Run) -> Any:
    """Return the record of a run, and the symmetries whose charges it tracks."""
    declared, task = network(run.network, run.seed, run.dtype), data(run.network, run.seed)
    wrong = {name: value for name, value in run.defect if name in Defective.__dataclass_fields__}
    faulty = dataclasses.replace(declared, **wrong) if wrong else declared
    symmetries = found_in(declared, task.inputs).symmetries
    schedule = _schedule(run.schedule, run.rate)
    declaration = {"optimizer": run.rule, "momentum": run.momentum, "weight_decay": run.weight_decay}
    with jax.enable_x64(run.dtype == "float64"):
        record = descend(
            task,
            faulty,
            Descent(
                run.optimizer,
                learning_rate=schedule,
                steps=STEPS,
                loss="cross_entropy",
                batches=run.batch_size,
                statistics=charge_statistics(symmetries, **declaration, causes=True),
            ),
            seed=run.seed,
        )
    return record, symmetries


def _schedule(name: str, rate: float) -> Any:
    return {
        "": rate,
        "cosine": optax.cosine_decay_schedule(rate, STEPS),
        "warm-up": optax.warmup_cosine_decay_schedule(0.0, rate, STEPS // 10, STEPS),
    }[name]


def found_in(module: Any, inputs: np.ndarray) -> Any:
    weights, rest = eqx.partition(module, eqx.is_inexact_array)
    return find_symmetries(lambda theta, x: jax.nn.log_softmax(eqx.combine(theta, rest)(x)), weights, inputs[:16])


def found(run: Run) -> dict[str, Any]:
    """Return the result of the audit, and whether it is correct."""
    if run.kind == "a tied weight copied":
        return copied(run)
    record, symmetries = trained(run)
    result = audit(record, symmetries)
    cause = result.cause
    named = () if cause is None else cause.paths
    right = result.clean
    if run.cause:
        layers = {f".{name}" for name in run.layers}
        right = cause is not None and cause.name == run.cause and bool(named)
        right = right and (not layers or set(named) <= layers)
    return {
        "found": "no" if result.clean else "yes",
        "cause": "" if cause is None else cause.name,
        "named": " ".join(named),
        "times": f"{result.times:.1e}",
        "since": "" if result.clean else min(each.first_broken for each in result.findings),
        "right": "yes" if right else "no",
    }


def copied(run: Run) -> dict[str, Any]:
    """Return whether the structure of the trained function reveals the copy."""
    declared, task = network(run.network, run.seed, run.dtype), data(run.network, run.seed)
    [(_, name)] = run.defect
    other = dataclasses.replace(declared, copied={name: np.array(getattr(declared, name))})
    before, after = (found_in(each, task.inputs) for each in (declared, other))
    path = f".copied['{name}']"
    new = {path for each in after.symmetries for path in each.paths}
    seen = after.size > before.size and path in new
    return {
        "found": "yes" if after.size > before.size else "no",
        "cause": f"{after.size} charges and not {before.size}",
        "named": path if path in new else "",
        "right": "yes" if seen else "no",
    }


def runs(first: int = 0) -> list[Run]:
    """Return all runs, with seeds from the given one."""
    made: list[Run] = []

    def add(kind: str, cause: str, *several: tuple[str, dict[str, Any], tuple[str, ...], dict[str, Any]]) -> None:
        for seed, (name, defect, layers, options) in enumerate(several):
            options = {"momentum": 0.9 * (seed % 2), "weight_decay": 1e-3 * (seed // 2 % 2), "rate": 0.05, **options}
            options["rate"] = options["rate"] * (0.2 if options["momentum"] else 1.0)
            made.append(
                Run(kind, name, first + seed, cause=cause, layers=layers, defect=tuple(defect.items()), **options)
            )

    add(
        "clipping by tensor",
        "clipping by tensor",
        ("perceptron", {"by tensor": 0.02}, (), {}),
        ("batch norm", {"by tensor": 0.01}, (), {"batch_size": 16}),
        ("layer norm", {"by tensor": 0.01}, (), {"dtype": "float32"}),
        ("attention", {"by tensor": 0.02}, (), {"batch_size": 32}),
        ("perceptron", {"by tensor": 0.05}, (), {"batch_size": 8, "dtype": "float32"}),
    )
    add(
        "clipping by value",
        "clipping by value",
        ("perceptron", {"by value": 0.05}, (), {}),
        ("batch norm", {"by value": 0.02}, (), {"batch_size": 16}),
        ("layer norm", {"by value": 0.02}, (), {"dtype": "float32"}),
        ("attention", {"by value": 0.03}, (), {"batch_size": 32}),
        ("perceptron", {"by value": 0.1}, (), {"batch_size": 8, "dtype": "float32"}),
    )
    add(
        "an ε other than declared",
        "norm: its ε, statistics or backward pass",
        ("batch norm", {"epsilon": 1e-5}, ("first",), {}),
        ("batch norm", {"epsilon": 1e-3}, ("first",), {"batch_size": 32}),
        ("layer norm", {"epsilon": 1e-5}, ("first",), {"batch_size": 16}),
        ("layer norm", {"epsilon": 1e-2}, ("first",), {"dtype": "float32"}),
        ("batch norm", {"epsilon": 0.1}, ("first",), {"dtype": "float32"}),
    )
    add(
        "another decay of one group",
        "different weight decay",
        ("perceptron", {"decay of": "second", "more": 1e-3}, ("second",), {}),
        ("perceptron", {"decay of": "inner", "more": 1e-2}, ("inner",), {"batch_size": 16, "rule": "nesterov"}),
        ("attention", {"decay of": "value", "more": 1e-3}, ("value",), {"dtype": "float32"}),
        ("batch norm", {"decay of": "second", "more": 1e-2}, ("second",), {"batch_size": 32, "rule": "decoupled"}),
        ("layer norm", {"decay of": "gain", "more": 1e-3}, ("gain",), {}),
    )
    add(
        "dropout inside a matrix charge",
        "elementwise operation inside",
        ("perceptron", {"dropout": 0.1}, ("inner", "hidden"), {}),
        ("perceptron", {"dropout": 0.5}, ("inner", "hidden"), {"batch_size": 16}),
        ("attention", {"dropout": 0.1}, ("query", "keys", "value", "output"), {"batch_size": 32}),
        ("attention", {"dropout": 0.3}, ("query", "keys", "value", "output"), {"dtype": "float32"}),
        ("perceptron", {"dropout": 0.2}, ("inner", "hidden"), {"batch_size": 8, "dtype": "float32"}),
    )
    add(
        "a tied weight copied",
        "",
        *(
            ("tied", {"copy of": name}, (name,), {})
            for name in ("shared", "embedding", "shared", "embedding", "shared")
        ),
    )
    add(
        "a frozen layer",
        "frozen layer",
        ("perceptron", {"frozen": "hidden"}, ("hidden",), {}),
        ("perceptron", {"stopped": "second"}, ("second",), {"batch_size": 16}),
        ("attention", {"frozen": "value"}, ("value",), {"dtype": "float32"}),
        ("batch norm", {"stopped": "gain"}, ("gain",), {"batch_size": 32}),
        ("layer norm", {"frozen": "second"}, ("second",), {}),
    )
    before = ("inner", "hidden", "bias")
    add(
        "a wrong sign in a custom backward",
        "wrong backward pass",
        ("perceptron", {"negated": "relu"}, before, {"rate": 0.01}),
        ("perceptron", {"negated": "second"}, ("second",), {"rate": 0.01, "batch_size": 16}),
        ("attention", {"negated": "values"}, ("value",), {"rate": 0.02}),
        ("batch norm", {"negated": "relu"}, ("first", "gain", "shift"), {"rate": 0.02, "batch_size": 32}),
        ("layer norm", {"negated": "gain"}, ("gain",), {"rate": 0.02, "dtype": "float32"}),
    )
    add(
        "Adam in place of SGD",
        "preconditioner or another rule",
        ("perceptron", {"Adam": "yes"}, (), {"rate": 0.01}),
        ("batch norm", {"Adam": "yes"}, (), {"rate": 0.01, "batch_size": 16}),
        ("layer norm", {"Adam": "yes"}, (), {"rate": 0.01, "dtype": "float32"}),
        ("attention", {"Adam": "yes"}, (), {"rate": 0.01, "batch_size": 32}),
        ("perceptron", {"Adam": "yes"}, (), {"rate": 0.003, "batch_size": 8, "dtype": "float32"}),
    )
    add(
        "different momentum rule",
        "different momentum rule",
        ("perceptron", {"rule": "nesterov"}, (), {"momentum": 0.9}),
        ("batch norm", {"rule": "nesterov"}, (), {"momentum": 0.9, "batch_size": 16, "dtype": "float32"}),
        ("attention", {"rule": "heavy ball"}, (), {"momentum": 0.8, "rule": "nesterov"}),
        ("layer norm", {"rule": "decoupled"}, (), {"momentum": 0.9, "weight_decay": 0.1}),
        (
            "perceptron",
            {"rule": "heavy ball"},
            (),
            {"momentum": 0.9, "weight_decay": 0.1, "rule": "decoupled", "batch_size": 8},
        ),
    )
    add(
        "different learning rate",
        "different learning rate",
        ("perceptron", {"rate times": 2.0}, (), {"weight_decay": 1e-2}),
        ("batch norm", {"rate times": 1.1}, (), {"weight_decay": 1e-2, "batch_size": 16}),
        ("layer norm", {"undeclared": "warm-up"}, (), {"weight_decay": 1e-2, "dtype": "float32"}),
        ("attention", {"undeclared": "cosine"}, (), {"momentum": 0.9, "batch_size": 32}),
        ("perceptron", {"rate times": 0.5}, (), {"weight_decay": 1e-2, "rule": "nesterov", "batch_size": 8}),
    )
    clean: list[dict[str, Any]] = [
        {},
        {"batch_size": 16, "dtype": "float32"},
        {"momentum": 0.9, "rate": 0.01, "batch_size": 32},
        {"momentum": 0.9, "rate": 0.01, "weight_decay": 1e-2, "dtype": "float32", "schedule": "warm-up"},
        {"momentum": 0.8, "rate": 0.02, "weight_decay": 1e-3, "rule": "nesterov", "batch_size": 16, "clip": 0.3},
        {"momentum": 0.9, "rate": 0.01, "weight_decay": 1e-2, "rule": "decoupled", "batch_size": 8, "dtype": "float32"},
        {"momentum": 0.5, "clip": 0.3, "batch_size": 16, "weight_decay": 1e-3},
        {"schedule": "cosine", "clip": 0.5, "dtype": "float32", "rate": 0.2},
        {
            "momentum": 0.9,
            "rate": 0.01,
            "schedule": "warm-up",
            "batch_size": 32,
            "rule": "decoupled",
            "weight_decay": 0.1,
        },
        {"rate": 0.3, "weight_decay": 1e-2, "batch_size": 8},
    ]
    for number, options in enumerate(clean):
        for name in ("perceptron", "batch norm", "layer norm", "attention"):
            made.append(Run("none", name, first + 10 + number, **options))
    return made


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--file", type=Path, default=FILE)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    kept = {(row["kind"], row["run"], row["seeded"]) for row in rows(options.file)}
    for run in runs(options.seed):
        cell = (run.kind, run.name, run.seeded)
        if cell not in kept and all(word in " ".join(cell) for word in options.only):
            keep(options.file, dict(zip(COLUMNS, cell, strict=False)) | found(run), COLUMNS)
    count = collections.Counter((row["kind"], row["found"], row["right"]) for row in rows(options.file))
    for kind in dict.fromkeys(run.kind for run in runs()):
        own = {key[1:]: number for key, number in count.items() if key[0] == kind}
        total = sum(own.values())
        broken = sum(number for (seen, _), number in own.items() if seen == "yes")
        right = sum(number for (_, named), number in own.items() if named == "yes")
        print(f"{kind:<40} {total:>3} runs, {broken:>3} found, {right:>3} correct")


if __name__ == "__main__":
    main()
