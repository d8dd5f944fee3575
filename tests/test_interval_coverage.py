"""The benchmark of intervals: what its table says, what it keeps, and a few of its draws."""

from __future__ import annotations

import interval_coverage as benchmark
import pytest
from resumable import rows

TABLE = rows(benchmark.FILE)


def share(row, name):
    return float(row[name].removesuffix("%")) / 100


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['interval of']}, {row['design']}, {row['runs']}")
def test_the_intervals_of_the_documentation_hold_the_truth_as_often_as_they_say_or_warn(row):
    draws = benchmark.FEWER.get(row["interval of"].partition(":")[0], benchmark.DRAWS)
    assert int(row["draws"]) == draws
    assert share(row, "refused") <= 0.1
    if "Kaplan" in row["design"]:
        assert share(row, "warned") == 1
        return
    if "first" in row["design"] or "delayed" in row["design"]:
        assert share(row, "warned") >= 0.99
        return
    # What 2 000 draws show, and three deviations of the binomial law of fewer.
    more = 3 * (0.95 * 0.05) ** 0.5 * (draws**-0.5 - benchmark.DRAWS**-0.5)
    # A floor that is zero cannot be missed from below.
    highest = 1.0 if "floor 0%" in row["design"] else 0.98
    assert 0.92 - more <= share(row, "held the truth") <= highest + more
    sound = "broken" not in row["design"] and "joint" in row["interval of"]
    if sound or ("power law" in row["interval of"] and int(row["runs"]) != 2):
        assert share(row, "warned") <= 0.03


def test_the_table_has_every_number_of_runs_of_every_subject_and_no_other_design():
    designs = {(design.name, str(design.runs)) for design in benchmark.DESIGNS}
    assert {(row["design"], row["runs"]) for row in TABLE} <= designs
    kept = {(row["interval of"].partition(":")[0], row["runs"]) for row in TABLE}
    assert kept == {(design.subject, str(design.runs)) for design in benchmark.DESIGNS}


@pytest.mark.slow
@pytest.mark.parametrize("subject", ["power law", "calibration", "effect"])
def test_a_few_draws_hold_the_truth_as_often_as_they_say(subject):
    design = next(each for each in benchmark.DESIGNS if each.subject == subject and each.runs == 3)
    for row in benchmark.covered(design, 40):
        # 38 of 40 with three deviations of 1.4.
        assert share(row, "held the truth") >= 0.84


def test_designs_that_the_file_holds_are_not_drawn_again(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(benchmark, "covered", lambda design, draws: drawn.append(design) or [])
    file = tmp_path / "table.csv"
    file.write_text(benchmark.FILE.read_text())
    monkeypatch.setattr("sys.argv", ["interval_coverage", "--file", str(file), "--only", "effect"])
    benchmark.main()
    assert not drawn
    monkeypatch.setattr("sys.argv", ["interval_coverage", "--file", str(tmp_path / "none.csv"), "--only", "effect"])
    benchmark.main()
    assert {design.subject for design in drawn} == {"effect"}
