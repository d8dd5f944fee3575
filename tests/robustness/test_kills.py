"""Processes that are killed while they write."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

WRITERS = Path(__file__).with_name("killed_writers.py")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no forks")
@pytest.mark.parametrize("way", ["exchange", "rename"])
def test_a_kill_at_any_moment_leaves_one_record_or_the_other_and_a_path_to_save_to(tmp_path, way):
    done = subprocess.run(
        [sys.executable, str(WRITERS), str(tmp_path), "30", way], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert told["kills"] == 30
    # Otherwise they came between two records, and nothing was tried.
    assert told["amid"] >= 10
