"""Pruning by synaptic flow can compress networks at initialisation further than four other methods."""

from __future__ import annotations

import functools
from typing import Annotated

from annotated_types import Ge

from dynascope.comparison import Claim
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.interventions.synflow import page
from dynascope.studies.interventions.synflow.claims import deciding_claims, pruning_claims
from dynascope.studies.interventions.synflow.experiment import METHODS, NETWORKS, Measured, PrunedNetworks
from dynascope.tasks.data.labelled_images import LabelledImages
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt, Seed


class Synflow(ClaimsStudy):
    """Prunes networks at initialisation by five methods, measures their critical compression, and trains them.

    The compression ρ is the number of weights divided by the number of kept weights. The critical compression of a
    method is the largest ρ up to which every layer keeps at least one weight. No critical compression exceeds ρ_max,
    the compression that leaves one weight per layer. The theory predicts that SynFlow reaches ρ_max exactly, from every
    initialisation. SynFlow computes its scores in many rounds, without data. The other methods prune once: SNIP and
    GraSP use ten images per class, and magnitude and random pruning use no data.

    For each network, three claims compare SynFlow with the other methods. First, SynFlow has the highest critical
    compression. Second, if another method leaves no path from inputs to outputs, SynFlow has a higher accuracy after
    training. Third, averaged over compressions, SynFlow has a higher accuracy than the methods that use data. In the
    residual network, skip connections bypass the blocks, so the prediction does not apply, and only the claims are
    tested. With `--networks residual vgg`, a width of 64 and a path to CIFAR images as `data`, the study is as large as
    in the paper and requires a GPU. For these two networks, the study first times a round and a training step, and
    prints an estimate of the run time.
    """

    data: str = parameter("digits", 'Images: "digits", or the path to labelled images.')
    networks: list[str] = parameter(
        ["dense", "convolutional"],
        'Networks: "dense", "convolutional", "residual" (ResNet-18 with protected shortcuts) or "vgg" (VGG-16).',
        options=NETWORKS,
    )
    compressions: list[Annotated[float, Ge(1)]] = parameter(
        [10.0, 30.0, 100.0, 300.0], "Compressions of the trained networks.", increasing=True
    )
    rounds: Annotated[int, Ge(40)] = parameter(
        100, "Number of rounds of SynFlow. With fewer than 40 rounds, a single round can empty a layer."
    )
    width: PositiveInt = parameter(16, "Number of channels in the first convolution of the residual and VGG networks.")
    samples: Annotated[int, Ge(200)] = parameter(1000, "Number of training images.")
    test_samples: Annotated[int, Ge(200)] = parameter(797, "Maximum number of test images.")
    steps: PositiveInt = parameter(300, "Number of training steps.")
    batch_size: PositiveInt = parameter(50, "Samples per training step.", most="samples")
    learning_rate: PositiveFloat = parameter(3e-3, "Learning rate of Adam.")
    starts: Annotated[int, Ge(2)] = parameter(8, "Number of initialisations of each network.")
    seed: Seed = parameter(0, "Seed of the weights, images and batches.")

    reference = Reference(
        "H. Tanaka, D. Kunin, D. L. K. Yamins, S. Ganguli, Pruning neural networks without any data by iteratively "
        "conserving synaptic flow",
        "2006.05467",
        "Iterative pruning by synaptic flow reaches the maximal critical compression without any data. At high "
        "compression, the networks that it prunes train better than networks pruned by other methods.",
    )
    theory = "maximal critical compression"
    trains = "networks pruned at initialisation"
    flow = "Adam"
    labelled = {"architecture": "networks", "sequential": "_sequential", "compression": "compressions"}
    title = "Pruning by synaptic flow"
    question = "How many weights can be removed before training, and by which rule?"
    figures, meaning = page.figures, page.meaning
    names = {
        "critical_compression": ("critical compression", "1"),
        "synflow_compression": ("critical compression of SynFlow", "1"),
        "maximal_compression": ("compression that leaves one weight per layer", "1"),
        "test_accuracy": ("accuracy on test images", "1"),
        "mean_accuracy": ("mean accuracy on test images", "1"),
        "path_exists": ("share of networks with a path", "1"),
        "rule": ("method", "1"),
        "compression": ("compression", "1"),
    }
    equation = r"S(\theta) = \frac{\partial R}{\partial \theta} \theta, \quad R = 1^\top \prod_l |\theta_l| \, 1"
    minutes = 2.0
    tolerance = curve_tolerance(
        synflow_compression=(1e-9, "both numbers are the same ratio of integers if every layer keeps one weight")
    )
    tiny = {
        **{"networks": ["dense"], "compressions": [30.0, 100.0], "samples": 300, "steps": 60, "starts": 2},
        **{"learning_rate": 1e-2, "rounds": 40},
    }

    def trained(self) -> Values:
        """Measure critical compressions, and train pruned networks."""
        found = self._measured
        axes = ("architecture", "rule", "compression", "seed")
        lowest = found.critical[:, METHODS.index("synflow")].min(axis=-1)
        return {
            **self._of_sequential([lowest[self.networks.index(name)] for name in self._sequential]),
            "critical_compression": (("architecture", "rule", "seed"), found.critical),
            "test_accuracy": (axes, found.accuracy),
            "mean_accuracy": (axes[:-1], found.accuracy.mean(axis=-1)),
            "path_exists": (axes[:-1], found.paths.mean(axis=-1)),
            "loss": (axes, found.loss),
            "rule": ("rule", list(METHODS)),
            "seed": ("seed", list(self._networks.seeds)),
        }

    def exact(self) -> Values:
        """The maximal compression of each network."""
        return {
            "maximal_compression": ("architecture", [self._networks.maximal(each) for each in self.networks]),
            **self._of_sequential([self._networks.maximal(each) for each in self._sequential]),
        }

    def claimed(self, found: Values) -> list[Claim]:
        """Evaluate the claims."""
        return pruning_claims(self.networks, self._measured)

    @property
    def deciding_claims(self) -> tuple[str, ...]:
        """The claims about every network."""
        return deciding_claims(self.networks)

    @property
    def along(self) -> tuple[str, ...]:
        """The axis of the compared compressions, if there are any."""
        return ("sequential",) if self._sequential else ()

    @property
    def _sequential(self) -> list[str]:
        """Names of the networks without skip connections."""
        return [name for name in self.networks if name != "residual"]

    def _of_sequential(self, compressions: list[float]) -> Values:
        return {"synflow_compression": ("sequential", compressions)} if compressions else {}

    @property
    def _task(self) -> LabelledImages:
        return self._networks.images

    @functools.cached_property
    def _networks(self) -> PrunedNetworks:
        return self.part(PrunedNetworks)

    @functools.cached_property
    def _measured(self) -> Measured:
        return self._networks.measure()
