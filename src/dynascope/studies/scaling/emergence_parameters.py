"""With how many neurons a network learns each of its skills, forecast from one skill that is trained alone."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.scaling.skill_needs import SkillNeeds
from dynascope.studies.study import Reference, curve_tolerance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    import xarray as xr

    from dynascope.comparison.effect import Effect, Hypothesis
    from dynascope.tasks import SparseParity
    from dynascope.theory.skills import Need
    from dynascope.theory.skills.training_set import Definition

__all__ = ["EmergenceParameters"]

_DEVIATION = 0.01  # of the weights of networks at the start
_ALONE = 0.5  # widths up to this share of the largest learn one skill alone
_SWAPPED = 0.2  # by how much a rarer skill is the stronger one where the order is lost
_EXACT = (1e-6, "the end of training is known exactly, and training goes on until rounding is all that is left")
_PUBLISHED: Mapping[str, Any] = {
    **{"skills": 5, "bits": 32, "relevant_bits": 3, "exponent": 0.6, "target_scale": 5.0},
    **{"neurons": [*range(1, 11), *range(12, 32, 2)], "learning_rate": 1e-3, "weight_decay": 5e-5},
    **{"steps": 500_000, "batch_size": 4000, "runs": 10},
}


@dataclasses.dataclass(frozen=True)
class EmergenceParameters(SkillNeeds):
    """The strength R_k/S of each skill of multitask sparse parity in networks of N neurons, trained to the end.

    Judged is the model of the theory, f = Σ_k a_k Σ_l B_kl e_kl with N of the features e_kl: N_c for each skill
    g_k = Σ_l e_kl/√N_c, the most frequent skill first. It is trained on all inputs. Skill k must end at the share
    φ = min(max(N/N_c − (k − 1), 0), 1) of its strength (`basis_strength`) and leave the share 1 − φ of its loss
    (`basis_loss`).

    Reported beside it are two-layer ReLU networks of N neurons, trained by Adam with L2 decay on all inputs. N_c is
    calibrated on networks that learn one skill alone, and forecasts the mean strength of every skill, in correlation
    (`strength`) and in loss (`loss_equivalent`), and the number of neurons at which it is half (`half_neurons`; over
    the forecast, `half_neurons_ratio`). Single networks scatter widely, as the most frequent skill does not always come
    first: `out_of_order` is the share of networks in which a rarer skill is clearly stronger. Hypotheses say whether
    the mean over networks is half where the forecast is. At the default fields it is for the rarer skills, up to
    sampling of about 15 %; the most frequent skill needs 1.3 to 1.7 times as many neurons as it does alone.

    Attributes:
        skills: n_s.
        bits: n_b.
        relevant_bits: m, the bits on which each skill depends.
        exponent: α; frequencies of skills fall as k^−(α+1).
        target_scale: S.
        paper: Whether to train the networks of the source instead (37 inputs, 500 000 steps), on a GPU.
        neurons: Numbers of neurons N, increasing. Up to half the last, networks also learn one skill alone.
        learning_rate: Learning rate of Adam.
        weight_decay: Coefficient λ of ½ λ‖θ‖².
        steps: Steps of the networks.
        batch_size: Fresh samples in a step; zero for all inputs in every step.
        runs: Networks of each width.
        features: N_c of the model of the theory.
        seed: Seed of everything that is drawn.
    """

    neurons: list[int] = dataclasses.field(default_factory=lambda: [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16])
    learning_rate: float = 0.01
    weight_decay: float = 5e-5
    steps: int = 8000
    batch_size: int = 0
    runs: int = 16
    features: int = 4
    seed: int = 0

    name: ClassVar[str] = "emergence-parameters"
    resource: ClassVar[str] = "neurons"
    reference: ClassVar[Reference] = Reference(
        paper=SkillNeeds.source,
        arxiv="2404.17563",
        claim="Features go to the skills in the order of their frequency, as many to each as it needs; calibrated on "
        "one skill, this forecasts with how many neurons a network learns the others.",
    )
    along: ClassVar = ("skill",)
    minutes: ClassVar[float] = 2.5
    tolerance: ClassVar = curve_tolerance(basis_strength=_EXACT, basis_loss=_EXACT)
    tiny: ClassVar = {
        **{"skills": 2, "bits": 4, "relevant_bits": 2, "neurons": [1, 2, 6, 8, 16], "steps": 1000, "runs": 2},
        **{"learning_rate": 0.02},
    }

    def observe(self) -> xr.Dataset:
        """Train the model of the theory and the networks, and put the hypothesis to them."""
        import numpy as np

        from dynascope.comparison.effect import report_effects
        from dynascope.record import make_record

        if self.paper:
            return self._published.observe()
        strength, loss = np.moveaxis(np.array([self._descended(count) for count in self.neurons]), 1, 0)
        runs, losses = self._trained(self._parity, self.neurons)
        swapped = runs - np.minimum.accumulate(runs, axis=-1) > _SWAPPED
        claims, effects = self._effects(runs)
        return make_record(
            {
                "basis_strength": (("neurons", "skill"), strength),
                "basis_loss": (("neurons", "skill"), loss),
                **self._observed(runs, losses.mean(axis=1)),
                "strength_spread": (("neurons", "skill"), runs.std(axis=1, ddof=1)),
                "out_of_order": (("neurons",), np.any(swapped, axis=-1).mean(axis=1)),
                **report_effects(claims, effects),
            },
            {**self._coordinates, "hypothesis": [claim.name for claim in claims]},
            attributes={"confidence": 0.95, **self._about()},
        )

    def predict(self) -> xr.Dataset:
        """The law of the model, and with N_c from networks that learn one skill the forecast for all."""
        from dynascope.record import make_record

        if self.paper:
            return self._published.predict()
        exact = self._law(self.features)
        return make_record(
            {
                "basis_strength": (("neurons", "skill"), exact),
                "basis_loss": (("neurons", "skill"), 1 - exact),
                **self._forecast(),
            },
            self._coordinates,
            attributes={
                "theory": "features in the order of the frequency of their skills",
                "reference": self.reference.paper,
                "calibration": "networks that learn one skill alone",
                **self._calibrated(),
                **self._about(),
            },
        )

    # The model of the theory.

    def _descended(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Strength and loss of each skill in the model with N features; the loss over that of the zero function."""
        import numpy as np

        from dynascope.studies.scaling.extended_multilinear import train_extended

        draw = np.random.default_rng([self.seed, 2])
        features, sign = self._basis
        present = np.arange(features.size // len(sign)).reshape(self.skills, -1) < count
        inputs, shares = features * present[:, None], np.sqrt(self.skills * self._parity.frequencies)
        blocks = np.zeros((self.skills, len(sign), self.skills, self.features))
        blocks[np.arange(self.skills), :, np.arange(self.skills)] = shares[:, None, None] * inputs
        coefficients = train_extended(
            # As many rows for every skill, each times the root of the weight of its loss.
            blocks.reshape(-1, self.skills * self.features),
            self.target_scale * np.outer(shares, sign).ravel(),
            np.abs(draw.normal(size=(self.skills, self.features))),
            target_scale=self.target_scale,
            steps=int(400 * np.sqrt(self.features) / self._parity.frequencies[-1]),
        )
        values = np.einsum("knl,kl->kn", inputs, coefficients) / self.target_scale
        return np.mean(values * sign, axis=1), np.mean((values - sign) ** 2, axis=1)

    @functools.cached_property
    def _basis(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each skill N_c orthonormal functions e_l of some bits, with Σ_l e_l/√N_c its parity, and the parity."""
        import numpy as np

        draw = np.random.default_rng([self.seed, 1])
        bits = np.arange(2 ** (self.relevant_bits + int(np.ceil(np.log2(self.features)))))
        sign = 1.0 - 2.0 * (np.bitwise_count(bits & (2**self.relevant_bits - 1)) % 2)

        def orthonormal(first: np.ndarray) -> np.ndarray:
            others = draw.normal(size=(len(first), self.features - 1))
            found = np.linalg.qr(np.column_stack([first, others]))[0]
            return found * np.sign(found[0, 0] * first[0])

        functions = [
            np.sqrt(len(bits)) * orthonormal(sign) @ orthonormal(np.ones(self.features)).T for _ in range(self.skills)
        ]
        return np.array(functions), sign

    # The networks.

    def _trained(self, parity: SparseParity, widths: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Strength R/S and loss over ½ S² of every skill, shape (widths, networks, skills)."""
        import numpy as np

        from dynascope.flows import descend
        from dynascope.studies.scaling.parity_networks import SkillReading

        names = ("strength", "skill_loss")
        record = descend(
            [self._network(parity, width, widths[-1], run) for width in widths for run in range(self.runs)],
            parity if self.batch_size else parity.expectation(),
            steps=self.steps,
            learning_rate=self.learning_rate,
            optimizer=_decayed(self.weight_decay),
            batch_size=self.batch_size or None,
            record_steps=[self.steps],
            statistics={name: (SkillReading(parity, name), ("skill",)) for name in names},
            # The samples by which strengths are estimated are those of zero.
            seed=self.seed + 1,
        )
        shape = (len(widths), self.runs, parity.skills)
        strength, loss = (record[name].to_numpy()[:, -1].astype(np.float64).reshape(shape) for name in names)
        return strength, loss

    def _network(self, parity: SparseParity, width: int, most: int, run: int) -> Any:
        """A network of N neurons among more without weights, which get no gradient, so that all have one shape."""
        import equinox as eqx
        import numpy as np

        from dynascope.studies.scaling.parity_networks import gaussian_network

        seed = int(np.random.default_rng([self.seed, parity.skills, width, run]).integers(2**31))
        network = gaussian_network((parity.input_dimension, most, 1), _DEVIATION, seed)
        present = (np.arange(most) < width).astype(np.float32)
        return eqx.tree_at(
            lambda network: (*network.weights, network.biases[0]),
            network,
            (network.weights[0] * present, network.weights[1] * present[:, None], network.biases[0] * present),
        )

    def _alone(self) -> tuple[list[int], np.ndarray, np.ndarray]:
        alone = dataclasses.replace(self._parity, skills=1)
        widths = [count for count in self.neurons if count <= _ALONE * self.neurons[-1]]
        strength, loss = self._trained(alone, widths)
        return widths, strength[..., 0].mean(axis=1), loss[..., 0].mean(axis=1)

    def _calibrate(self, amounts: list[int], strength: np.ndarray, definition: Definition) -> Need:
        from dynascope.theory.skills import calibrate_parameters

        return calibrate_parameters(amounts, strength, definition=definition)

    def _law(self, needed: float, definition: Definition = "correlation") -> np.ndarray:
        from dynascope.theory.skills import parameter_emergence

        return parameter_emergence(self.neurons, self._parity.skills, needed, definition=definition)

    @property
    def _forecast_half(self) -> np.ndarray:
        import numpy as np

        return self._needs["correlation"].needed * (np.arange(self.skills) + 0.5)

    def _effects(self, runs: np.ndarray) -> tuple[list[Hypothesis], list[Effect]]:
        """Whether the strength of a skill is another than one half where that is forecast, within `neurons`."""
        import numpy as np

        from dynascope.comparison.effect import Hypothesis

        half = self._forecast_half
        inside = np.flatnonzero((half >= self.neurons[0]) & (half <= self.neurons[-1])).tolist()
        claims = [
            Hypothesis(
                factor="network instead of forecast",
                metric=f"strength of skill {k + 1} where a half is forecast",
                direction=0,
                name=f"skill {k + 1}",
                statement="Neurons go to skills in the order of their frequency, as many to each as to one alone.",
            )
            for k in inside
        ]
        reached = [[np.interp(half[k], self.neurons, run[:, k]) for run in np.moveaxis(runs, 1, 0)] for k in inside]
        effects = [claim.compare([np.full(self.runs, 0.5), each]) for claim, each in zip(claims, reached, strict=True)]
        return claims, effects

    # The fields.

    def _check(self, parity: SparseParity) -> None:
        import numpy as np

        from dynascope.arguments import (
            require,
            require_array,
            require_between,
            require_integer,
            require_positive,
            require_seed,
        )

        require_seed(self.seed)
        require_positive(learning_rate=self.learning_rate)
        require_integer(steps=self.steps, features=self.features)
        require_integer(least=2, runs=self.runs)
        require_integer(least=0, batch_size=self.batch_size)
        require_between(0, float("inf"), weight_decay=self.weight_decay)
        widths = require_array("neurons", self.neurons, (None,))
        require(
            bool(
                np.sum(widths <= _ALONE * widths.max(initial=0)) >= 2
                and widths[0] >= 1
                and np.all(widths == np.floor(widths))
                and np.all(np.diff(widths) > 0)
            ),
            f"neurons is {self.neurons}",
            argument="neurons",
            value=self.neurons,
            remedy="give increasing whole numbers, at least two of them up to half the last",
        )
        require(
            widths[0] < self.skills * self.features,
            f"{self.skills} skills of {self.features} features are known to {widths[0]:g} neurons",
            argument="features",
            value=self.features,
            remedy="choose more, or fewer neurons to begin with",
        )
        require(
            self.batch_size > 0 or parity.has_expectation,
            f"batch_size is {self.batch_size} and bits {self.bits}",
            argument="batch_size",
            value=self.batch_size,
            remedy="choose how many fresh samples to draw, or at most 16 bits",
        )

    @functools.cached_property
    def _published(self) -> EmergenceParameters:
        return dataclasses.replace(self, **_PUBLISHED, paper=False)

    @property
    def _coordinates(self) -> dict[str, Any]:
        return {"neurons": self.neurons, "skill": self._labels}

    def _about(self, *sentences: str) -> dict[str, Any]:
        return super()._about(
            f"{self.runs} networks of each number of neurons, {self.steps} steps of Adam.",
            f"The model of the theory needs {self.features} features for a skill.",
            *sentences,
        )


@functools.cache
def _decayed(weight_decay: float) -> Callable[[Any], Any]:
    """Adam on the loss with ½ λ‖θ‖² added, which is what PyTorch's Adam does with its weight decay."""
    import optax

    def adam_with_decay(learning_rate: Any) -> Any:
        return optax.chain(optax.add_decayed_weights(weight_decay), optax.adam(learning_rate))

    return adam_with_decay
