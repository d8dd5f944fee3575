"""How many quantities does training leave alone? Laws counted from gradients alone, against closed forms."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynascope.comparison import Claim
from dynascope.flows import gradient_flow
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance
from dynascope.studies.fields import choices, count, positive, seed
from dynascope.studies.symmetry.conservation_counts.page import FIGURES, MEANING
from dynascope.studies.symmetry.formulas import LAWS, SMALL, Formula, drawn
from dynascope.symmetry import Discovery, agreement, discover
from dynascope.tasks import Task
from dynascope.theory import papers
from dynascope.theory.symmetry import LawCount, gradient_flow_charge, two_layer_linear_laws

_LAWS = {name: each.exact for name, each in LAWS.items()}
_MOST = (3, 3, 4)  # outputs, inputs and hidden neurons of linear networks of random sizes
_ROWS = 12  # of inputs from which laws are counted
_SIZES = list(itertools.product(*(range(1, most + 1) for most in _MOST)))
_COUNTED = (0.0, "laws are counted, and so are both exact")
_STEP = 1e-7  # error of a step: closer, solvers creep where a neuron of ReLU is held at its kink
_KEPT = (1e-5, "the solver keeps each step within 1e-7, and training takes about a hundred")


class ConservationCounts(ClaimsStudy):
    """The number of conservation laws of small networks, and of two-layer linear networks of random sizes.

    A law of every loss and all data is constant along the gradient of every output. Such gradients at one point span a
    space, and what is orthogonal to it bounds the number of laws; Lie brackets, which tell where training comes by
    going to and fro on different data, leave over the exact number. Both are found from gradients at random points,
    with nothing known of the network, and judged against closed forms. Independently the explicit charges are found,
    sums of squares and products of weights, and the claims are that there are no laws beside them, and that these are
    the charges that are read off the program of a network. Then each network is trained: that its charges stay is
    checked.
    """

    networks: list[str] = choices(list(_LAWS), "Networks with closed forms.", list(_LAWS))
    sizes: int = count(20, "Number of two-layer linear networks of random sizes.", most=len(_SIZES))
    samples: int = count(50, "Number of samples on which networks are trained.", least=6)
    duration: float = positive(2.0, "Gradient-flow time for which they are trained.", most=20.0)
    seed: int = seed("Seed of the sizes, the weights and the data.")

    reference = Reference.of(
        papers.CONSERVATION,
        "The number of conservation laws of a network is its number of weights less the dimension of the Lie algebra "
        "that its gradients generate, and it is that of the known laws.",
    )
    theory = "number of conservation laws"
    task = "random data"
    told = ("{samples} Gaussian inputs; the targets are the outputs of another network of the kind.",)
    trains = "small networks"
    flow = "gradient flow"
    along = ("architecture", "run", "charge")
    labelled = {"architecture": "networks", "run": "_named_sizes"}
    judged_claims = ("no other laws", "read off the program")
    title = "How many quantities training conserves"
    question = "How many quantities does training leave alone, whatever the data?"
    meaning = MEANING
    figures = FIGURES
    names = {
        "laws": ("conservation laws", "1"),
        "bound": ("directions that gradients at one point leave open", "1"),
        "linear_laws": ("conservation laws of linear networks", "1"),
        "linear_bound": ("directions that gradients at one point leave open, linear networks", "1"),
        "charges": ("explicit charges", "1"),
        "moved": ("distance that training moved the weights, over their norm", "1"),
        "initial_charge": ("charge before training", "1"),
        "final_charge": ("charge after training", "1"),
        "loss": ("loss after training", "1"),
    }
    minutes = 0.7
    tolerance = curve_tolerance(laws=_COUNTED, linear_laws=_COUNTED, linear_bound=_COUNTED, final_charge=_KEPT)
    checks = ("final_charge", "final_charge_maximum")
    tiny = {"networks": ["linear 2-2-2", "ReLU"], "sizes": 3}

    def check(self) -> None:
        """Some law, as none is judged by itself."""
        self.require(any(_LAWS[each] for each in self.networks), "networks", "choose another one besides tanh")

    def trained(self) -> Values:
        """Count laws from gradients, then train, and take the charges before and after."""
        found, linear = list(self._found.values()), [self._counted(each) for each in self._random_sizes]
        trained = [self._trained(name) for name in self.networks]
        ends, moved, losses = (list(each) for each in zip(*trained, strict=True))
        return {
            "laws": ("architecture", [each.laws for each in found]),
            "bound": ("architecture", [each.theta.size - each.ranks[0] for each in found]),
            "charges": ("architecture", [each.charges for each in found]),
            "linear_laws": ("run", [each.exact for each in linear]),
            "linear_bound": ("run", [each.bound for each in linear]),
            "initial_charge": ("charge", self._charges),
            "final_charge": ("charge", np.concatenate(ends)),
            "moved": ("architecture", moved),
            "loss": ("architecture", losses),
        }

    def exact(self) -> Values:
        """The closed forms, and charges that stay."""
        linear = [two_layer_linear_laws(*each) for each in self._random_sizes]
        return {
            "laws": ("architecture", [_LAWS[name] for name in self.networks]),
            "linear_laws": ("run", [each.exact for each in linear]),
            "linear_bound": ("run", [each.bound for each in linear]),
            "final_charge": ("charge", gradient_flow_charge(self.duration, self._charges)),
        }

    def claimed(self, found: Mapping[str, Any]) -> list[Claim]:
        """That laws are charges, and that these are those of the program."""
        total = len(self.networks)
        explicit = sum(a == b for a, b in zip(found["laws"][1], found["charges"][1], strict=True))
        read = [
            agreement(network.symmetries(self._task(name).inputs[:_ROWS]), self._found[name], network.weights).agrees
            for name, network in self._networks.items()
        ]
        no_other = f"In all {total} networks the laws are sums of squares, of products or of weights."
        program = f"In all {total} networks the program shows the same charges as gradients do."
        return [
            Claim("no other laws", no_other, explicit, least=total),
            Claim("read off the program", program, sum(read), least=total),
        ]

    def _trained(self, name: str) -> tuple[np.ndarray, float, float]:
        """The charges after training, the way of the weights over their norm, and the loss."""
        run, end = gradient_flow(
            self._networks[name],
            self._task(name),
            duration=self.duration,
            save=2,
            relative_tolerance=_STEP,
            return_networks=True,
        )
        before, after = self._networks[name].flat, end.flat
        moved = np.linalg.norm(after - before) / np.linalg.norm(before)
        return _charges(self._found[name], after), float(moved), float(run["loss"][-1])

    def _counted(self, sizes: tuple[int, int, int]) -> LawCount:
        """The laws of a linear network of this size, and what gradients at one point leave open."""
        outputs, inputs, width = sizes
        columns = np.arange(_MOST[2]) < width
        # Masks stand for the sizes, so that one program serves all of them.
        used = {
            f"{name} used": (np.arange(_MOST[k]) < n)[:, None] & columns
            for k, (name, n) in enumerate((("out", outputs), ("in", inputs)))
        }
        weights = {"out": np.ones((_MOST[0], _MOST[2])), "in": np.ones((_MOST[1], _MOST[2]))}
        found = discover(_masked, weights | used, np.ones(()), seed=self.seed)
        alive = int((~found.dead).sum())
        return LawCount(alive - found.ranks[0], alive - found.ranks[-1])

    def _task(self, name: str) -> Task:
        network, draw = SMALL[name], np.random.default_rng([self.seed, 1])
        inputs = draw.normal(size=(self.samples, network.entering))
        return Task(inputs, np.asarray(drawn(network, draw)(inputs)))

    @functools.cached_property
    def _networks(self) -> dict[str, Formula]:
        return {name: drawn(SMALL[name], np.random.default_rng(self.seed)) for name in self.networks}

    @functools.cached_property
    def _found(self) -> dict[str, Discovery]:
        return {
            name: discover(each.apply, each.weights, self._task(name).inputs[:_ROWS], seed=self.seed)
            for name, each in self._networks.items()
        }

    @functools.cached_property
    def _charges(self) -> np.ndarray:
        """The charges before training, of all networks one after the other."""
        return np.concatenate([_charges(self._found[name], each.flat) for name, each in self._networks.items()])

    @functools.cached_property
    def _random_sizes(self) -> list[tuple[int, int, int]]:
        """Outputs, inputs and hidden neurons, all different."""
        chosen = np.random.default_rng(self.seed).permutation(len(_SIZES))[: self.sizes]
        return [_SIZES[each] for each in sorted(chosen)]

    @property
    def _named_sizes(self) -> list[str]:
        return [f"{inputs}-{width}-{outputs}" for outputs, inputs, width in self._random_sizes]


def _masked(p: Mapping[str, Any], x: Any) -> Any:
    return (p["out"] * p["out used"]) @ (p["in"] * p["in used"]).T + 0.0 * x


def _charges(found: Discovery, theta: np.ndarray) -> np.ndarray:
    """Q = ½ θᵀGθ + cᵀθ of each generator."""
    return np.einsum("i,kij,j->k", theta, found.generators.matrices, theta) / 2 + found.generators.shifts @ theta
