"""Unlearned query and value biases that break the symmetry of attention can help simple optimisers."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Interval

from dynascope.comparison import Claim
from dynascope.studies import ClaimsStudy, Reference, Values, curve_tolerance, parameter
from dynascope.studies.symmetry.symmetry_breaking import page
from dynascope.studies.symmetry.symmetry_breaking.cells import ATTENTION, Cells, Measured
from dynascope.studies.symmetry.symmetry_breaking.claims import CHANCE, breaking_claims, deciding_claims
from dynascope.studies.symmetry.symmetry_breaking.optimizers import OPTIMIZERS, SIMPLE
from dynascope.tasks import TextTask, python_documentation, text_task
from dynascope.tasks.data.read_text import read_text
from dynascope.theory import papers
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

_HELD_OUT = 0.1
_PUBLISHED = {"width": 768, "heads": 12, "blocks": 12, "context": 512, "target_loss": 2.0}


class SymmetryBreaking(ClaimsStudy):
    """Trains small language models with intact and with broken symmetry of their attention, by several optimisers.

    An invertible matrix can be moved between the queries and the keys of a head, or between its values and its outputs,
    without any effect on the outputs. To break this symmetry, every training step draws biases of queries and values,
    shared by all heads and tokens, that are not learned. The other networks have intact symmetry. For each optimiser,
    with intact and with broken symmetry, the same number of short runs chooses the learning rate with the lowest
    held-out loss.

    The networks predict the next character of a text. They are compared by their held-out loss and by the alignment of
    their keys with the mean query bias, separately for letters, digits, space and punctuation. Further networks, with
    learning rates that are tuned in the same way, learn to answer questions about chains of implications, such as
    "b>c,a>b:a>c?"; the test questions include chains that are longer than all chains in training.

    Four kinds of claims decide the verdict. With broken symmetry, SGD and energy-conserving descent (ECD) reach a lower
    loss; their gap to AdamW and SOAP narrows; they answer more questions; and the keys of each class are aligned with
    the mean query bias, in some head, more than with random directions. As a check, rotations of all heads that do not
    change the mean biases must not change the loss of a trained network. A claim about questions is undecided if no
    network answers better than guessing. Confidence intervals include the variation between initialisations, but not
    between texts. The paper trains networks of 124 million parameters for many more steps; `--paper` sets their sizes.
    """

    text: str = parameter("", "Path of a text file in UTF-8; empty for the documentation of the Python library.")
    characters: Annotated[int, Ge(1000)] = parameter(200_000, "Maximum number of characters of the text.")
    optimizers: list[str] = parameter(list(OPTIMIZERS), "Optimisers.", options=list(OPTIMIZERS))
    context: Annotated[int, Ge(2)] = parameter(32, "Number of characters from which the next one is predicted.")
    width: PositiveInt = parameter(32, "Width of the residual stream.")
    heads: PositiveInt = parameter(4, "Number of attention heads per block, a divisor of the width.")
    blocks: PositiveInt = parameter(2, "Number of transformer blocks.")
    batch_size: PositiveInt = parameter(32, "Windows of text, or questions, per training step.")
    steps: PositiveInt = parameter(400, "Number of training steps on the text.")
    tuning_steps: PositiveInt = parameter(
        150, "Number of training steps of the runs that choose a learning rate for the text."
    )
    question_steps: PositiveInt = parameter(
        500, "Number of training steps on questions, also of the runs that choose a learning rate for them."
    )
    target_loss: PositiveFloat = parameter(
        1.0, "Target loss F₀ of ECD on the text in nats, below every loss that a network reaches."
    )
    lengths: list[Annotated[int, Interval(ge=1, le=6)]] = parameter(
        [1, 2, 3], "Numbers of implications per chain in training.", increasing=True
    )
    longer: Annotated[int, Interval(ge=2, le=7)] = parameter(
        4, "Number of implications per chain in questions that are not trained on, above all lengths."
    )
    seeds: Annotated[int, Ge(2)] = parameter(8, "Number of initialisations.")
    seed: Seed = parameter(0, "Seed of the initial weights, the batches and the questions.")
    paper: bool = parameter(
        False,
        "Whether to use the paper's width 768, 12 heads, 12 blocks, context 512 and target loss 2 instead, which "
        "requires a GPU and a long text.",
    )

    reference = Reference.of(
        papers.BROKEN_ATTENTION,
        "Query and value biases that are drawn for every batch and not learned break the symmetry of attention. They "
        "narrow the gap between simple and adaptive optimisers, improve logical reasoning, and amplify classes of "
        "tokens in individual heads.",
    )
    title = "Broken symmetry in attention"
    question = "Do simple optimisers learn better if biases break the symmetry of attention?"
    figures, meaning = page.figures, page.meaning
    equation = r"q = W_Q x + b_Q, \quad v = W_V x + b_V, \quad b = m + s \odot \epsilon"
    minutes = 14.0
    task = "next characters of a text, and questions about implications"
    notes = (
        "Windows of {context} characters; a tenth of the windows is held out.",
        "The loss is the cross-entropy in nats.",
    )
    trains = "transformers with intact and with broken symmetry"
    flow = "{optimizers}, with minibatches of {batch_size}"
    theory = "rotations of attention heads"
    along = ("optimizer", "attention")
    tolerance = curve_tolerance(rotated_loss=(1e-9, "rotations are exact symmetries; only rounding remains"))
    checks = ("rotated_loss", "rotated_loss_maximum")
    labelled = {
        **{"optimizer": "optimizers", "attention": lambda _: list(ATTENTION), "token_class": "_classes"},
        **{"run": lambda study: list(range(study.seed, study.seed + study.seeds))},
    }
    names = {
        "optimizer": ("optimiser", "1"),
        "attention": ("symmetry of attention", "1"),
        "token_class": ("class of characters", "1"),
        "trial": ("number of the tuning run, by increasing learning rate", "1"),
        "tuned_rate": ("tuned learning rate", "1"),
        "tuning_loss": ("held-out loss of the tuning run", "nats"),
        "loss": ("held-out loss", "nats"),
        "mean_loss": ("mean held-out loss", "nats"),
        "known_accuracy": ("accuracy on chains of known lengths", "1"),
        "longer_accuracy": ("accuracy on longer chains", "1"),
        "mean_known_accuracy": ("mean accuracy on chains of known lengths", "1"),
        "mean_longer_accuracy": ("mean accuracy on longer chains", "1"),
        "alignment": ("alignment of keys beyond random directions", "1"),
        "mean_alignment": ("mean alignment of keys beyond random directions", "1"),
        "rotated_loss": ("loss with rotated heads, divided by the loss before", "1"),
        "run": ("seed", "1"),
    }
    tiny = {
        **{"characters": 20_000, "optimizers": ["SGD"], "context": 8, "width": 8, "heads": 2, "blocks": 1},
        **{"steps": 20, "tuning_steps": 10, "question_steps": 20, "seeds": 2, "lengths": [1], "longer": 2},
    }
    tiny_limits = "Networks that are trained for so few steps differ too little to decide the claims."

    def check(self) -> None:
        """Require heads that divide the width, a longer test chain, and an optimiser covered by the claims."""
        self.require(self.width % self.heads == 0, "heads", "choose a divisor of width", beside="width")
        remedy = "choose a number above all lengths"
        self.require(self.longer > max(self.lengths), "longer", remedy, beside="lengths")
        self.require(set(SIMPLE) & set(self.optimizers), "optimizers", f"add {' or '.join(SIMPLE)}")

    @functools.cached_property
    def setting(self) -> SymmetryBreaking:
        """This study, or the study with the paper's sizes if `paper` is set."""
        return dataclasses.replace(self, **_PUBLISHED, paper=False) if self.paper else self

    def parameters(self) -> dict[str, Any]:
        """The fields, with the paper's sizes if `paper` is set."""
        return dataclasses.asdict(self.setting) | {"paper": self.paper}

    def about(self) -> Values:
        """Attributes that describe the task and the network, with the paper's sizes if `paper` is set."""
        return self.setting.about() if self.paper else super().about()

    def trained(self) -> Values:
        """Tune, train and measure every optimiser with intact and with broken symmetry."""
        found = self._measured
        runs = ("optimizer", "attention", "run")
        return {
            "tuned_rate": (runs[:2], found.tuned_rate),
            "tuning_loss": ((*runs[:2], "trial"), found.tuning_loss),
            "loss": (runs, found.test_loss),
            "known_accuracy": (runs, found.known_accuracy),
            "longer_accuracy": (runs, found.longer_accuracy),
            "alignment": ((*runs, "token_class"), found.alignment),
            "rotated_loss": (runs[:2], found.rotated_loss),
            "mean_loss": (runs[:2], found.test_loss.mean(axis=2)),
            "mean_known_accuracy": (runs[:2], found.known_accuracy.mean(axis=2)),
            "mean_longer_accuracy": (runs[:2], found.longer_accuracy.mean(axis=2)),
            "mean_alignment": (("attention", "token_class"), found.alignment.mean(axis=(0, 2))),
            "trial": ("trial", np.arange(1, found.tuning_loss.shape[-1] + 1)),
        }

    def exact(self) -> Values:
        """The loss of a network with rotated heads, relative to the loss before."""
        return {"rotated_loss": (("optimizer", "attention"), np.ones((len(self.optimizers), len(ATTENTION))))}

    def claimed(self, found: Values) -> Sequence[Claim]:
        """Evaluate the claims."""
        text = self._text
        size, labels = text.vocabulary.size, text.test.labels
        counts = np.bincount(np.ravel(text.train.labels), minlength=size) + 1.0
        untrained = float(np.mean(-np.log(counts / counts.sum())[labels]))
        return breaking_claims(self._measured, self.optimizers, self._classes, untrained)

    @property
    def deciding_claims(self) -> tuple[str, ...]:
        """All claims."""
        return deciding_claims(self.optimizers, self._classes)

    @property
    def _classes(self) -> list[str]:
        return list(self._cells.classes)

    @functools.cached_property
    def _text(self) -> TextTask:
        text = read_text(Path(self.text))[: self.characters] if self.text else python_documentation(self.characters)
        return text_task(text, self.setting.context, held_out=_HELD_OUT, seed=self.seed)

    @functools.cached_property
    def _cells(self) -> Cells:
        return self.setting.part(Cells, text=self._text)

    @functools.cached_property
    def _measured(self) -> Measured:
        """The measurements; a network that diverged counts as guessing, without aligned keys."""
        found = self._cells.measure()
        guess = np.log(self._text.vocabulary.size)
        return found._replace(
            test_loss=np.nan_to_num(found.test_loss, nan=guess),
            known_accuracy=np.nan_to_num(found.known_accuracy, nan=CHANCE),
            longer_accuracy=np.nan_to_num(found.longer_accuracy, nan=CHANCE),
            alignment=np.nan_to_num(found.alignment, nan=0.0),
        )
