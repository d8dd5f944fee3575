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
        pytest.param(["pyright", "--pythonpath", sys.executable], id="types", marks=pytest.mark.slow),
    ],
)
def test_the_sources_keep_the_rules(command):
    # Types make many objects that live long, which a small nursery would have copied again and again. The Node.js that
    # is installed with them is newer than that of many a machine, which takes half as long again.
    settings = {**os.environ, "NODE_OPTIONS": "--max-semi-space-size=128", "PYRIGHT_PYTHON_GLOBAL_NODE": "off"}
    done = subprocess.run([sys.executable, "-m", *command], cwd=PROJECT, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
