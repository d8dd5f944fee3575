"""Other names for numbers, under which operations modulo p are sums and differences, and the networks to go with."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import numpy as np

from dynascope.tasks import Task
from dynascope.tasks.algebra.modular_arithmetic import ModularArithmetic

__all__ = ["other_names", "renamed_network", "renamed_results", "renamed_task"]


def other_names(operation: str, p: int) -> np.ndarray:
    """The other name of each number: its negative, or its discrete logarithm with p − 1 for that of zero."""
    if operation in ("addition", "subtraction"):
        return -np.arange(p) % p
    powers = (np.array([pow(base, k, p) for k in range(p - 1)]) for base in range(2, p))
    names = np.full(p, p - 1)
    names[next(each for each in powers if len(set(each)) == p - 1)] = np.arange(p - 1)
    return names


def renamed_results(operation: str, p: int, pairs: np.ndarray) -> np.ndarray:
    """Results of the operation between other names, in other names: sums and differences, with zero apart."""
    a, b = pairs.T
    if operation in ("addition", "subtraction"):
        return (a + b if operation == "addition" else a - b) % p
    zero = p - 1
    result = (a + b if operation == "multiplication" else a - b) % (p - 1)
    return np.where((a == zero) | (b == zero), zero, result)


def renamed_task(table: ModularArithmetic, names: np.ndarray) -> Task:
    """The training pairs by their other names."""
    pairs, ones = names[table.pairs[table.trained]], np.eye(table.p)
    results = renamed_results(table.operation, table.p, pairs)
    return Task(ones[pairs].reshape(len(pairs), -1), ones[results])


def renamed_network(network: Any, names: np.ndarray) -> Any:
    """The network that reads and gives the other names as the network did the old ones."""
    old = np.argsort(names)
    if hasattr(network, "embedding"):
        rows, ends = lambda each: each.embedding, lambda each: each.unembedding
        order = np.append(old, len(old))
    else:
        rows, ends = lambda each: each.first, lambda each: each.second
        order = np.append(old, len(old) + old)
    return eqx.tree_at(lambda each: (rows(each), ends(each)), network, (rows(network)[order], ends(network)[:, old]))
