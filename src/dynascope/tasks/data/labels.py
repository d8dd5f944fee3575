"""Class labels: detection and one-hot encoding."""

from __future__ import annotations

import numpy as np

from dynascope.validation import require

__all__ = ["are_classes", "look_like_labels", "one_hot"]

_MOST_INTEGER_CLASSES = 20
_MOST_CLASSES = 1000
_CLASSES_LISTED = 20
_ROUNDING = 1e-9  # of centred zeros and ones


def look_like_labels(values: np.ndarray) -> bool:
    """Whether integers look like class labels rather than a quantity.

    The rule is a heuristic: 2 to 20 distinct values, and at least twice as many samples as distinct values. Callers
    must therefore report the decision and let users override it.

    Example:
        >>> look_like_labels(np.array([0, 1, 2, 2, 1, 0])), look_like_labels(np.arange(6))
        (True, False)
    """
    distinct = len(np.unique(values))
    return 2 <= distinct <= _MOST_INTEGER_CLASSES and 2 * distinct <= len(values)


def are_classes(targets: np.ndarray) -> bool:
    """Whether targets (n, c) are one-hot or binary class labels, up to a constant offset per column.

    Example:
        >>> are_classes(np.array([[1.0, 0.0], [0.0, 1.0]]) - 0.5), are_classes(np.array([[1.0, 1.0], [0.0, 1.0]]))
        (True, False)
    """
    raised = targets - targets.min(axis=0)
    zero, one = np.isclose(raised, 0.0, atol=_ROUNDING), np.isclose(raised, 1.0, atol=_ROUNDING)
    if not (zero | one).all():
        return False
    return targets.shape[1] == 1 or bool((one.sum(axis=1) == 1).all())


def one_hot(labels: np.ndarray, name: str) -> tuple[np.ndarray, tuple[str, ...], str]:
    """Encode class labels as one 0-or-1 target for each class.

    Args:
        labels: Array (n,) of text or numbers.
        name: Name of the label, for the names of the targets and for messages.

    Returns:
        Targets (n, c), the class names (text unchanged, numbers with the name as a prefix), and a sentence that
        describes the encoding.

    Raises:
        InputError: If there is only one class, if there are more than 1000, or if every sample is its own class.

    Example:
        >>> targets, names, sentence = one_hot(np.array([3, 5, 3]), "digit")
        >>> names, targets.tolist()
        (('digit 3', 'digit 5'), [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
        >>> sentence
        "The class label 'digit' is one-hot encoded: digit 3 (2 samples), digit 5 (1 sample)."
    """
    classes, members, counts = np.unique(labels, return_inverse=True, return_counts=True)
    require(
        len(classes) > 1,
        f"the target {name} has only one class",
        argument="target",
        value=len(classes),
        remedy="give at least two classes",
    )
    require(
        len(classes) < len(labels) and len(classes) <= _MOST_CLASSES,
        f"the target {name} has {len(classes)} classes in {len(labels)} samples",
        argument="target",
        value=len(classes),
        remedy=f"give labels with repeated values and at most {_MOST_CLASSES} classes, or numbers for a regression",
    )
    names = tuple(_class_name(label, name) for label in classes.tolist())
    listed = [
        f"{label} ({count} sample{'s' if count != 1 else ''})" for label, count in zip(names, counts, strict=True)
    ]
    if len(listed) > _CLASSES_LISTED:
        listed = [*listed[:_CLASSES_LISTED], f"and {len(listed) - _CLASSES_LISTED} more"]
    return (
        (members[:, None] == np.arange(len(classes))).astype(np.float64),
        names,
        f"The class label {name!r} is one-hot encoded: {', '.join(listed)}.",
    )


def _class_name(label: str | float, name: str) -> str:
    if isinstance(label, str):
        return label
    return f"{name} {int(label) if isinstance(label, float) and label.is_integer() else label}"
