"""From columns to a task: gaps, text, labels and units, each decided, and said."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from dynascope.tasks.affine import varying
from dynascope.tasks.data.column_names import listed
from dynascope.tasks.data.columns import Column, to_numbers
from dynascope.tasks.data.inputs import encode_inputs, without_identifiers
from dynascope.tasks.data.missing_values import Missing, filled, without_gaps
from dynascope.tasks.data.targets import encode_targets
from dynascope.tasks.task import Task
from dynascope.validation import require

__all__ = ["assembled"]


def assembled(
    inputs: Mapping[str, Column],
    targets: Mapping[str, Column],
    *,
    name: str,
    source: str,
    came: str,
    told: Sequence[str] = (),
    text: bool,
    image_shape: tuple[int, int] | None = None,
    missing: Missing | None = None,
    classification: bool | None = None,
    centre: bool = True,
    standardise: bool = False,
) -> Task:
    """The task of columns of inputs and columns of targets.

    Args:
        inputs: The columns of the inputs by name.
        targets: The columns of the targets by name.
        name: Name of the task.
        source: What the data are called in messages.
        came: How the samples came, as it follows their number: "were read from trees.csv".
        told: What else is to be said of how they were read, one sentence each.
        text: Whether inputs of text are encoded; else they are refused.
        image_shape: (height, width) if a row of inputs is an image.
        missing: What is done about missing values.
        classification: Whether the target is a class label; None decides.
        centre: Remove the mean of every input and target.
        standardise: Bring inputs, and targets that are quantities, to mean 0 and variance 1.

    Raises:
        InputError: The columns do not hold at least two complete samples of what can be read as numbers, or
            `standardise` is asked for without `centre`.
    """
    require(
        centre or not standardise,
        "standardise is asked for without centre",
        argument="standardise",
        value=standardise,
        remedy="leave centre out, as what is standardised has mean 0",
    )
    samples = len(next(iter(inputs.values())))
    require(
        samples >= 2,
        f"{source} has {samples} sample{'s' if samples != 1 else ''}",
        argument="path",
        value=samples,
        remedy="give at least two",
    )
    told = [f"{samples} samples {came}.", *told]
    if text:
        inputs, left_out = without_identifiers(inputs, source=source)
        told += left_out
    inputs, targets, gaps = without_gaps(inputs, targets, missing, source=source)
    told += gaps
    if text:
        values, names, encoded = encode_inputs(inputs, source=source)
        told += encoded
    else:
        values, names = to_numbers(inputs, "input", source), tuple(inputs)
    values, means = filled(values, names, source=source)
    outputs, target_names, decided, classes = encode_targets(targets, classification, source=source)
    told += [*means, decided]
    task = Task(
        values,
        outputs,
        name=name,
        image_shape=image_shape,
        feature_names=() if image_shape else names,
        target_names=target_names,
    )
    constant = [name for name, varies in zip(task.feature_names, varying(values), strict=True) if not varies]
    if constant:
        told.append(f"Constant over the samples, and so without information: {listed(constant)}.")
    task = dataclasses.replace(task, description=told)
    return task.standardised(classes=classes) if standardise else task.centred() if centre else task
