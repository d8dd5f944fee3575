from __future__ import annotations

from dynascope.theory import assumptions
from dynascope.theory.assumptions import Assumption

ALL = [each for each in vars(assumptions).values() if isinstance(each, Assumption)]


def test_limits_are_in_order():
    assert all(0 <= each.limit <= each.almost for each in ALL)


def test_names_tell_them_apart():
    assert len({each.name for each in ALL}) == len(ALL)
