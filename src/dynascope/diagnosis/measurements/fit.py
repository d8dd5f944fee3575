"""Loss and accuracy on the reference batch, and the fit of wrong labels."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynascope.diagnosis.measurements.kernel import as_numpy
from dynascope.diagnosis.measurements.measured_rows import measured_rows
from dynascope.diagnosis.probe import Probe, ProbeCost
from dynascope.diagnosis.snapshot import Snapshot
from dynascope.validation import array_namespace, require_labels, shown_error

__all__ = ["FIT", "measure_fit", "suspected_classes"]

_ROUNDING = 1e-6  # Rounding errors must not decide between a probability and its mean.
_MOST_RECORDED = 1024  # examples whose suspected class is recorded in every row


def measure_fit(snapshot: Snapshot) -> dict[str, tuple[list[str], Any]]:
    """Measure the loss and the accuracy on the reference batch, and the labels that are probably wrong.

    Suspected labels are those of `suspected_classes`. For each of the first 1024 examples with a target, the class that
    is probably right is measured, or −1 if the label is not suspected. `suspicion` is the mean of log(p_s/p_i) over the
    suspected labels, where p_i is the probability of the label and p_s that of the class that is probably right. It is
    zero if no label is suspected. `unsuspected_accuracy` is the accuracy on the other labels, zero if there are none.

    Targets are labels, or one-hot rows. Accuracy, shares and suspicion are NaN for other targets, and for models with
    one output, and classes are omitted. The loss is omitted without a criterion. If the recorder knows which examples
    are flipped, i.e. have a label that is known to be wrong, their share is measured, and the share of the flipped
    examples whose prediction equals the wrong label.
    """
    if snapshot.targets is None:
        return {}
    nan = float("nan")
    found = {"reference_accuracy": nan, "suspected_noise": nan, "suspicion": nan, "unsuspected_accuracy": nan}
    classes = np.array([])
    if snapshot.compute_loss is not None:
        found["reference_loss"] = _loss(snapshot)
    if snapshot.flipped is not None:
        found |= {"flipped_fit": nan, "flipped_share": nan}
    rows = measured_rows(snapshot)
    labels = _labels_of(rows.targets, rows.outputs)
    if labels is not None:
        xp = array_namespace(rows.outputs)
        require_labels("reference", labels, len(rows.outputs), classes=rows.outputs.shape[1])
        right = as_numpy(xp.argmax(rows.outputs, axis=1) == labels)
        found["reference_accuracy"] = float(right.mean())
        suspects = suspected_classes(_softmax(rows.outputs), labels)
        odds = as_numpy(_of_class(rows.outputs, suspects) - _of_class(rows.outputs, labels))  # log(p_s/p_i)
        classes = as_numpy(suspects)
        found["suspected_noise"] = float((classes >= 0).mean())
        found["suspicion"] = _mean(odds[classes >= 0])
        found["unsuspected_accuracy"] = _mean(right[classes < 0])
        if snapshot.flipped is not None:
            flipped = snapshot.flipped[as_numpy(rows.places)]
            found["flipped_share"] = float(flipped.mean())
            found["flipped_fit"] = float(right[flipped].mean()) if flipped.any() else nan
    values: dict[str, tuple[list[str], Any]] = {name: ([], np.asarray(value)) for name, value in found.items()}
    if len(classes):
        values["suspected_class"] = (["example"], classes[:_MOST_RECORDED].astype(np.float32))
    return values


def suspected_classes(probabilities: Any, labels: Any) -> Any:
    """Find labels that are probably wrong, and the classes that are probably right, by confident learning.

    The threshold t_j of a class is the mean predicted probability p_j of the examples with label j. The label i of an
    example is suspected if the class with the largest p_j among those with p_j ≥ t_j is another class. Classes without
    an example are never suspected.

    The method assumes that the probabilities were not fitted to the labels that it judges. A network that memorises
    wrong labels predicts them, and no label is suspected. A threshold is relative: if all probabilities are close to
    1/c, as at the start of training, a probability barely above 1/c exceeds it.

    Args:
        probabilities: Predicted probabilities, shape (n, c).
        labels: Labels from 0 to c − 1, shape (n,), from the same library.

    Returns:
        The class that is probably right, shape (n,); −1 if the label of the example is not suspected.

    References:
        Northcutt, Jiang, Chuang, Confident learning, arXiv:1911.00068: the confident joint.

    Example:
        >>> p = np.array([[0.9, 0.1], [0.8, 0.2], [0.1, 0.9], [0.9, 0.1]])
        >>> suspected_classes(p, np.array([0, 0, 1, 1])).tolist()
        [-1, -1, -1, 0]
    """
    xp = array_namespace(probabilities, labels)
    numbers = xp.cumulative_sum(xp.ones_like(probabilities[0]), axis=0) - 1
    given = xp.astype(labels, probabilities.dtype)[:, None] == numbers
    zero = xp.zeros_like(probabilities)
    of_given = xp.where(given, probabilities, zero)
    sizes = xp.sum(xp.astype(given, probabilities.dtype), axis=0)
    thresholds = xp.sum(of_given, axis=0) / xp.where(sizes > 0, sizes, xp.ones_like(sizes))
    confident = (probabilities >= (1 - _ROUNDING) * thresholds) & (sizes > 0)
    others = xp.where(confident & ~given, probabilities, zero)
    own = xp.sum(xp.where(confident, of_given, zero), axis=1)  # zero if the given label is below its threshold
    largest = xp.argmax(others, axis=1)
    return xp.where(xp.max(others, axis=1) > own, largest, -xp.ones_like(largest))


def _of_class(values: Any, classes: Any) -> Any:
    """Return the value of the class of each row, shape (n,); zero for the class −1."""
    xp = array_namespace(values, classes)
    numbers = xp.cumulative_sum(xp.ones_like(values[0]), axis=0) - 1
    chosen = xp.astype(classes, values.dtype)[:, None] == numbers
    return xp.sum(xp.where(chosen, values, xp.zeros_like(values)), axis=1)


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else 0.0


def _loss(snapshot: Snapshot) -> float:
    assert snapshot.compute_loss is not None
    try:
        return float(as_numpy(snapshot.compute_loss(snapshot.forward.raw_outputs)))
    except Exception as error:  # A user's criterion may fail in any way; the other variables do not need it.
        snapshot.note(f"the loss of the reference batch is not measured, because {shown_error(error)}")
        return float("nan")


def _labels_of(targets: Any, outputs: Any) -> Any:
    """Return labels of shape (n,), also those of one-hot targets; None for other targets."""
    if len(targets.shape) == 1:
        return targets
    if targets.shape[1] != outputs.shape[1] or targets.shape[1] < 2:
        return None
    xp = array_namespace(targets)
    ones = xp.sum(xp.astype(targets == 1, xp.int32), axis=1)
    zeros = xp.sum(xp.astype(targets == 0, xp.int32), axis=1)
    one_hot = xp.all((ones == 1) & (zeros == targets.shape[1] - 1))
    return xp.argmax(targets, axis=1) if bool(one_hot) else None


def _softmax(outputs: Any) -> Any:
    xp = array_namespace(outputs)
    exponentials = xp.exp(outputs - xp.max(outputs, axis=1, keepdims=True))
    return exponentials / xp.sum(exponentials, axis=1, keepdims=True)


FIT = Probe(
    name="fit",
    description="Loss and accuracy on the reference batch, and the fit of wrong labels.",
    needs=("outputs", "targets"),
    measure=measure_fit,
    cost=lambda sizes: ProbeCost(sizes.examples * sizes.forward, 8.0 * sizes.examples * sizes.activations),
    names={
        "reference_loss": ("loss on the reference batch", "1"),
        "reference_accuracy": ("accuracy on the reference batch", "1"),
        "suspected_noise": ("share of reference labels that are probably wrong", "1"),
        "suspicion": ("mean log odds of the probably right class against the suspected label", "1"),
        "unsuspected_accuracy": ("accuracy on the reference labels that are not suspected", "1"),
        "suspected_class": ("class that is probably right, −1 if the label is not suspected", "1"),
        "flipped_fit": ("share of flipped examples that the network fits", "1"),
        "flipped_share": ("share of reference examples with flipped labels", "1"),
    },
)
