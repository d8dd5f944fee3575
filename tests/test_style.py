"""Lint, format and types, as the settings in `pyproject.toml` ask for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["ruff", "check", "--no-cache", "."], id="lint"),
        pytest.param(["ruff", "format", "--no-cache", "--check", "."], id="format"),
        pytest.param(["pyright", "--pythonpath", sys.executable], id="types"),
    ],
)
def test_the_sources_keep_the_rules(command):
    # Types make many objects that live long, which a small nursery would have copied again and again.
    settings = {**os.environ, "NODE_OPTIONS": "--max-semi-space-size=128"}
    done = subprocess.run([sys.executable, "-m", *command], cwd=PROJECT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
