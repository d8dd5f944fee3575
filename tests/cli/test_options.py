from __future__ import annotations

import dataclasses

import pytest

from dynascope.cli.options import check_options, with_bounds_in_help
from dynascope.errors import InputError
from dynascope.validation.bounded_scalars import Fraction, PositiveFloat, PositiveInt


@with_bounds_in_help
@dataclasses.dataclass(frozen=True)
class Group:
    """A group.

    Args:
        rate: Of steps, described
            on two lines.
        rates: Not a rate.
    """

    rate: PositiveFloat | None = None
    rates: int = 0


@with_bounds_in_help
@dataclasses.dataclass(frozen=True)
class Command:
    """A command.

    Args:
        group: A group.
        share: A share.
        count: A count.
    """

    group: Group = dataclasses.field(default_factory=Group)
    share: Fraction = 0.5
    count: PositiveInt = 1


def test_the_bounds_of_an_option_end_its_description():
    assert "            on two lines. Above 0.\n        rates: Not a rate.\n" in (Group.__doc__ or "")
    assert "        share: A share. Between 0 and 1.\n        count: A count.\n" in (Command.__doc__ or "")


@pytest.mark.parametrize(
    ("command", "argument"),
    [
        (Command(share=1.5), "share"),
        (Command(count=0), "count"),
        (Command(Group(rate=-1.0)), "rate"),
        (Command(Group(rate=float("nan"))), "rate"),
    ],
)
def test_options_of_groups_are_checked_too(command, argument):
    check_options(Command(Group(rate=1.0)))
    with pytest.raises(InputError) as caught:
        check_options(command)
    assert caught.value.argument == argument
