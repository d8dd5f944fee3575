"""Every optimiser with intact and with broken symmetry: tuned, trained on a text and on questions, and measured."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np

from dynascope.flows import track
from dynascope.networks import QueryValueBiases, Transformer, language_model
from dynascope.studies.symmetry.symmetry_breaking.alignment import alignment
from dynascope.studies.symmetry.symmetry_breaking.keys import keys
from dynascope.studies.symmetry.symmetry_breaking.optimizers import OPTIMIZERS, built
from dynascope.studies.symmetry.symmetry_breaking.rotation import rotated
from dynascope.studies.symmetry.symmetry_breaking.token_classes import token_classes
from dynascope.studies.symmetry.symmetry_breaking.training import TokenTraining
from dynascope.tasks import IMPLICATION_VOCABULARY, Labelled, TextTask, implications

__all__ = ["ATTENTION", "Cells", "Measured"]

ATTENTION = ("intact", "broken")
_OTHER_SEEDS = 1000  # networks and questions for other purposes have other seeds
_TRAINING_QUESTIONS, _TEST_QUESTIONS = 10_000, 2000
_FEW_WINDOWS = 60  # held-out windows for the alignment of keys and for rotated networks
_BIASES = QueryValueBiases()


class Measured(NamedTuple):
    """Measurements by optimiser, attention and seed.

    Attributes:
        tuned_rate: The learning rate with the lowest held-out loss on the text, shape (optimiser, attention).
        tuning_loss: Held-out loss of the tuning runs on the text, shape (optimiser, attention, rate); NaN for a
            diverged run.
        test_loss: Held-out loss, shape (optimiser, attention, seed); NaN for a diverged run, as below.
        known_accuracy: Accuracy on questions with the lengths of the training questions, of the same shape.
        longer_accuracy: Accuracy on questions about longer chains, of the same shape.
        alignment: Largest |A_h| of a head minus the 95 % quantile for random directions, shape (optimiser, attention,
            seed, class).
        rotated_loss: Squared loss of the first network on a few held-out windows after a rotation of its heads,
            divided by the loss before, shape (optimiser, attention).
    """

    tuned_rate: np.ndarray
    tuning_loss: np.ndarray
    test_loss: np.ndarray
    known_accuracy: np.ndarray
    longer_accuracy: np.ndarray
    alignment: np.ndarray
    rotated_loss: np.ndarray


@dataclasses.dataclass(frozen=True)
class Cells:
    """The settings of all cells: pairs of an optimiser, and attention with intact or broken symmetry.

    Attributes:
        text: The text to learn.
        optimizers: Names of the optimisers.
        width: Width of the residual stream.
        heads: Number of heads.
        blocks: Number of blocks.
        batch_size: Windows or questions per step.
        steps: Number of training steps on the text.
        tuning_steps: Number of training steps of each tuning run on the text.
        question_steps: Number of training steps on questions. Tuning runs on questions are as long as the others,
            because all networks guess early in training.
        target_loss: F₀ of energy-conserving descent on the text; on questions, F₀ is zero.
        lengths: Numbers of implications per chain in training.
        longer: Number of implications per chain that is not trained on.
        seeds: Number of initialisations.
        seed: Seed of the first initialisation, of the batches and of the questions.
    """

    text: TextTask
    optimizers: Sequence[str]
    width: int
    heads: int
    blocks: int
    batch_size: int
    steps: int
    tuning_steps: int
    question_steps: int
    target_loss: float
    lengths: Sequence[int]
    longer: int
    seeds: int
    seed: int

    def measure(self) -> Measured:
        """Tune, train and measure every cell."""
        cells = [(name, attention) for name in self.optimizers for attention in ATTENTION]
        found = [self._cell(*each) for each in track(cells, "cells")]
        shape = len(self.optimizers), len(ATTENTION)
        stacked = (np.stack(values) for values in zip(*found, strict=True))
        return Measured(*(each.reshape(*shape, *each.shape[1:]) for each in stacked))

    @functools.cached_property
    def classes(self) -> dict[str, np.ndarray]:
        """The token classes that occur in the windows used for the alignment, as masks over positions."""
        masks = token_classes(self.text.vocabulary)
        found = {name: mask[self._few.inputs.ravel()] for name, mask in masks.items()}
        return {name: mask for name, mask in found.items() if mask.any()}

    @functools.cached_property
    def _few(self) -> Labelled:
        test = self.text.test
        return Labelled(test.inputs[:_FEW_WINDOWS], test.labels[:_FEW_WINDOWS], test.class_names)

    @functools.cached_property
    def _mean_bias(self) -> np.ndarray:
        """The mean bias of the queries; the mean bias of the values is a multiple of it."""
        return _BIASES.means(self.width // self.heads)[0]

    def _cell(self, name: str, attention: str) -> Measured:
        rates, seeds = OPTIMIZERS[name].rates, range(self.seed, self.seed + self.seeds)
        spare = self.seed + _OTHER_SEEDS
        reader = functools.partial(self._reader, attention == "broken")
        answerer = functools.partial(self._answerer, attention == "broken")
        pages, questions = (self.text.train, self.text.test), self._questions[:2]
        tuning = self._training(name, self.tuning_steps, self.target_loss).tune(reader(spare), rates, *pages)
        training = self._training(name, self.steps, self.target_loss)
        text = training.train([reader(seed) for seed in seeds], _best(rates, tuning), *pages)
        training = self._training(name, self.question_steps, 0.0)
        rate = _best(rates, training.tune(answerer(spare), rates, *questions))
        answers = training.train([answerer(seed) for seed in seeds], rate, *questions)
        longer = [self._accuracy_on_longer(network) for network in answers.networks]
        excess = np.array([self._excess(network) for network in text.networks])
        return Measured(
            tuned_rate=np.array(_best(rates, tuning)),
            tuning_loss=tuning,
            test_loss=text.losses,
            known_accuracy=answers.accuracies,
            longer_accuracy=np.where(np.isnan(answers.losses), np.nan, longer),
            alignment=np.where(np.isnan(text.losses)[:, None], np.nan, excess),
            rotated_loss=self._rotated_loss(text.networks[0]),
        )

    def _reader(self, broken: bool, seed: int) -> Transformer:
        """Return an untrained network that predicts the next character of the text."""
        return language_model(
            self.text.vocabulary.size,
            self.text.train.inputs.shape[1],
            width=self.width,
            heads=self.heads,
            blocks=self.blocks,
            broken_symmetry=_BIASES if broken else None,
            seed=seed,
        )

    def _answerer(self, broken: bool, seed: int) -> Transformer:
        """Return an untrained network that answers the questions."""
        return Transformer(
            IMPLICATION_VOCABULARY.size,
            self._questions[0].inputs.shape[1],
            2,
            width=self.width,
            heads=self.heads,
            blocks=self.blocks,
            activation="gelu",
            layer_norm="learned",
            biases=True,
            query_value_biases=_BIASES if broken else None,
            seed=seed,
        )

    def _accuracy_on_longer(self, network: Transformer) -> float:
        longer = self._questions[2]
        return float(np.mean(np.asarray(network(longer.inputs)).argmax(axis=1) == longer.labels))

    def _training(self, name: str, steps: int, target_loss: float) -> TokenTraining:
        return TokenTraining(built(name, target_loss), steps, self.batch_size, self.seed)

    @functools.cached_property
    def _questions(self) -> tuple[Labelled, Labelled, Labelled]:
        """Training questions, test questions of the same lengths, and test questions about longer chains."""
        seed = self.seed + _OTHER_SEEDS
        return (
            implications(self.lengths, _TRAINING_QUESTIONS, longest=self.longer, seed=self.seed),
            implications(self.lengths, _TEST_QUESTIONS, longest=self.longer, seed=seed),
            implications(self.longer, _TEST_QUESTIONS, longest=self.longer, seed=seed + 1),
        )

    def _excess(self, network: Transformer) -> list[float]:
        """For each class, the largest alignment of a head minus the 95 % quantile for random directions."""
        found = keys(network, self._few.inputs)
        values = [alignment(found, self._mean_bias, mask, seed=self.seed) for mask in self.classes.values()]
        return [each.largest - each.quantile for each in values]

    def _rotated_loss(self, network: Transformer) -> np.ndarray:
        """The ratio of the squared losses with and without rotated heads, in double precision."""
        double = jax.tree.map(lambda leaf: leaf.astype(float) if eqx.is_inexact_array(leaf) else leaf, network)
        draw = np.random.default_rng([self.seed, 1])
        with jax.enable_x64(True):
            loss, after = (self._few.loss(each) for each in (double, rotated(double, self._mean_bias, draw)))
        return np.asarray(after / loss)


def _best(rates: Sequence[float], losses: np.ndarray) -> float:
    """Return the learning rate with the lowest loss; runs that diverged have the loss NaN."""
    return rates[int(np.argmin(np.nan_to_num(losses, nan=np.inf)))]
