from __future__ import annotations

import shutil
import subprocess

import pytest

from dynascope.cli.commands import main

WORDS = ("list", "predict", "linear-staircase", "--initial-strength", "--scale")


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_complete_commands_studies_and_their_options(tmp_path, shell):
    script = tmp_path / "dynascope"
    assert main(["--tyro-write-completion", shell, str(script)]) == 0
    assert all(word in script.read_text("utf-8") for word in WORDS)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_a_study(tmp_path):
    script = tmp_path / "dynascope"
    assert main(["--tyro-write-completion", "bash", str(script)]) == 0
    asked = f"""
source {script}
COMP_WORDS=(dynascope run linear-s) COMP_CWORD=2
"$(complete -p dynascope | sed 's/.*-F \\([^ ]*\\) .*/\\1/')"
echo "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["linear-staircase"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--tyro-write-completion"], "choose 'bash', 'zsh' or 'fish'"),
        (["--tyro-print-completion", "csh"], "choose 'bash', 'zsh' or 'fish'"),
        (["--tyro-write-completion", "bash"], "give the path of a file"),
        (["--tyro-write-completion", "bash", "nowhere/dynascope"], "give the path of a file"),
        (["--tyro-write-completion", "bash", "."], "give the path of a file"),
    ],
)
def test_a_completion_that_cannot_be_is_refused(capsys, monkeypatch, tmp_path, arguments, problem):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert problem in capsys.readouterr().err
