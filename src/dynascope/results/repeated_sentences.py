"""Merge reasons that repeat from jump to jump into one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["gathered_reasons", "numbered"]

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")


def numbered(numbers: Iterable[int]) -> str:
    """Format increasing integers, with ranges for consecutive ones.

    Example:
        >>> numbered([3, 4, 5, 6, 9]), numbered([1, 2]), numbered([7])
        ('3 to 6 and 9', '1 and 2', '7')
    """
    runs: list[list[int]] = []
    for each in numbers:
        if runs and each == runs[-1][-1] + 1:
            runs[-1].append(each)
        else:
            runs.append([each])
    parts = [
        part for run in runs for part in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(each) for each in run])
    ]
    return " and ".join(filter(None, [", ".join(parts[:-1]), *parts[-1:]]))


def gathered_reasons(reasons: Sequence[tuple[int, str]]) -> list[tuple[list[int], str]]:
    """Merge reasons that differ only in their numbers, and list the jumps of each.

    Args:
        reasons: Pairs of a jump number and a reason, which may be empty.

    Returns:
        For each kind of reason, the numbers of its jumps and the merged reason, with ranges in place of numbers that
        vary. The most frequent kind comes first.

    Example:
        >>> gathered_reasons([(1, "it lasts 2.5 steps"), (2, ""), (3, "it lasts 12 steps"), (4, "it lasts 4 steps")])
        [([1, 3, 4], 'it lasts 2.5 to 12 steps')]
    """
    kinds: dict[str, list[tuple[int, list[str]]]] = {}
    for jump, reason in reasons:
        if reason:
            kinds.setdefault(_NUMBER.sub("\0", reason), []).append((jump, _NUMBER.findall(reason)))
    found = []
    for kind, members in sorted(kinds.items(), key=lambda each: -len(each[1])):
        columns = zip(*(own for _, own in members), strict=True)
        found.append(([jump for jump, _ in members], _filled(kind, map(_range, columns))))
    return found


def _range(numbers: Sequence[str]) -> str:
    low, high = (pick(numbers, key=float) for pick in (min, max))
    return low if float(low) == float(high) else f"{low} to {high}"


def _filled(kind: str, ranges: Iterable[str]) -> str:
    left = iter(ranges)
    return re.sub("\0", lambda _: next(left), kind)
