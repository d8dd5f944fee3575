"""Classes collapse: free features along the exact path of theory, and networks whatever their labels mean."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from dynascope.arguments import require_between, require_integer
from dynascope.comparison import Claim, report_claims
from dynascope.results import Chart
from dynascope.studies import Reference, Study, Values, exact
from dynascope.studies.features.neural_collapse.free_features import train_free_features
from dynascope.studies.features.neural_collapse.networks import NETWORKS, CollapsingNetworks
from dynascope.studies.features.neural_collapse.page import FIGURES, MEANING
from dynascope.studies.features.relabelled_digits import LABELS
from dynascope.studies.fields import choices, count, numbers, positive, seed
from dynascope.theory.features.unconstrained import ClassModes, class_modes, collapse_end, collapse_trajectory

_RANDOM = "100 % random labels"
_LEARNED = 0.99  # of the labels of training, from which on classes are said to collapse
_COLLAPSE = "log₁₀ of the spread within classes, over that between, falls by one or more"
_CHART_OF_NETWORKS = functools.partial(Chart, over="step", places={"architecture": (-1,)})

_MEASURES = _CHART_OF_NETWORKS(
    tuple(f"network_{name}" for name in ("nc1", "nc2_norm", "nc2_angle", "nc3", "nc4")),
    log="xy",
    places={"architecture": (-1,), "run": (0,), "seed": (0,)},
    words=("NC1", "NC2, norms", "NC2, angles", "NC3", "NC4"),
    title="The four measures of collapse",
    y_label="distance from collapse",
    caption="A network on digits. Samples of a class meet: their spread over that of classes (NC1) falls from "
    "{observed.network_nc1[architecture=last][run=first][step=first]:mean} to "
    "{observed.network_nc1[architecture=last][run=first][step=last]:mean} on average over all starts. The means of "
    "classes get equal norms and angles (NC2), the classifier takes their directions (NC3) and decides for the nearest "
    "mean (NC4).",
)
_OF_NETWORKS = (
    _CHART_OF_NETWORKS(
        "network_nc1",
        log="xy",
        y_label="spread within classes over that between them (NC1)",
        caption="The same network, with labels that mean more or less. Its features are bound to its inputs.",
    ),
    _CHART_OF_NETWORKS(
        "network_test_accuracy",
        log="x",
        y_label="accuracy on held-out digits",
        caption="What it knows of digits it has not seen. Random labels teach nothing of these, however they collapse.",
    ),
)
# Of one network, and one kind of labels.
_MEANING_OF_NETWORKS = (
    " In a network on digits (here) the spread of a class over the distance between classes went from "
    "{observed.network_nc1[here][step=first]:mean} to {observed.network_nc1[here][step=last]:mean} on average over "
    "{parameters.starts} starts; in the end {observed.network_accuracy[here][step=last]:mean:percent} of its training "
    "labels were right, and {observed.network_test_accuracy[here][step=last]:mean:percent} of new digits: that samples "
    "collapse is no sign that what is learned is true."
)


class NeuralCollapse(Study):
    """Neural collapse where it is understood, and where it is only seen.

    Judged is the unconstrained feature model, whose features are free parameters, trained by gradient flow. From an
    aligned start: the `loss`, the `mode_strength` of each mode, the distances `class_mean_norm` of the class means from
    their mean, and `nc3` between them and the classifier, at all times. From random small starts: the inner products
    `end_class_mean_gram` and `end_classifier_gram` in the end, and `end_between_class_share`, the share of the variance
    of features that is between classes.

    Judged too are a small convolutional network and a multilayer perceptron on digits, with labels that are classes,
    true or random, by the spread of features within classes over that between them (NC1). It is undecided where less
    than 99 % of the labels were learned: by default so of the convolutional network with random labels. For these, and
    for a regression by one output that decides for the nearest digit, are shown over the steps of training:
    `network_nc1` to `network_nc4` (with a centred classifier), `network_kappa_cka` (zero for minimal features),
    `network_effective_dimension` (features besides the constant), `network_loss`, and the accuracies on the labels of
    training, whose classes are meant throughout, and on the true labels of held-out digits.
    """

    class_sizes: list[int] = numbers(
        [10, 10, 10, 10], "Samples of each class of the free features.", fewest=2, whole=True, different=False
    )
    features: int = count(9, "Number of free features, at least that of the classes.")
    initial_strength: float = positive(
        1e-3, "Singular value of the aligned start's outputs, below those of the targets."
    )
    random_scale: float = positive(
        0.01,
        "Size of the random starts: the Frobenius norm of features and classifier, if both have the rate one, or else "
        "that with which the layers are balanced; at most 0.02.",
        most=0.02,
    )
    feature_rate: float = positive(1.0, "Learning rate of the features.")
    classifier_rate: float = positive(1.0, "Learning rate of the classifier.")
    starts: int = count(3, "Number of random starts, of the free features and of each network, which needs two.")
    times: int = count(200, "Number of times at which the aligned start is recorded.", least=2)
    networks: list[str] = choices(
        NETWORKS, 'Which networks to train on digits, of "convolutional" and "mlp"; may be empty.', NETWORKS, fewest=0
    )
    labels: list[str] = choices(
        LABELS,
        'How digits are labelled, of "true labels", "10 % random labels", "100 % random labels" and "scalar '
        'regression".',
        LABELS,
        fewest=0,
    )
    samples: int = count(
        300, "Number of digits for training; as many others are held out. 50 to 898.", least=50, most=898
    )
    width: int = count(64, "Number of features of the networks.")
    learning_rate: float = positive(5e-3, "Of Adam, for the networks; it falls to zero as a cosine.")
    weight_decay: float = positive(3e-3, "λ > 0 of the term λ‖θ‖²/2 in their loss.")
    steps: int = count(4000, "Number of steps of training.")
    batch_size: int = count(50, "Samples in a step.", most="samples")
    seed: int = seed("Seed of all weights, of the labels and of the batches.")

    reference = Reference.of(
        "D. G. Mixon, H. Parshall, J. Pi, Neural collapse with unconstrained features (arXiv 2011.11619)",
        "Unconstrained features of each class collapse to one point along exact curves, to an end that almost "
        "every small start shares; in networks too classes collapse, whether their labels are true or random.",
        also="; theory in Y. Nam, DPhil thesis (2024), chapter 3",
    )
    along = ("time", "start")
    question = "Why do networks come to see all examples of a class as one and the same?"
    figures = FIGURES
    minutes = 1.0
    theory = "unconstrained feature model"
    task = "one-hot labels of free features, and digits"
    trains = "unconstrained features"
    flow = "gradient flow of free features, and Adam of networks if there are any"
    names = {
        "end_class_mean_gram": ("inner products of the class means, at the end", "1"),
        "end_classifier_gram": ("inner products of the classifiers, at the end", "1"),
    }
    tolerance = exact("loss", "mode_strength", "class_mean_norm", "nc3") | exact(
        *("end_class_mean_gram", "end_classifier_gram", "end_between_class_share"),
        error=1e-3,
        reason="the end differs from that of a vanishing start by the square of its size, at most 0.02",
    )
    tiny = {"class_sizes": [4, 4, 4], "features": 4, "starts": 1, "times": 30, "networks": []}

    def check(self) -> None:
        """Features and a start that suit the classes."""
        require_integer(least=len(self._modes.strength), features=self.features)
        weakest = float(self._modes.strength[-1])
        require_between(0, weakest, open_below=True, initial_strength=self.initial_strength)
        trained = self.networks and self.labels
        self.require(self.starts > 1 or not trained, "starts", "choose two or more, or no networks")

    def trained(self) -> Values:
        """Train the unconstrained features by gradient flow, then the networks by Adam."""
        # The labels of axes come with the values, as a field has the name of what tells them elsewhere.
        networks, measured = self._networks, self._networks.measure()
        sizes = self._sizes(self.initial_strength), self._sizes(self.random_scale**2)
        rates = {"first": self.feature_rate, "second": self.classifier_rate}
        options = {"starts": self.starts, "seed": self.seed, "learning_rate": rates}
        return {
            **train_free_features(self.class_sizes, self.features, *sizes, self._times, **options),
            **measured,
            **(report_claims(self._claims(measured)) if measured else {}),
            "architecture": ("architecture", self.networks),
            "run": ("run", self.labels),
            "seed": ("seed", networks.seeds),
            "step": ("step", networks.recorded),
        }

    def _claims(self, found: Mapping[str, Any]) -> list[Claim]:
        """That each network collapses on each kind of labels, once it has learned them; before, nothing is known."""
        nc1, learned = found["network_nc1"][1], found["network_accuracy"][1][..., -1] >= _LEARNED
        change, claims = np.log10(nc1[..., -1] / nc1[..., 0]), []
        for i, network in enumerate(self.networks):
            for j, labels in enumerate(self.labels):
                statement = f"Classes collapse ({network}, {labels}): {_COLLAPSE}."
                claim = Claim.of_runs(f"{network}, {labels}", statement, change[i, j], most=-1.0)
                own = learned[i, j]
                few = f"{own.sum()} of {own.size} networks learned {100 * _LEARNED:.0f} % of the labels"
                claims.append(claim.if_known(bool(own.all()), few))
        return claims

    @property
    def judged_claims(self) -> tuple[str, ...]:
        """The claims on those networks that are trained, with labels that are classes."""
        classes = [each for each in self.labels if each in LABELS[:3]]
        return tuple(f"{network}, {each}" for network in self.networks for each in classes)

    def exact(self) -> Values:
        """The closed form of the path from the aligned start, and the end that small starts share."""
        rates: Any = {"feature_rate": self.feature_rate, "classifier_rate": self.classifier_rate}
        times, starts = self._times[:-1], (self.starts, 1, 1)
        path = jax.device_get(
            collapse_trajectory(times, self.class_sizes, *self._sizes(self.initial_strength), **rates)
        )
        end = collapse_end(self.class_sizes, **rates)
        return {
            "time": times,
            "loss": path.loss,
            "mode_strength": (("time", "mode"), path.singular_value),
            "class_mean_norm": (("time", "class"), path.class_mean_norm),
            "nc3": path.nc3,
            "end_class_mean_gram": (("start", "class", "target"), np.tile(end.class_mean_gram, starts)),
            "end_classifier_gram": (("start", "class", "target"), np.tile(end.classifier_gram, starts)),
            "end_between_class_share": ("start", np.ones(self.starts)),
        }

    def charts(self) -> tuple[Chart, ...]:
        """With those of the networks, if there are any."""
        return (_MEASURES, *self.figures, *_OF_NETWORKS) if self.networks and self.labels else self.figures

    @property
    def meaning(self) -> str:
        """With the story of the networks, if there are any."""
        if not (self.networks and self.labels):
            return MEANING
        network, kind = self.networks[-1], _RANDOM if _RANDOM in self.labels else self.labels[-1]
        of = _MEANING_OF_NETWORKS.replace("[here]", f"[architecture={network}][run={kind}]")
        return MEANING + of.replace("(here)", f"({network}, {kind})")

    def about(self) -> Values:
        """Both tasks."""
        free = f"{sum(self.class_sizes)} samples in classes of sizes {self.class_sizes}, with one-hot targets."
        none = "No networks were trained: what is claimed of them is not put to the test here."
        digits = f"Networks: {self.samples} digits of 8 × 8 pixels for training, and as many held out."
        return {**super().about(), "description": [free, digits if self.networks else none]}

    @functools.cached_property
    def _modes(self) -> ClassModes:
        return class_modes(self.class_sizes)

    def _sizes(self, strength: float) -> tuple[float, float]:
        """Sizes of features and classifier of this product, if the layers are balanced: their ratio is (η_H/η_W)^½."""
        tilt = (self.feature_rate / self.classifier_rate) ** 0.5
        return (strength * tilt) ** 0.5, (strength / tilt) ** 0.5

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Until the aligned start has long learned its weakest mode; last, until random starts have too."""
        strength, rate = self._modes.strength, (self.feature_rate * self.classifier_rate) ** 0.5
        pace = sum(self.class_sizes) / (2 * rate * strength)
        aligned = np.max(pace * (np.log(strength / self.initial_strength) + 8))
        # No mode starts much below the scale over √n, and none needs more than thirty times its pace to settle.
        random = np.max(pace) * (2 * np.log(sum(self.class_sizes) / self.random_scale) + 30)
        return np.append(np.linspace(0.0, aligned, self.times), max(random, 1.01 * aligned))

    @functools.cached_property
    def _networks(self) -> CollapsingNetworks:
        names = [field.name for field in dataclasses.fields(CollapsingNetworks)]
        return CollapsingNetworks(**{name: getattr(self, name) for name in names})
