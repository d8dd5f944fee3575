"""What suites ask of every public function of theory; one that a face re-exports takes part without further words."""

from __future__ import annotations

import pytest
from documented import Call, Member
from theory_functions import MEMBERS


@pytest.fixture(scope="module", params=MEMBERS.values(), ids=MEMBERS)
def member(request) -> Member:
    return request.param


@pytest.fixture
def call(member) -> Call:
    assert member.calls, "the example does not call it"
    return member.calls[0]
