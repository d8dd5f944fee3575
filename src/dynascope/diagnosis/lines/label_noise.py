"""The line on label noise: whether labels of the reference batch are probably wrong."""

from __future__ import annotations

import dataclasses

import numpy as np

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results.numbers import percent

__all__ = ["label_noise"]

# Chosen on MLPs, CNNs, linear networks and small language models with three sets of seeds, and tested with a fourth.
# Correct labels include tasks that the network learns in stages. Counts for choice and test:
# - correct labels, 537 and 179 runs: clean in 195 and 68, undecided in 342 and 111, noisy in 0 and 0;
# - 10 to 40 % of wrong labels, 363 and 121 runs: noisy in 231 and 87, undecided in 130 and 34, clean in 2 and 0;
# - text, whose labels are ambiguous, 12 and 4 runs: noisy in 1 and 0, undecided in 11 and 4.
# By the share of suspected errors on plateaus alone, 203 and 68 runs with correct labels would be noisy.
_CLEAN, _NOISY = 0.3, 0.4  # share of the errors whose labels are suspected
_LEARNED = 0.4  # labels are judged once this share of the initial errors is gone
_SLOW = 0.2  # on a plateau, less than this share has gone since half the number of steps
_ODDS = 3.0  # a network that contradicts a label gives three quarters of the probability of both to the other class
_LASTING = 0.5  # share of the suspected labels that are still suspected after twice as many steps
_OTHERS = 0.8  # accuracy on the labels that are not suspected
_FEWEST = 3  # rows without such a plateau that show that there is none
_FITTED = 0.97  # a network of higher accuracy on the labels fits wrong labels too
_THEORY = (
    "A network fits the correct labels first and memorises the wrong ones later (Liu et al., arXiv:2007.00151), so it "
    "contradicts the same wrong labels for a long time. A label is suspected if the probability of another class "
    "exceeds the mean probability of this class on the examples that have its label (the confident joint of "
    "Northcutt et al., arXiv:1911.00068). Domain: classification. Ambiguous inputs and rare exceptions that the "
    "network has not learned yet cannot be distinguished from wrong labels."
)
_TOPIC = "label noise"
_VARIABLES = ("reference_accuracy", "suspected_noise", "suspicion", "unsuspected_accuracy", "suspected_class")
_ACTION = (
    "Check some of the examples with the largest losses. If their labels are wrong, correct them, or train with a "
    "robust loss and stop early. If their inputs do not determine the labels, as in text, these errors are inevitable. "
    "If they are exceptions to a rule, train longer."
)
_ACTION_IF_UNDECIDED = "Train longer, with a reference batch that is not in the training data."


@dataclasses.dataclass(frozen=True)
class _Evidence:
    """What the rows after the start of learning and before memorisation show, one value for each row.

    Attributes:
        steps: The steps of the rows.
        right: The accuracy.
        suspects: The share of the labels that are suspected.
        share: The share of the errors whose labels are suspected.
        certain: The share of the errors, less two standard errors.
        odds: How much more probable the other class is than the suspected label, geometric mean.
        lasting: The share of the labels suspected at half the number of steps that are suspected for the same class.
        others: The accuracy on the labels that are not suspected.
        slow: Whether the accuracy rises slowly.
    """

    steps: np.ndarray
    right: np.ndarray
    suspects: np.ndarray
    share: np.ndarray
    certain: np.ndarray
    odds: np.ndarray
    lasting: np.ndarray
    others: np.ndarray
    slow: np.ndarray


def label_noise(run: RunFacts) -> Line:
    """Report whether labels of the reference batch are wrong, by the known flips or by confident learning.

    A network that memorises wrong labels predicts them, so they can no longer be recognised. A network that has just
    begun to learn makes errors on correct labels. Labels are therefore judged in between: after 40 % of the initial
    errors are gone, and before the maximal accuracy.

    Labels are clean if less than 30 % of the errors on a plateau, where the accuracy rises slowly, are suspected
    labels, or if the accuracy rises above 97 % without a plateau. Labels are noisy if at least 40 % of the errors are
    suspected labels, and if a network that still learns does not explain them:

    - The thresholds of confident learning are relative, so a network close to equal probabilities also exceeds them.
      The other class must be at least three times as probable as the suspected label, in the geometric mean.
    - The errors of a network that still learns change, but a wrong label remains suspected until it is memorised. At
      least half of the labels suspected at half the number of steps must still be suspected, for the same class.
    - A network that has learned the classes is right about correct labels: at least 80 % of the other labels.
    - The share of the errors exceeds that of clean labels, 30 %, by at least two standard errors.
    - If the network later fits more than half of the suspected labels, it has either memorised wrong labels or learned
      correct ones, and the line is undecided.
    """
    flipped = run.known("flipped_share")
    if flipped is not None and float(flipped[-1]) > 0:
        share = float(flipped[-1])
        sentence = f"{percent(share, 2)} of the labels of the reference batch are known to be flipped."
        return Line(_TOPIC, "noisy labels", sentence, share, 0.0, _THEORY, _ACTION, weight=2)
    known = [run.known(name) for name in _VARIABLES]
    measured = [each for each in known if each is not None]
    if len(measured) < len(known):
        sentence = (
            'Label noise was not measured: record the probe "fit", with a reference batch of inputs and class labels.'
        )
        return Line(_TOPIC, "not measured", sentence, theory=_THEORY, weight=0)
    steps = measured[0]["step"].to_numpy()
    right, suspects, log_odds, others, classes = (each.sel(step=steps).to_numpy() for each in measured)
    initial = 1 - right[0]
    last_best = len(right) - 1 - right[::-1].argmax()
    learning = (np.arange(len(right)) <= last_best) & (right >= right[0] + _LEARNED * initial) & (right < _FITTED)
    slow = right - np.interp(steps / 2, steps, right) <= _SLOW * initial
    (judged,) = np.nonzero(learning & (steps > steps[0]) & (steps >= 2 * steps[0]))
    errors = 1 - right[judged]
    share = suspects[judged] / errors
    spread = np.sqrt(np.clip(share * (1 - share), 0, None) / (errors * classes.shape[1]))  # of a binomial share
    evidence = _Evidence(
        steps=steps[judged],
        right=right[judged],
        suspects=suspects[judged],
        share=share,
        certain=share - 2 * spread,
        odds=np.exp(log_odds[judged]),
        lasting=_lasting(classes, steps, judged),
        others=others[judged],
        slow=slow[judged],
    )
    return _verdict(evidence, best=float(right.max()))


def _lasting(classes: np.ndarray, steps: np.ndarray, judged: np.ndarray) -> np.ndarray:
    """Return the share of the labels suspected at half the number of steps that are suspected for the same class."""
    before = classes[np.searchsorted(steps, steps[judged] / 2, side="right") - 1]
    same = (before >= 0) & (before == classes[judged])
    return same.sum(axis=1) / np.maximum(1, (before >= 0).sum(axis=1))


def _without_plateau(best: float, rows: int) -> Line:
    if best < _FITTED and rows:
        sentence = f"Label noise cannot be judged: the accuracy ({percent(best)}) rose too quickly to be a plateau."
    elif best < _FITTED:
        sentence = f"Label noise cannot be judged: the network has not learned the classes (accuracy {percent(best)})."
    elif rows < _FEWEST:
        sentence = (
            f"Label noise cannot be judged: the network fits {percent(best)} of the labels, and thus wrong labels too, "
            "and too few earlier rows were recorded. Record more rows early in training."
        )
    else:
        sentence = (
            f"The accuracy rose to {percent(best)} without a plateau, which label noise would cause before the network "
            "memorises wrong labels."
        )
        return Line(_TOPIC, "clean labels", sentence, 0.0, _CLEAN, _THEORY)
    return Line(_TOPIC, "not measured", sentence, theory=_THEORY)


def _verdict(evidence: _Evidence, *, best: float) -> Line:
    learned = (evidence.odds >= _ODDS) & (evidence.lasting >= _LASTING) & (evidence.others >= _OTHERS)
    firm = np.where(learned & (evidence.certain >= _CLEAN), evidence.share, 0)
    if len(firm) and firm[row := _second_largest(firm)] >= _NOISY:
        fitted = best - evidence.right[row] > evidence.suspects[row] / 2
        return _undecided_after_fit(evidence, row, best) if fitted else _noisy(evidence, row)
    if not evidence.slow.any():
        return _without_plateau(best, len(firm))
    (plateau,) = np.nonzero(evidence.slow)
    row = int(plateau[_second_largest(evidence.share[plateau])])
    share = float(evidence.share[row])
    if share < _CLEAN:
        sentence = f"{_found(evidence, row)} (threshold {percent(_CLEAN)})."
        return Line(_TOPIC, "clean labels", sentence, share, _CLEAN, _THEORY)
    return _undecided(evidence, row)


def _second_largest(values: np.ndarray) -> int:
    """Return the place of the second largest value, so that one row does not decide."""
    return int(np.argsort(values)[-min(2, len(values))])


def _found(evidence: _Evidence, row: int) -> str:
    return (
        f"At step {evidence.steps[row]}, {percent(evidence.suspects[row], 2)} of the labels were suspected to be "
        f"wrong, which is {percent(evidence.share[row], 2)} of the number of errors"
    )


def _noisy(evidence: _Evidence, row: int) -> Line:
    sentence = (
        f"{_found(evidence, row)} (threshold {percent(_NOISY)}); either these labels are wrong, or their inputs do not "
        "determine them."
    )
    return Line(_TOPIC, "noisy labels", sentence, float(evidence.share[row]), _NOISY, _THEORY, _ACTION, weight=3)


def _undecided_after_fit(evidence: _Evidence, row: int, best: float) -> Line:
    sentence = (
        f"{_found(evidence, row)}, but the accuracy has since risen from {percent(evidence.right[row])} to "
        f"{percent(best)}: the network has either memorised wrong labels, or learned correct ones late."
    )
    share = float(evidence.share[row])
    return Line(_TOPIC, "undecided", sentence, share, _NOISY, _THEORY, _ACTION_IF_UNDECIDED, weight=2)


def _undecided(evidence: _Evidence, row: int) -> Line:
    odds, lasting, others = (float(each[row]) for each in (evidence.odds, evidence.lasting, evidence.others))
    reasons = (
        (
            odds,
            _ODDS,
            f"the other classes were only {odds:.2g} times as probable as these labels (threshold {_ODDS:g})",
        ),
        (
            lasting,
            _LASTING,
            f"only {percent(lasting)} of the labels suspected at half as many steps were still suspected (threshold "
            f"{percent(_LASTING)})",
        ),
        (
            others,
            _OTHERS,
            f"the network was right about only {percent(others)} of the other labels (threshold {percent(_OTHERS)})",
        ),
    )
    for number, threshold, reason in reasons:
        if number < threshold:
            sentence = f"{_found(evidence, row)}, but {reason}, as in a network that still learns."
            return Line(_TOPIC, "undecided", sentence, number, threshold, _THEORY, _ACTION_IF_UNDECIDED)
    sentence = (
        f"{_found(evidence, row)}: too many for clean labels ({percent(_CLEAN)}), and too few for label noise "
        f"({percent(_NOISY)} in at least two rows, and more than two standard errors above {percent(_CLEAN)})."
    )
    share = float(evidence.share[row])
    return Line(_TOPIC, "undecided", sentence, share, _NOISY, _THEORY, _ACTION_IF_UNDECIDED)
