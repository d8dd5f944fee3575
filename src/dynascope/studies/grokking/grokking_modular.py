"""Networks that learn arithmetic modulo p: the fit, the late generalisation, and the features on the way."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.comparison.effect import Effect, Hypothesis
    from dynascope.studies.grokking.modular_runs import Measured, Recipe
    from dynascope.tasks.algebra.modular_arithmetic import ModularArithmetic

__all__ = ["GrokkingModular"]

_HEADS = 4
_RENAMED_STEPS = 50  # after which two runs that are the same but for names still differ by rounding alone
_NUMBERS = (
    *("kappa_cka", "effective_dimension"),
    *("effective_dimension_quality", "effective_dimension_utilization"),
)
# Name, factor, metric, expected direction, statement.
_CLAIMS = (
    ("H1", "kind of sample", "step", 1, "Test samples are learned after training samples."),
    ("H2", "training once overfitted", "kappa_cka", -1, "An overfitted network comes closer to minimum features."),
    (
        "H3",
        "training once overfitted",
        "effective_dimension_utilization",
        -1,
        "The outputs of an overfitted network come to use fewer features.",
    ),
    (
        "H4",
        "training once overfitted",
        "effective_dimension",
        -1,
        "An overfitted network comes to have fewer features.",
    ),
)


@dataclasses.dataclass(frozen=True)
class GrokkingModular(Study):
    """A network learns a part of the table of an operation modulo p by AdamW, and the rest of it long after.

    Accuracies, the delay between them and the features of the training samples are measured along the steps. What is
    known of them is empirical: that the test samples come late, and that features go from extended towards minimum ones
    afterwards. The page reports these hypotheses with intervals over seeds, each with its own weights and its own
    split, and no verdict depends on them. Overfitted is the network half way, in ratio, between the steps at which it
    has learned the training and the test samples (`overfitted_step`); it is compared with that of the last step.

    Judged is what theory says of every run, grokking or not:

    - `renamed_loss`: numbers are only names to a network that reads them one-hot. With discrete logarithms for names,
      a·b modulo p is a sum modulo p − 1 and a/b a difference, zero apart, so that training on either table, from
      weights whose rows and columns are renamed alike, gives the same losses; with −a for the name of a, the same holds
      of sums and differences. The ratio of the two losses after 50 steps is one.
    - `gradient_balance`: activations of degree k give ⟨W₁, ∂L/∂W₁⟩ = k ⟨W₂, ∂L/∂W₂⟩ for the layers W₁ before and W₂
      after the last hidden neurons, at any step and for any loss.
    - `total_utilization`: outputs lie in the span of the features, so that utilizations sum to one.
    - `unused_weight`: what no sample reads only decays, by 1 − ηλ at each step. In division by all but zero, these are
      the weights of the divisor zero of a two-layer network.

    Attributes:
        operation: "addition", "subtraction", "multiplication" or "division".
        p: The modulus, prime for multiplication and division.
        train_fraction: Fraction of the table that is trained on.
        network: "relu" or "quadratic" (two layers), or "transformer" (one block with ReLU, of four heads).
        width: Hidden neurons of two layers; the stream of the transformer is a quarter as wide.
        loss: "cross_entropy" or "squared".
        learning_rate: η of AdamW with β = (0.9, 0.98), on all training samples at each step.
        weight_decay: λ, decoupled.
        steps: Number of steps.
        times: Number of steps at which all is measured, denser at first.
        train_threshold: Training accuracy that counts as fitted.
        test_threshold: Test accuracy that counts as generalising.
        seeds: Number of runs.
        seed: Seed of the first run; the others follow it.
    """

    operation: Literal["addition", "subtraction", "multiplication", "division"] = "division"
    p: int = 31
    train_fraction: float = 0.7
    network: Literal["relu", "quadratic", "transformer"] = "transformer"
    width: int = 256
    loss: Literal["cross_entropy", "squared"] = "cross_entropy"
    learning_rate: float = 1e-3
    weight_decay: float = 2.0
    steps: int = 3000
    times: int = 60
    train_threshold: float = 0.99
    test_threshold: float = 0.9
    seeds: int = 3
    seed: int = 0

    name: ClassVar[str] = "grokking-modular"
    reference: ClassVar[Reference] = Reference(
        paper="A. Power, Y. Burda, H. Edwards, I. Babuschkin, V. Misra, Grokking: Generalization beyond overfitting on "
        "small algorithmic datasets; Y. Nam, Layerwise dynamics and inductive bias (DPhil thesis, chapter 6)",
        arxiv="2201.02177",
        claim="Networks learn the held-out part of a table of modular arithmetic long after the rest, and to them the "
        "four operations are the tables of sums and differences under other names.",
    )
    along: ClassVar = ("step", "seed")
    minutes: ClassVar[float] = 2.0
    tolerance: ClassVar = curve_tolerance(
        renamed_loss=(1e-6, "the runs are the same but for the order of sums, in float64 and for 50 steps"),
        gradient_balance=(1e-6, "the identity is exact, and the slopes are taken in float64"),
        total_utilization=(
            1e-6,
            "outputs are made of the features in float64, and modes of relative size 1e-12 are left out",
        ),
        unused_weight=(1e-3, "the law is exact, and each step rounds to float32"),
    )
    tiny: ClassVar = {
        **{"p": 5, "train_fraction": 0.6, "network": "relu", "width": 12},
        **{"learning_rate": 3e-3, "weight_decay": 1.0, "steps": 300, "times": 6, "seeds": 2},
    }

    def observe(self) -> xr.Dataset:
        """Train all seeds and measure them on the way; then train anew for a while under other names."""
        import numpy as np

        from dynascope.comparison.effect import report_effects
        from dynascope.flows.steps.losses import Loss
        from dynascope.record import make_record

        curves = self._trained()
        delays = [self._delay(*pair) for pair in zip(curves["accuracy"], curves["test_accuracy"], strict=True)]
        last = float(self._steps[-1])
        reached = {name: [getattr(each, f"{name}_step") for each in delays] for name in ("train", "test")}
        steps = {name: np.array([last if at is None else at for at in found]) for name, found in reached.items()}
        middle = np.sqrt(steps["train"] * steps["test"])
        overfitted = np.abs(self._steps - middle[:, None]).argmin(axis=1)
        claims, effects = self._effects(curves, steps, overfitted)
        return make_record(
            {
                **{name: (("seed", "step"), values) for name, values in curves.items()},
                "train_step": (("seed",), steps["train"]),
                "test_step": (("seed",), steps["test"]),
                "overfitted_step": (("seed",), self._steps[overfitted]),
                "delay": (("seed",), steps["test"] - steps["train"]),
                "fitted": (("seed",), np.array([at is not None for at in reached["train"]])),
                "generalised": (("seed",), np.array([at is not None for at in reached["test"]])),
                "renamed_loss": (("seed",), self._renamed_losses()),
                **report_effects(claims, effects),
            },
            {**self._coordinates, "hypothesis": [claim.name for claim in claims]},
            attributes={
                "convention": f"{Loss(self.loss).convention}; "
                "where a threshold was not reached, its step is the last one",
                "train_threshold": self.train_threshold,
                "test_threshold": self.test_threshold,
                "delay_resolution": [each.resolution for each in delays],
                "confidence": 0.95,
                **self._about(),
            },
        )

    def predict(self) -> xr.Dataset:
        """What holds of every run."""
        import numpy as np

        from dynascope.record import make_record

        tables = self._tables  # first, so that a field out of range is named
        degree = 2.0 if self.network == "quadratic" else 1.0
        decay = (1 - self.learning_rate * self.weight_decay) ** self._steps
        shape = (len(tables), len(self._steps))
        variables = {
            "total_utilization": (("seed", "step"), np.ones(shape)),
            "gradient_balance": (("seed", "step"), np.full(shape, degree)),
            "renamed_loss": (("seed",), np.ones(self.seeds)),
        }
        if self._has_unused:
            variables["unused_weight"] = (("seed", "step"), np.broadcast_to(decay, shape))
        return make_record(
            variables,
            self._coordinates,
            attributes={
                "theory": "symmetries of training on one-hot numbers",
                "reference": self.reference.paper,
                **self._about(),
            },
        )

    def _trained(self) -> dict[str, np.ndarray]:
        """All that is measured along the steps, over seed and step."""
        import jax
        import numpy as np

        from dynascope.errors import DivergenceError, InputError
        from dynascope.studies.grokking.modular_runs import measure, train

        tasks, tests = [each.train for each in self._tables], [each.test for each in self._tables]
        found: list[dict[str, Any]] = []
        every = train(self._networks, tasks, self._steps, self._recipe)
        for place, step in enumerate(self._steps):
            networks = jax.tree.map(lambda leaf, place=place: leaf[:, place], every)
            measured = measure(networks, tasks, tests, self.loss)
            try:
                found.append(self._metrics(measured))
            except InputError as error:
                if error.argument != "features":
                    raise
                raise DivergenceError(
                    "a network came to ignore its inputs",
                    time=float(step) * self.learning_rate,
                    remedy="choose a smaller learning_rate or a larger width",
                ) from None
            if self._has_unused:
                found[-1]["unused_weight"] = np.linalg.norm(networks.first[:, self.p], axis=1)
        curves = {name: np.stack([each[name] for each in found], axis=1) for name in found[0]}
        if self._has_unused:
            curves["unused_weight"] = curves["unused_weight"] / curves["unused_weight"][:, :1]
        return {name: np.asarray(values, float) for name, values in curves.items()}

    def _metrics(self, measured: Measured) -> dict[str, Any]:
        """Losses, accuracies and the metrics of the features, over seeds."""
        import warnings

        import numpy as np

        from dynascope.probes.features import feature_metrics

        found: dict[str, list[float]] = {name: [] for name in (*_NUMBERS, "total_utilization")}
        function = "softmax" if self.loss == "cross_entropy" else "logits"
        for table, features, outputs in zip(self._tables, measured.features, measured.outputs, strict=True):
            with warnings.catch_warnings():
                # A split at random is not balanced, and there may be fewer samples than features.
                warnings.filterwarnings("ignore", message=".*(balanced|modes beyond the samples)")
                logits = feature_metrics(features, outputs, table.train.targets)
                chosen = logits
                if function != "logits":
                    chosen = feature_metrics(features, outputs, table.train.targets, output_function=function)
            for name in _NUMBERS:
                found[name].append(float(chosen[name][1]))
            found["total_utilization"].append(float(np.sum(logits["utilization"][1])))
        scalars = ("loss", "test_loss", "accuracy", "test_accuracy", "gradient_balance")
        return {**{name: getattr(measured, name) for name in scalars}, **found}

    def _renamed_losses(self) -> np.ndarray:
        """Losses under other names over those under the old ones, after as many steps from renamed weights."""
        import jax

        from dynascope.studies.grokking.modular_names import other_names, renamed_network, renamed_task
        from dynascope.studies.grokking.modular_runs import measure, train

        names, tests = other_names(self.operation, self.p), [each.test for each in self._tables]
        others = [renamed_network(network, names) for network in self._networks]
        losses = []
        for networks, tasks in (
            (self._networks, [each.train for each in self._tables]),
            (others, [renamed_task(each, names) for each in self._tables]),
        ):
            run = train(networks, tasks, [_RENAMED_STEPS], self._recipe, double=True)
            end = jax.tree.map(lambda leaf: leaf[:, -1], run)
            # Test samples matter not here; with those of the other runs no program is compiled anew.
            losses.append(measure(end, tasks, tests, self.loss).loss)
        return losses[1] / losses[0]

    def _delay(self, train: np.ndarray, test: np.ndarray) -> Any:
        from dynascope.theory.grokking import grokking_delay

        return grokking_delay(self._steps, train, test, self.train_threshold, self.test_threshold)

    def _effects(
        self, curves: dict[str, np.ndarray], steps: dict[str, np.ndarray], overfitted: np.ndarray
    ) -> tuple[list[Hypothesis], list[Effect]]:
        """The hypotheses and what the runs say of each."""
        import numpy as np

        from dynascope.comparison.effect import Hypothesis

        claims = [
            Hypothesis(factor, metric, direction, name, statement)
            for name, factor, metric, direction, statement in _CLAIMS
        ]
        runs = {
            claim.metric: [curves[claim.metric][np.arange(self.seeds), overfitted], curves[claim.metric][:, -1]]
            for claim in claims[1:]
        } | {"step": [steps["train"], steps["test"]]}
        return claims, [claim.compare(runs[claim.metric]) for claim in claims]

    @functools.cached_property
    def _tables(self) -> list[ModularArithmetic]:
        """The table of each seed, with its own split."""
        from dynascope.arguments import require
        from dynascope.tasks.algebra.modular_arithmetic import ModularArithmetic

        self._check()
        tables = [ModularArithmetic(self.operation, self.p, self.train_fraction, seed=seed) for seed in self._seeds]
        require(
            self.operation in ("addition", "subtraction") or all(self.p % k for k in range(2, self.p)),
            f"p is {self.p}, which has no discrete logarithms for all numbers",
            argument="p",
            value=self.p,
            remedy="choose a prime number",
        )
        require(
            tables[0].train.samples > self.p,
            f"train_fraction is {self.train_fraction}, which trains on {tables[0].train.samples} pairs",
            argument="train_fraction",
            value=self.train_fraction,
            remedy=f"choose one that trains on more pairs than there are classes, {self.p}",
        )
        return tables

    def _check(self) -> None:
        from dynascope.arguments import require, require_positive, require_seed

        require_positive(learning_rate=self.learning_rate)
        require_seed(self.seed)
        for name, known in (
            ("network", ("relu", "quadratic", "transformer")),
            ("loss", ("cross_entropy", "squared")),
        ):
            value = getattr(self, name)
            require(
                value in known,
                f"{name} is {value!r}",
                argument=name,
                value=value,
                remedy=f"choose one of {', '.join(known)}",
            )
        multiple = 4 * _HEADS if self.network == "transformer" else 1
        require(
            self.width >= 1 and self.width % multiple == 0,
            f"width is {self.width}",
            argument="width",
            value=self.width,
            remedy=f"choose a multiple of {multiple}",
        )
        require(
            0 <= self.weight_decay * self.learning_rate < 1,
            f"weight_decay is {self.weight_decay}",
            argument="weight_decay",
            value=self.weight_decay,
            remedy="choose zero or a positive number below 1/learning_rate",
        )
        for name, least in (("steps", 1), ("times", 2), ("seeds", 2)):
            value = getattr(self, name)
            require(value >= least, f"{name} is {value}", argument=name, value=value, remedy=f"choose {least} or more")
        for name in ("train_threshold", "test_threshold"):
            value = getattr(self, name)
            require(
                0 < value <= 1,
                f"{name} is {value}",
                argument=name,
                value=value,
                remedy="choose an accuracy above 0, at most 1",
            )

    @functools.cached_property
    def _networks(self) -> list[Any]:
        """The network of each seed at its start."""
        from dynascope.networks import TwoLayer
        from dynascope.networks.transformer import Transformer

        p, seeds = self.p, self._seeds
        if self.network != "transformer":
            return [TwoLayer(2 * p, self.width, p, activation=self.network, seed=seed) for seed in seeds]
        return [Transformer(p, 2, p, width=self.width // 4, heads=_HEADS, seed=seed) for seed in seeds]

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        import numpy as np

        # More often at first, when most happens.
        return np.unique((self.steps * np.linspace(0, 1, self.times) ** 2).round().astype(int))

    @property
    def _seeds(self) -> range:
        return range(self.seed, self.seed + self.seeds)

    @property
    def _recipe(self) -> Recipe:
        from dynascope.studies.grokking.modular_runs import Recipe

        return Recipe(self.loss, self.learning_rate, self.weight_decay)

    @property
    def _has_unused(self) -> bool:
        """Whether some weights are read by no sample."""
        return self.operation == "division" and self.network != "transformer"

    @property
    def _coordinates(self) -> dict[str, Any]:
        return {"seed": list(self._seeds), "step": self._steps}

    def _about(self) -> dict[str, Any]:
        table = self._tables[0]
        return {
            "task": f"modular {self.operation}, p = {self.p}",
            "description": [
                *table.train.description,
                "Each seed has its own weights and its own split.",
                f"AdamW of rate {self.learning_rate:g} and decay {self.weight_decay:g}, on all training pairs.",
                "Features are the inputs of the last layer on the training samples.",
            ],
            "samples": table.train.samples,
            "network": "transformer" if self.network == "transformer" else f"two-layer {self.network}",
            "scale": 1.0,
        }
