"""What the how-to tells users of PyTorch to write."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs/how-to/check-conservation-laws.md"


@pytest.mark.slow
def test_the_program_for_pytorch_shows_its_symmetries_and_finds_what_its_loop_does():
    pytest.importorskip("torch", reason="PyTorch is an optional extra")
    program, shown = re.findall(r"```(?:python|text)\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert printed(program) == shown
    clipped = [line for line in program.splitlines(keepends=True) if "clip_grad_value_" in line]
    assert len(clipped) == 1
    *_, kept = printed(program.replace(clipped[0], "").replace("audited.cause.name", "audited.cause")).splitlines()
    assert kept == "True None"


def printed(program):
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(program, {})
    return said.getvalue()
