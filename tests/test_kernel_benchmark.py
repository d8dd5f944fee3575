"""The table of the benchmark of the tangent kernel."""

from __future__ import annotations

import neural_tangent_kernel
import numpy as np
import pytest


@pytest.mark.parametrize("unmeasured", [[], ["torch"], ["module"], ["structured"], ["torch", "module", "structured"]])
def test_the_table_prints_every_ratio_and_marks_memory_that_was_not_measured(capsys, unmeasured):
    sides = ["structured", "module", "jacobian", "torch"]
    found = {name: {"seconds": 2.0, "bytes": 0 if name in unmeasured else 3e6} for name in sides}
    neural_tangent_kernel.print_table(found, dict.fromkeys(sides, np.eye(2)))
    printed = capsys.readouterr().out
    assert [line.split()[0] for line in printed.splitlines()[1:5]] == sides
    assert ("not measured" in printed) == bool(unmeasured)
    assert ("memory ratio 1.000" in printed) == (not {"torch", "module"} & set(unmeasured))
