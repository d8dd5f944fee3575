"""Conversion of table columns to a task: missing values, text, labels and units."""

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
    origin: str,
    notes: Sequence[str] = (),
    text: bool,
    image_shape: tuple[int, int] | None = None,
    missing: Missing | None = None,
    classification: bool | None = None,
    centre: bool = True,
    standardise: bool = False,
) -> Task:
    """Assemble a task from input and target columns.

    Args:
        inputs: Input columns by name.
        targets: Target columns by name.
        name: Name of the task.
        source: Name of the data in messages.
        origin: Origin of the samples, which completes a sentence: "were read from trees.csv".
        notes: Further sentences about how the data were read.
        text: Whether text inputs are encoded; otherwise they raise an error.
        image_shape: (height, width) if a row of inputs is an image.
        missing: Treatment of missing values, as in `read_table`.
        classification: Whether the target is a class label; None applies the rule of `encode_targets`.
        centre: Whether to subtract the mean of every input and target.
        standardise: Whether to rescale inputs and quantitative targets to mean 0 and variance 1.

    Raises:
        InputError: If a column cannot be converted to numbers, if there are fewer than two complete samples, or if
            `standardise` is set without `centre`.
    """
    require(
        centre or not standardise,
        "standardise is True, but centre is False",
        argument="standardise",
        value=standardise,
        remedy="set centre=True, because standardised data have mean 0",
    )
    samples = len(next(iter(inputs.values())))
    require(
        samples >= 2,
        f"{source} has {samples} sample{'s' if samples != 1 else ''}",
        argument="path",
        value=samples,
        remedy="give at least two samples",
    )
    notes = [f"{samples} samples {origin}.", *notes]
    if text:
        inputs, left_out = without_identifiers(inputs, source=source)
        notes += left_out
    inputs, targets, gaps = without_gaps(inputs, targets, missing, source=source)
    notes += gaps
    if text:
        values, names, encoded = encode_inputs(inputs, source=source)
        notes += encoded
    else:
        values, names = to_numbers(inputs, "input", source), tuple(inputs)
    values, means = filled(values, names, source=source)
    outputs, target_names, decided, classes = encode_targets(targets, classification, source=source)
    notes += [*means, decided]
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
        notes.append(f"Constant over the samples: {listed(constant)}.")
    task = dataclasses.replace(task, description=notes)
    return task.standardised(classes=classes) if standardise else task.centred() if centre else task
