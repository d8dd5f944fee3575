"""What a mutated call did, and what is wrong with that."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from documented import is_row, numbers
from robustness.mutations import Mutant

from dynascope.errors import DivergenceError, InputError

__all__ = ["found_wrong"]


def equal(one: Any, other: Any) -> bool:
    ones, others = list(numbers(one)), list(numbers(other))
    return len(ones) == len(others) and all(
        # Answers to tensors are in the type of these, and sums may be ordered otherwise.
        np.shape(a) == np.shape(b)
        and np.allclose(a, b, rtol=1e-5, atol=1e-6 * np.abs(b).max(initial=1e-300), equal_nan=True)
        for a, b in zip(ones, others, strict=True)
    )


def content(value: Any) -> Any:
    """What an argument holds, to see whether it was changed."""
    return copy.deepcopy(value) if isinstance(value, np.ndarray | list | dict) or is_row(value) else None


def found_wrong(member: Any, call: Any, name: str, mutant: Mutant, valid: Any) -> str:
    before = {key: content(value) for key, value in {**call.arguments, name: mutant.value}.items()}
    problem = ""
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            answer = member(call, **{name: mutant.value})
    except InputError as error:
        if "\n" in str(error) or len(str(error)) > 1500:
            problem = "refused in many words"
    except (DivergenceError, OSError):
        pass  # it fails as is documented
    except Exception as error:
        problem = f"{type(error).__name__} {str(error)[:80]}"
    else:
        if any(np.isnan(part).any() for part in numbers(answer)):
            problem = "NaN"
        elif mutant.same and valid is not None and not equal(answer, valid):
            problem = "another answer"
    for key, value in {**call.arguments, name: mutant.value}.items():
        if before[key] is not None and not _unchanged(value, before[key]):
            problem += f" and {key} was changed"
    return problem and f"{name} {mutant.kind}: {problem}"


def _unchanged(value: Any, before: Any) -> bool:
    if isinstance(value, np.ndarray):
        return np.array_equal(value, before, equal_nan=value.dtype.kind == "f")
    return repr(value) == repr(before)
