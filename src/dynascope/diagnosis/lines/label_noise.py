"""The line on label noise: whether labels of the reference batch are probably wrong."""

from __future__ import annotations

import numpy as np

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results.numbers import percent

__all__ = ["label_noise"]

# Chosen on 140 runs of MLPs and CNNs on digits, clusters and teacher networks, with 0, 10, 20 or 40 % of wrong labels.
# On these runs, which they were fitted to, they are right in 120 cases, wrong in 6 (false alarms) and undecided in 14.
_CLEAN, _NOISY = 0.3, 0.4  # share of the errors whose labels are suspected
_LEARNED = 0.4  # labels are judged once this share of the initial errors is gone,
_SLOW = 0.2  # and less than this share has gone since half the number of steps
_FEWEST = 3  # rows without such a plateau that show that there is none
_FITTED = 0.97  # a network of higher accuracy on the labels fits wrong labels too
_THEORY = (
    "If labels are wrong, a network that has learned the classes is confident of another class in most of its errors "
    "(confident learning); if labels are right, few of its errors are confident. Domain: classification, with rows "
    "recorded before the network memorises wrong labels. Source: Northcutt et al., arXiv:1911.00068."
)
_TOPIC = "label noise"
_ACTION = (
    "Check some of the examples with the largest losses. If their labels are wrong, correct them, or train with a "
    "robust loss and stop early; if not, train longer, because a network that still learns also makes confident errors."
)


def label_noise(run: RunFacts) -> Line:
    """Report whether labels of the reference batch are wrong, by the known flips or by confident learning.

    A network that memorises wrong labels predicts them, so they can no longer be recognised. A network that has just
    begun to learn makes confident errors on correct labels. Labels are therefore judged on the plateau in between:
    after 40 % of the initial errors are gone, when the accuracy rises slowly, and before its maximum. A network whose
    accuracy rises above 97 % without a plateau has clean labels.
    """
    flipped, accuracy, suspected = (
        run.known(name) for name in ("flipped_share", "reference_accuracy", "suspected_noise")
    )
    if flipped is not None and float(flipped[-1]) > 0:
        share = float(flipped[-1])
        sentence = f"{percent(share, 2)} of the labels of the reference batch are known to be flipped."
        return Line(_TOPIC, "noisy labels", sentence, share, 0.0, _THEORY, _ACTION, weight=2)
    if accuracy is None or suspected is None:
        sentence = (
            'Label noise was not measured: record the probe "fit", with a reference batch of inputs and class labels.'
        )
        return Line(_TOPIC, "not measured", sentence, theory=_THEORY, weight=0)
    right, suspects = accuracy.sel(step=suspected["step"]).to_numpy(), suspected.to_numpy()
    steps, initial = suspected["step"].to_numpy(), 1 - right[0]
    last_best = len(right) - 1 - right[::-1].argmax()
    learning = (np.arange(len(right)) <= last_best) & (right >= right[0] + _LEARNED * initial) & (right < _FITTED)
    slow = right - np.interp(steps / 2, steps, right) <= _SLOW * initial
    (judged,) = np.nonzero(learning & slow & (steps > steps[0]))
    if not len(judged):
        return _without_plateau(right, int(learning.sum()))
    confident = suspects[judged] / (1 - right[judged])
    place = np.argsort(confident)[-min(2, len(judged))]  # the second largest, so that one row does not decide
    row = int(judged[place])
    return _verdict(float(confident[place]), float(suspects[row]), int(steps[row]), last=float(right[-1]))


def _without_plateau(right: np.ndarray, rows: int) -> Line:
    best = float(right.max())
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


def _verdict(confident: float, suspects: float, step: int, *, last: float) -> Line:
    found = (
        f"At step {step}, {percent(suspects, 2)} of the labels were suspected to be wrong, which is "
        f"{percent(confident, 2)} of the network's errors"
    )
    if confident >= _NOISY:
        sentence = f"{found} (threshold {percent(_NOISY)})."
        if last >= _FITTED:
            sentence += f" The network now fits {percent(last)} of the labels, including the wrong ones."
        return Line(_TOPIC, "noisy labels", sentence, confident, _NOISY, _THEORY, _ACTION, weight=3)
    if confident < _CLEAN:
        return Line(
            _TOPIC, "clean labels", f"{found} (threshold {percent(_CLEAN)}).", confident, _CLEAN, _THEORY, weight=1
        )
    sentence = (
        f"{found}: too many for clean labels ({percent(_CLEAN)}), and too few for label noise ({percent(_NOISY)})."
    )
    return Line(_TOPIC, "not measured", sentence, confident, _NOISY, _THEORY)
