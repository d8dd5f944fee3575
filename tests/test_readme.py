import re
from pathlib import Path

import pytest

import dynascope
from dynascope import cli

PROJECT = Path(__file__).parents[1]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
ERROR = re.compile(r"([+-]\d+\.\d+) %")
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")


@pytest.mark.slow
def test_the_python_example_of_the_readme_runs_as_written(tmp_path, monkeypatch, capsys):
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile(example, "README.md", "exec"), {})
    assert capsys.readouterr().out.lower().count("nine") == 2
    assert (tmp_path / "staircase.png").stat().st_size > 10_000


@pytest.mark.slow
def test_the_numbers_of_the_readme_are_those_that_its_command_prints(tmp_path, monkeypatch, capsys):
    (command,) = re.findall(r"^    dynascope (predict .*)$", README, re.MULTILINE)
    (told,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    assert cli.main(command.split()) == 0
    printed = capsys.readouterr().out
    # Of a time and a level four digits are printed, of an error one after the point; the last may differ by the solver.
    for pattern, tolerance in ((ERROR, {"abs": 0.11}), (NUMBER, {"rel": 2e-3})):
        expected, found = ([float(number) for number in pattern.findall(text)] for text in (told, printed))
        assert found == pytest.approx(expected, **tolerance)
        told, printed = pattern.sub("", told), pattern.sub("", printed)


def test_every_file_that_the_readme_links_to_exists():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    missing = [link for link in links if not link.startswith("https://") and not (PROJECT / link).is_file()]
    assert len(links) > 5
    assert missing == []


def test_the_citation_and_the_changelog_know_this_version():
    assert f"\nversion: {dynascope.__version__}\n" in (PROJECT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## [{dynascope.__version__}]" in (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
