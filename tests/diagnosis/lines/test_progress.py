"""The line on progress, in runs that learn and in those that do not."""

from __future__ import annotations

import pytest

from dynascope.diagnosis.lines.progress import progress
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results import make_record


@pytest.mark.parametrize(
    ("losses", "state"),
    [([2.0, 1.7], "learned"), ([2.0, 1.9], "did not learn"), ([2.0, 3.0], "did not learn"), ([2.0], "not measured")],
)
def test_the_loss_must_fall_by_a_tenth(losses, state):
    record = make_record({"mean_loss": (["step"], losses)}, {"step": list(range(len(losses)))})
    assert progress(RunFacts(record)).state == state
