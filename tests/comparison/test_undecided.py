from __future__ import annotations

import numpy as np
import pytest

from dynascope.comparison import compare
from dynascope.comparison.undecided import leave_undecided
from dynascope.results import make_record
from dynascope.studies.tolerances import limit_tolerances


def record(values, **attributes):
    return make_record({"loss": (("time",), values)}, {"time": np.arange(3.0)}, attributes=attributes)


@pytest.mark.parametrize(("seen", "verdict"), [(1.05, "agree"), (1.3, "disagree")])
def test_a_verdict_is_taken_back_with_its_errors(seen, verdict):
    limits = np.ones(3)
    told = limit_tolerances({"loss": (limits, 0.1 * limits)}, 0.0, "finite size")
    tree = compare(record(seen * limits), record(limits, **told))
    assert tree.verdict.outcome == verdict
    tree = leave_undecided(tree, "Too rough.")
    assert (tree.verdict.outcome, tree.verdict.sentence) == ("undecided", "Too rough.")
    assert all(np.isnan(each.error) for each in tree.quantities.values())
