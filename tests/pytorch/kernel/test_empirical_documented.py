"""What the how-to tells users of PyTorch to write."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs/how-to/see-your-features.md"


def test_the_program_for_pytorch_says_that_the_kernel_has_moved(capsys):
    pytest.importorskip("torch", reason="PyTorch is an optional extra")
    (program,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    exec(program, {})
    algorithm, distance = capsys.readouterr().out.split()
    assert algorithm == "structured"
    # Half of the way to a kernel without anything in common would be a half.
    assert 0.005 < float(distance) < 0.5
