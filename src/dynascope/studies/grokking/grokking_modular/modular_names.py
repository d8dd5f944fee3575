"""Renamings of numbers that turn operations modulo p into sums and differences."""

from __future__ import annotations

import numpy as np

from dynascope.tasks.algebra.modular_arithmetic import ModularArithmetic
from dynascope.tasks.task import Task

__all__ = ["other_names", "renamed_results", "renamed_task"]


def other_names(operation: str, p: int) -> np.ndarray:
    """The new name of each number: its negative, or its discrete logarithm (p − 1 for zero).

    Example:
        >>> other_names("addition", 5), other_names("multiplication", 5)
        (array([0, 4, 3, 2, 1]), array([4, 0, 1, 3, 2]))
    """
    if operation in ("addition", "subtraction"):
        return -np.arange(p) % p
    powers = (np.array([pow(base, k, p) for k in range(p - 1)]) for base in range(2, p))
    names = np.full(p, p - 1)
    names[next(each for each in powers if len(set(each)) == p - 1)] = np.arange(p - 1)
    return names


def renamed_results(operation: str, p: int, pairs: np.ndarray) -> np.ndarray:
    """Renamed results of the operation on renamed pairs: sums or differences, with zero treated separately."""
    a, b = pairs.T
    if operation in ("addition", "subtraction"):
        return (a + b if operation == "addition" else a - b) % p
    zero = p - 1
    result = (a + b if operation == "multiplication" else a - b) % (p - 1)
    return np.where((a == zero) | (b == zero), zero, result)


def renamed_task(table: ModularArithmetic, names: np.ndarray) -> Task:
    """The renamed training pairs."""
    pairs, ones = names[table.pairs[table.trained]], np.eye(table.p)
    results = renamed_results(table.operation, table.p, pairs)
    return Task(ones[pairs].reshape(len(pairs), -1), ones[results])
