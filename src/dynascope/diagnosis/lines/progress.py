"""The line on progress: how far the loss fell, and which accuracy the network reached."""

from __future__ import annotations

from dynascope.diagnosis.known_values import known_losses
from dynascope.diagnosis.line import Line
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results.numbers import percent, rounded

__all__ = ["progress"]

_TOPIC = "progress"
_LEAST = 0.1  # share of the initial loss by which it must fall, as for the regime
_THEORY = "The loss falls if the step is small enough and the gradient is not zero. The threshold is a convention."


def progress(run: RunFacts) -> Line:
    """Compare the last loss with the first one, and state the accuracy on the reference batch.

    The loss is that of the reference batch, or else the mean loss of the training loop since the row before.

    Example:
        >>> from dynascope.results import make_record
        >>> record = make_record({"mean_loss": (["step"], [2.0, 0.5])}, {"step": [1, 100]})
        >>> progress(RunFacts(record)).sentence.replace("\N{NO-BREAK SPACE}", " ")
        'The loss fell from 2 to 0.5, by 75 % (threshold 10 %).'
    """
    loss = known_losses(run.record)
    if loss is None or len(loss) < 2:
        sentence = "Whether the network learned was not measured: this requires the losses of two rows of training."
        return Line(_TOPIC, "not measured", sentence, theory=_THEORY, weight=0)
    first, last = float(loss[0]), float(loss[-1])
    fall = (first - last) / abs(first) if first else 0.0
    change = "fell" if last < first else "rose" if last > first else "did not change:"
    name = "loss on the reference batch" if loss.name == "reference_loss" else "loss"
    sentence = f"The {name} {change} from {rounded(first)} to {rounded(last)}"
    if last != first:
        sentence += f", by {percent(abs(fall), 2)}"
    sentence += f" (threshold {percent(_LEAST)}){_accuracy(run)}."
    if fall >= _LEAST:
        return Line(_TOPIC, "learned", sentence, fall, _LEAST, _THEORY, weight=2)
    action = "See the lines on stability and dead units; if steps are stable, use a larger learning rate or more steps."
    return Line(_TOPIC, "did not learn", sentence, fall, _LEAST, _THEORY, action, weight=2)


def _accuracy(run: RunFacts) -> str:
    accuracy = run.known("reference_accuracy")
    if accuracy is None:
        return ""
    verb, before = ("went from", f"{percent(accuracy[0])} to ") if len(accuracy) > 1 else ("is", "")
    return f"; the accuracy on the reference batch {verb} {before}{percent(accuracy[-1])}"
