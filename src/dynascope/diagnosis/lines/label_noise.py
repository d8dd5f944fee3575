"""The line on label noise: whether labels of the reference batch are probably wrong."""

from __future__ import annotations

import numpy as np

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results.numbers import percent

__all__ = ["label_noise"]

# Of 128 runs of MLPs and CNNs on digits, clusters and teacher networks, with 0 to 40 % of wrong labels, these values
# classified 101 correctly and 8 wrongly, and left 19 undecided. Most wrong verdicts are false alarms in tasks with few,
# unbalanced classes that overlap.
_CLEAN, _NOISY = 0.4, 0.5  # largest share of the errors whose labels are suspected
_LEARNED = 0.45  # labels are judged once this share of the initial errors is gone
_FITTED = 0.97  # a network of higher accuracy on the labels fits wrong labels too
_THEORY = (
    "If labels are wrong, a network that has learned the classes is confident of another class in most of its errors "
    "(confident learning); if labels are right, few of its errors are confident. Domain: classification, with rows "
    "recorded before the network memorises wrong labels. Source: Northcutt et al., arXiv:1911.00068."
)
_TOPIC = "label noise"
_ACTION = (
    "Inspect the examples with the largest losses, correct their labels, or train with a robust loss and stop early."
)


def label_noise(run: RunFacts) -> Line:
    """Report whether labels of the reference batch are wrong, by the known flips or by confident learning.

    A network that memorises wrong labels predicts them, so they can no longer be recognised. The labels are therefore
    judged by the rows before the highest accuracy on them, as soon as 45 % of the initial errors are gone.
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
    before_best = np.arange(len(right)) <= right.argmax()
    learned = right >= right[0] + _LEARNED * (1 - right[0])
    judged = (before_best & learned & (right < _FITTED)).nonzero()[0]
    if not len(judged):
        return _unjudged(float(right.max()), fitted=bool(learned.any()))
    confident = suspects[judged] / (1 - right[judged])
    place = judged[int(confident.argmax())]
    return _verdict(
        float(confident.max()), float(suspects[place]), int(suspected["step"][place]), last=float(right[-1])
    )


def _unjudged(accuracy: float, *, fitted: bool) -> Line:
    if fitted:
        sentence = (
            f"Label noise cannot be judged: the network fits {percent(accuracy)} of the labels, and thus wrong labels "
            "too, and no earlier row was recorded. Record more rows early in training."
        )
    else:
        sentence = (
            f"Label noise cannot be judged: the network has not learned the classes (accuracy {percent(accuracy)})."
        )
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
