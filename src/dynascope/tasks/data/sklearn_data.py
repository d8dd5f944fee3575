"""Input columns, target columns and names from scikit-learn data sets."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
import pandas as pd

from dynascope.tasks.data.columns import Column, columns_of
from dynascope.validation import require

__all__ = ["BunchParts", "is_bunch"]


def is_bunch(value: Any) -> bool:
    """Whether a value is a scikit-learn data set, identified by the name of its type."""
    return type(value).__name__ == "Bunch" and isinstance(value, dict)


@dataclasses.dataclass(frozen=True)
class BunchParts:
    """The parts of a scikit-learn data set.

    Attributes:
        inputs: Input columns by name.
        targets: Target columns by name; a single categorical column if the classes have names.
        name: The name of the data set, or "data" if it has none.
        image_shape: (height, width) if the inputs are images, else None.
    """

    inputs: dict[str, Column]
    targets: dict[str, Column]
    name: str
    image_shape: tuple[int, int] | None

    @classmethod
    def of(cls, bunch: Any) -> BunchParts:
        """Extract the parts of a `Bunch`, the type of scikit-learn data sets.

        Raises:
            InputError: If the bunch has no inputs or no targets.

        Example:
            >>> from sklearn.datasets import load_wine
            >>> parts = BunchParts.of(load_wine())
            >>> parts.name, len(parts.inputs), list(parts.targets)
            ('wine', 13, ['target'])
        """
        for name in ("data", "target"):
            require(
                bunch.get(name) is not None,
                f"the bunch has no {name}",
                argument="task",
                value=list(bunch),
                remedy="give a bunch with data and target, or a pair (inputs, targets)",
            )
        inputs = columns_of(bunch["data"], "x", argument="data", names=_strings(bunch.get("feature_names")))
        images = np.shape(bunch.get("images")) if bunch.get("images") is not None else ()
        shape = images[1:] if len(images) == 3 and images[1] * images[2] == len(inputs) else None
        return cls(inputs, _targets(bunch), _name(bunch), shape)


def _targets(bunch: Any) -> dict[str, Column]:
    names = _strings(bunch.get("target_names"))
    columns = columns_of(bunch["target"], "target", argument="target")
    if len(columns) > 1:
        return dict(zip(names, columns.values(), strict=True)) if len(names) == len(columns) else columns
    ((name, column),) = columns.items()
    codes = column.values.to_numpy()
    if codes.dtype.kind in "iu" and len(names) > 1 and codes.min() >= 0 and codes.max() < len(names):
        return {name: Column.of(pd.Categorical.from_codes(codes, list(names)))}
    return {names[0] if len(names) == 1 else name: column}


def _strings(names: Any) -> tuple[str, ...]:
    """The class names as strings; empty if they only repeat numeric targets, as for the digits."""
    given = [] if names is None else list(names)
    return tuple(map(str, given)) if all(isinstance(each, str) for each in given) else ()


def _name(bunch: Any) -> str:
    """The name at the beginning of a bunch's description, in scikit-learn's format."""
    found = re.match(r"\s*\.\. _(\w+?)_dataset:", str(bunch.get("DESCR", "")))
    return found[1].replace("_", " ") if found else "data"
