"""The line on memorisation: whether the network fits labels that are known to be wrong."""

from __future__ import annotations

import numpy as np

from dynascope.diagnosis.line import Line
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results.numbers import percent

__all__ = ["memorisation"]

_HALF = 0.5  # share of the wrong labels that are fitted beyond chance
_THEORY = (
    "Networks learn common patterns before they fit wrong labels, so the share of fitted wrong labels rises late. "
    "Domain: classification, with flipped examples that are part of the training set. Sources: Zhang et al., "
    "arXiv:1611.03530; Arpit et al., arXiv:1706.05394."
)


def memorisation(run: RunFacts) -> Line:
    """Compare the share of fitted wrong labels with that of a network that ignores them.

    A network that ignores the wrong labels makes errors on a share e of the examples with correct labels. If these
    errors are spread evenly over the C − 1 other classes, the network predicts a wrong label with probability
    e/(C − 1). The network memorises if it fits more than half of the wrong labels beyond this chance.
    """
    topic = "memorisation"
    fit, share, accuracy = (run.known(name) for name in ("flipped_fit", "flipped_share", "reference_accuracy"))
    if share is not None and float(share[-1]) == 0:
        sentence = "Memorisation was not measured: the reference batch contains no flipped example."
        return Line(topic, "not measured", sentence, theory=_THEORY, weight=0)
    if fit is None or share is None or accuracy is None:
        sentence = (
            "Memorisation was not measured: flip some labels of the training set, and pass flipped= and a reference "
            "batch with these examples to the Recorder."
        )
        return Line(topic, "not measured", sentence, theory=_THEORY, weight=0)
    flipped = float(share[-1])
    found, right = fit.to_numpy(), accuracy.sel(step=fit["step"]).to_numpy()
    correct = (right - flipped * found) / (1 - flipped) if flipped < 1 else np.zeros_like(right)
    chance = np.clip((1 - correct) / (_classes(run) - 1), 0, 1)
    thresholds = chance + _HALF * (1 - chance)
    number, threshold = float(found[-1]), float(thresholds[-1])
    sentence = (
        f"The network fits {percent(number, 2)} of the flipped labels ({percent(flipped, 2)} of the reference batch); "
        f"a network that ignores these labels would fit {percent(chance[-1], 2)} (threshold {percent(threshold, 2)})."
    )
    if number < threshold:
        return Line(topic, "not memorising", sentence, number, threshold, _THEORY)
    # The last step before the network memorises, from which it does so at all recorded steps.
    below = (found < thresholds).nonzero()[0]
    before = int(fit["step"][below[-1]]) if len(below) else int(fit["step"][0])
    sentence += f" It began to memorise after step {before}."
    action = f"Stop before step {before}, regularise more strongly, or correct the labels."
    return Line(topic, "memorising", sentence, number, threshold, _THEORY, action, weight=3)


def _classes(run: RunFacts) -> int:
    """Return the largest dimension of the outputs, but at least 2, as the number of classes."""
    dimensions = run.known("output_dimension")
    return 2 if dimensions is None else max(2, round(float(np.nanmax(dimensions.to_numpy()))))
