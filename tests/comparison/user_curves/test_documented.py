"""What the how-to tells users of PyTorch to write."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[3] / "docs/how-to/compare-your-training-curve.md"


@pytest.mark.slow
def test_the_program_for_pytorch_agrees(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    monkeypatch.chdir(tmp_path)
    program, saved = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    names: dict = {}
    exec(program, names)
    exec(saved, names | {"np": np})
    assert np.load("start.npz")["W1"].shape == (50, 6)
    assert names["tree"].verdict.outcome == "agree"
    assert (tmp_path / "run.html").exists()
