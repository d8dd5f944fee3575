"""Deep linear networks: lazy or from saddle to saddle, by how the initial variance falls with the width."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.study import Reference, Study, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.tasks import Task

__all__ = ["DeepSaddles"]

_MOMENTS = (0.03, "the moments of a finite number of random networks scatter by a percent or two")
_PLATEAU = (0.03, "a plateau is not quite reached from a start of finite size")


@dataclasses.dataclass(frozen=True)
class DeepSaddles(Study):
    """Networks x W₁ ⋯ W_L with weights of variance width^−γ, at the start and in training on whitened inputs.

    At the start: the exponents with which the output variance and the tangent kernel scale with the width, fitted to
    random networks for every depth and γ; `_error` is the standard error of the fit. They are those of a transition at
    γ = 1, beyond which the kernel vanishes and the network starts near the saddle at the origin.

    In training there: (i) aligned layers, whose modes are known in closed form: `mode_strength`, `loss` and
    `learned_rank`, Σ sᵢ/σᵢ; (ii) random layers at each of `training_gammas`: `plateau_rank` and `plateau_loss`, the
    learned rank and the loss halfway between jumps, for the largest γ, which should be 0, 1, 2, … and those of the best
    maps of that rank (the paper's conjecture); and `escape_slope`, how the time of the first jump grows with 1/scale,
    over theory (dt/dlog for two layers, dlog t/dlog beyond). The prefactor of that time depends on the random start.

    Attributes:
        depths: Numbers of layers for which the start is measured.
        gammas: γ at which the start is measured.
        widths: Hidden widths to which the exponents are fitted.
        draws: Number of random networks for each depth, γ and width.
        depth: L ≥ 2 of the networks that are trained.
        width: Hidden width of the random networks that are trained.
        training_gammas: γ > 1 at which they start, two or more; with more layers plateaus last ever longer, as
            width^((γ − 1)(L/2 − 1)).
        singular_values: σᵢ of the target map, which falls from one to the next.
        times: Number of times at which both are recorded.
        seed: Seed of all random networks.
    """

    depths: list[int] = dataclasses.field(default_factory=lambda: [2, 3, 4])
    gammas: list[float] = dataclasses.field(default_factory=lambda: [0.75, 1.0, 1.25, 1.75])
    widths: list[int] = dataclasses.field(default_factory=lambda: [32, 64, 128, 256])
    draws: int = 60
    depth: int = 3
    width: int = 30
    training_gammas: list[float] = dataclasses.field(default_factory=lambda: [3.0, 4.0, 5.0])
    singular_values: list[float] = dataclasses.field(default_factory=lambda: [4.0, 2.0, 1.0])
    times: int = 2000
    seed: int = 0

    name: ClassVar[str] = "deep-saddles"
    reference: ClassVar[Reference] = Reference(
        paper="A. Jacot, F. Ged, B. Şimşek, C. Hongler, F. Gabriel, Saddle-to-Saddle Dynamics in Deep Linear Networks: "
        "Small Initialization Training, Symmetry, and Sparsity",
        arxiv="2106.15933",
        claim="With weights of variance width^−γ, deep linear networks turn at γ = 1 from lazy training to waiting at "
        "saddles of rank 0, 1, 2, …, the longer the deeper they are.",
    )
    minutes: ClassVar[float] = 0.5
    tolerance: ClassVar = curve_tolerance(
        **dict.fromkeys(
            ("loss", "mode_strength", "learned_rank"),
            (1e-5, "the theory is exact, and long plateaus add up the solver's error of 1e-10 for each step"),
        ),
        output_variance_exponent=_MOMENTS,
        kernel_exponent=_MOMENTS,
        plateau_rank=_PLATEAU,
        plateau_loss=_PLATEAU,
        escape_slope=(0.04, "the time spent on the jump itself is left out of the leading order"),
    )
    tiny: ClassVar = {
        "depths": [2, 3],
        "gammas": [0.75, 1.5],
        "widths": [16, 64, 256],
        "width": 12,
        "training_gammas": [4.0, 6.0],
        "singular_values": [3.0, 1.0],
        "times": 600,
    }

    def observe(self) -> xr.Dataset:
        """Draw random networks, and train aligned and random ones by gradient flow."""
        import numpy as np

        from dynascope.record import make_record

        strengths, loss = self._train(self._aligned_layers(), [1.0])
        random, random_loss = self._train(self._random_layers(), self._scales)
        ranks = np.sum(random / self._targets, axis=-1)
        jumps = [self._jump_times(each) for each in ranks]
        middles = np.convolve([0.0, *jumps[-1]], [0.5, 0.5], "valid")
        variables = {
            "loss": (("time",), loss[0]),
            "mode_strength": (("time", "mode"), strengths[0]),
            "learned_rank": (("time",), np.sum(strengths[0] / self._targets, axis=-1)),
            "random_loss": (("scale", "time"), random_loss),
            "random_learned_rank": (("scale", "time"), ranks),
            "plateau_rank": (("level",), np.interp(middles, self._times, ranks[-1])),
            "plateau_loss": (("level",), np.interp(middles, self._times, random_loss[-1])),
            "log_escape_time": (("scale",), np.log10([each[0] for each in jumps])),
            "escape_slope": ((), self._escape_slope(np.array([each[0] for each in jumps]))),
        }
        coordinates = {**self._coordinates, "scaling_parameter": self.widths, "scale": self._scales}
        return make_record(variables | self._measured_start(), coordinates, attributes=self._about())

    def predict(self) -> xr.Dataset:
        """Closed forms of the aligned modes, and the exponents, ranks and levels of the paper."""
        import jax
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.deep_modes import escape_time, initialisation_exponents, strength_at

        targets = self._targets
        with jax.enable_x64(True):
            path = jax.device_get(strength_at(self._times[:, None], targets, self._initial_strength, depth=self.depth))
            escapes = np.asarray(escape_time(targets[0], self._scales**self.depth, depth=self.depth))
        exponents = [initialisation_exponents(depth, gamma) for depth, gamma in self._starts]
        left = [np.sum(targets[rank:] ** 2) / 2 for rank in range(len(targets))]
        variables = {
            "loss": (("time",), np.sum(path.residual**2, axis=1) / 2),
            "mode_strength": (("time", "mode"), path.strength),
            "learned_rank": (("time",), np.sum(path.strength / targets, axis=1)),
            "plateau_rank": (("level",), np.arange(float(len(targets)))),
            "plateau_loss": (("level",), left),
            "escape_slope": ((), self._escape_slope(escapes)),
            "output_variance_exponent": (("architecture",), [float(each.output_variance) for each in exponents]),
            "kernel_exponent": (("architecture",), [float(each.kernel) for each in exponents]),
            "regime": (("architecture",), [str(each.regime) for each in exponents]),
        }
        attributes = {"theory": "deep modes", "reference": self.reference.paper, **self._about()}
        return make_record(variables, self._coordinates, attributes=attributes)

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> xr.DataTree:
        """Compare what does not run over time as if it were the same at all times."""
        from dynascope.comparison import compare

        still = [
            name
            for name, values in predicted.data_vars.items()
            if name in observed and "time" not in values.dims and values.dtype.kind == "f"
        ]

        def everywhere(record: xr.Dataset) -> xr.Dataset:
            return record.assign({name: record[name].expand_dims(time=record["time"]) for name in still})

        tree = compare(everywhere(observed), everywhere(predicted), attributes=self.attributes())
        residual = tree["residual"].to_dataset()
        once = {f"{name}_residual": residual[f"{name}_residual"].isel(time=0, drop=True) for name in still}
        for side, record in (("observed", observed), ("predicted", predicted), ("residual", residual.assign(once))):
            tree[side].dataset = record
        return tree

    def _train(self, weights: list[np.ndarray], scales: Any) -> tuple[np.ndarray, np.ndarray]:
        """Strengths of the target's modes, shape (scales, times, modes), and the loss."""
        import equinox as eqx
        import numpy as np

        from dynascope.flows import gradient_flow
        from dynascope.networks import DeepLinear

        frame = DeepLinear([weights[0].shape[0], *(each.shape[1] for each in weights)])
        network = eqx.tree_at(lambda network: network.weights, frame, tuple(weights))
        run = gradient_flow(
            network,
            self._task,
            duration=float(self._times[-1]),
            save=self._times,
            scale=list(scales),
            statistics={"mode_strength": (_diagonal, ("mode",))},
            relative_tolerance=1e-10,
            # At the end steps are as short as on a jump, and there is nothing left to see.
            loss_target=1e-18 * float(np.sum(self._targets**2)),
        )
        return run["mode_strength"].to_numpy(), run["loss"].to_numpy()

    @functools.cached_property
    def _task(self) -> Task:
        """Whitened inputs, and targets whose modes are the coordinates; by symmetry of the start that is any basis."""
        import numpy as np

        from dynascope.tasks import Task

        modes = len(self._targets)
        inputs = np.sqrt(modes) * np.eye(modes)
        return Task(inputs, inputs * self._targets, name="whitened inputs")

    def _aligned_layers(self) -> list[np.ndarray]:
        import numpy as np

        modes = len(self._targets)
        return self.depth * [self._initial_strength ** (1 / self.depth) * np.eye(modes)]

    def _random_layers(self) -> list[np.ndarray]:
        """Weights of unit variance, which the scale width^(−γ/2) multiplies."""
        import numpy as np

        modes = len(self._targets)
        draw = np.random.default_rng([self.seed, 1])
        sizes = [modes, *(self.depth - 1) * [self.width], modes]
        return [draw.normal(size=shape) for shape in itertools.pairwise(sizes)]

    def _jump_times(self, ranks: np.ndarray) -> np.ndarray:
        """When the learned rank passes ½, 1½, …."""
        import numpy as np

        from dynascope.errors import DivergenceError

        halves = np.arange(len(self._targets)) + 0.5
        if ranks[-1] <= halves[-1]:
            raise DivergenceError(
                f"a random network has learned a rank of {ranks[-1]:.2g} only",
                time=float(self._times[-1]),
                remedy="choose smaller training_gammas, or another seed",
            )
        # Where it first does: a random start may come back a little.
        after = np.array([int(np.argmax(ranks > half)) for half in halves])
        share = (halves - ranks[after - 1]) / (ranks[after] - ranks[after - 1])
        return self._times[after - 1] + share * (self._times[after] - self._times[after - 1])

    def _escape_slope(self, times: np.ndarray) -> float:
        """The slope of the escape time between the two smallest scales, over what homogeneity says."""
        import numpy as np

        contrast = np.log(self._scales[-2] / self._scales[-1])
        if self.depth == 2:
            return float(self._targets[0] * (times[-1] - times[-2]) / contrast)
        return float(np.log(times[-1] / times[-2]) / contrast / (self.depth - 2))

    def _measured_start(self) -> dict[str, Any]:
        import numpy as np

        from dynascope.studies.linear_networks.random_linear import fitted_exponent, initial_moments

        widths = np.asarray(self.widths, float)
        moments = [
            [
                initial_moments(depth, width, gamma, self.draws, np.random.default_rng([self.seed, 2, index, width]))
                for width in self.widths
            ]
            for index, (depth, gamma) in enumerate(self._starts)
        ]
        variance, kernel = np.moveaxis(np.array(moments), 2, 0)
        variables: dict[str, Any] = {
            "log_output_variance": (("architecture", "scaling_parameter"), np.log10(variance)),
            "log_kernel": (("architecture", "scaling_parameter"), np.log10(kernel)),
        }
        for name, values in (("output_variance", variance), ("kernel", kernel)):
            exponents, errors = zip(*(fitted_exponent(widths, each) for each in values), strict=True)
            variables[f"{name}_exponent"] = (("architecture",), list(exponents))
            variables[f"{name}_exponent_error"] = (("architecture",), list(errors))
        return variables

    @functools.cached_property
    def _targets(self) -> np.ndarray:
        import numpy as np

        from dynascope.arguments import require, require_array

        targets = require_array("singular_values", self.singular_values, (None,))
        require(
            len(targets) > 1 and targets[-1] > 0 and bool(np.all(np.diff(targets) < 0)),
            f"singular_values is {self.singular_values}",
            argument="singular_values",
            value=self.singular_values,
            remedy="give two or more positive numbers, the largest first",
        )
        return targets

    @functools.cached_property
    def _scales(self) -> np.ndarray:
        """Standard deviations width^(−γ/2) of the weights, the largest first."""
        import numpy as np

        from dynascope.arguments import require, require_array, require_positive, require_seed

        require_seed(self.seed)
        require_positive(draws=self.draws)
        require(
            self.depth >= 2 and self.width >= 2,
            f"depth is {self.depth} and width {self.width}",
            argument="depth" if self.depth < 2 else "width",
            value=self.depth if self.depth < 2 else self.width,
            remedy="choose two or more",
        )
        gammas = require_array("training_gammas", self.training_gammas, (None,))
        require(
            len(gammas) >= 2 and gammas[0] > 1 and bool(np.all(np.diff(gammas) > 0)),
            f"training_gammas is {self.training_gammas}",
            argument="training_gammas",
            value=self.training_gammas,
            remedy="give two or more increasing numbers above one, where there are saddles to visit",
        )
        return self.width ** (-gammas / 2)

    @property
    def _initial_strength(self) -> float:
        """s₀ of the aligned modes: layers as large as the random ones of the smallest scale, ε = scale·√width."""
        return float((self._scales[-1] * self.width**0.5) ** self.depth)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Equally spaced in their logarithm, until the slowest mode of the smallest start has long been learned."""
        import jax
        import numpy as np

        from dynascope.arguments import require
        from dynascope.theory.deep_modes import escape_time

        require(
            self.times >= 100,
            f"times is {self.times}",
            argument="times",
            value=self.times,
            remedy="choose a hundred or more, so that jumps are seen",
        )
        with jax.enable_x64(True):
            slowest = float(escape_time(self._targets[-1], self._initial_strength, depth=self.depth))
        rise = self._targets[-1] ** -(2 - 2 / self.depth)
        return np.concatenate([[0.0], np.geomspace(0.01 / self._targets[0], 2.5 * slowest + 20 * rise, self.times - 1)])

    @functools.cached_property
    def _starts(self) -> list[tuple[int, float]]:
        from dynascope.arguments import require

        require(
            len(self.widths) >= 3 and self.widths[0] >= 2 and all(a < b for a, b in itertools.pairwise(self.widths)),
            f"widths is {self.widths}",
            argument="widths",
            value=self.widths,
            remedy="give three or more increasing numbers from two",
        )
        require(
            len(self.depths) > 0 and min(self.depths) >= 2 and len(self.gammas) > 0,
            f"depths is {self.depths} and gammas {self.gammas}",
            argument="depths",
            value=self.depths,
            remedy="give one or more depths from two, and one or more γ",
        )
        return list(itertools.product(self.depths, self.gammas))

    @property
    def _coordinates(self) -> dict[str, Any]:
        return {
            "time": self._times,
            "mode": range(1, len(self._targets) + 1),
            "level": range(len(self._targets)),
            "architecture": [f"{depth} layers, γ = {gamma:g}" for depth, gamma in self._starts],
        }

    def _about(self) -> dict[str, Any]:
        return {
            **self._task.attributes(),
            "description": [f"Whitened inputs, and a target map of singular values {self.singular_values}."],
            "network": f"linear of {self.depth} layers",
            "scale": 1.0,
        }


def _diagonal(network: Any) -> Any:
    product = network.weights[0]
    for weight in network.weights[1:]:
        product = product @ weight
    return product.diagonal()
