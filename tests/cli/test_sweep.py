from __future__ import annotations

import json

import numpy as np
import pytest

from dynascope.cli.commands import main
from dynascope.sweeps import load_sweep

SMALL = ["--samples", "4", "--times", "20", "--workers", "0"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("sweep") / "s"
    axes = ["--over", "imbalance=-1:1:3", "--over", "initial-strength=0.1,0.2", "--over", "seed=0:2"]
    assert main(["sweep", "single-neuron", *axes, *SMALL, "--out", str(out)]) == 0
    return out


def test_every_cell_has_a_verdict_and_the_errors_of_the_study(folder):
    found = load_sweep(folder)
    assert found.counts == {"done": 12}
    assert found.record["verdict"].to_numpy().tolist() == [[["agree"] * 2] * 2] * 3
    assert float(found.record["error_loss"].max()) < 1e-4
    assert found.run["fields"] == {"samples": 4, "times": 20}


def test_the_page_has_maps_and_links_the_best_and_the_worst_cell(folder):
    page = (folder / "sweep.html").read_text()
    assert page.count("data:image/svg+xml") > 3
    for word in ("best", "worst"):
        assert f'href="sweep-{word}.html"' in page
        assert (folder / f"sweep-{word}.html").stat().st_size > 10_000
    shares = load_sweep(folder).record["error_share"]
    assert f"{float(shares.max()):.3g}" in page


def test_report_writes_the_page_again(folder, tmp_path):
    assert main(["report", str(folder), "--out", str(tmp_path / "page.html")]) == 0
    assert (tmp_path / "page.html").read_text().count("data:image/svg+xml") > 3


def test_a_sweep_continues_and_prints_one_json_object(folder, capsys):
    axes = ["--over", "imbalance=-1:1:3", "--over", "initial-strength=0.1,0.2", "--over", "seed=0:3"]
    assert main(["sweep", "single-neuron", *axes, *SMALL, "--out", str(folder), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["cells"] == {"done": 18, "failed": 0, "running": 0, "waiting": 0}
    assert answer["axes"] == {"imbalance": 3, "initial_strength": 2, "seed": 3}


def test_cells_that_fail_give_the_exit_code_three_and_their_reason(tmp_path, capsys):
    # With two samples, only two inputs can be whitened.
    axes = ["--over", "dimension=2,4", "--times", "20", "--samples", "2", "--workers", "0"]
    assert main(["sweep", "single-neuron", *axes, "--out", str(tmp_path / "s")]) == 3
    assert "samples is 2" in capsys.readouterr().out
    assert load_sweep(tmp_path / "s").counts == {"done": 1, "failed": 1}


def test_a_dry_run_states_the_cost_and_writes_nothing(tmp_path, capsys):
    axes = ["--over", "seed=0:30", *SMALL]
    assert main(["sweep", "single-neuron", *axes, "--out", str(tmp_path / "s"), "--dry-run", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["cells"] == 30
    assert answer["minutes"] > 0
    assert answer["bytes"] > 30 * 8
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--over", "imbalanc=1:2:3"], "no field imbalanc"),
        (["--over", "imbalance=1,1"], "twice"),
        (["--over", "imbalance=1,2", "--over", "imbalance=3,4"], "twice"),
        (["--over", "initial-strength=0:1:3log"], "logarithmic"),
        (["--over", "alignment=-2:0:3"], "alignment is -2"),
        (["--over", "seed=0:20000"], "--yes"),
        ([], "--over"),
        (["--over", "seed=0:2", "--cluster", "local:none"], "local:N"),
    ],
)
def test_bad_options_are_rejected_by_name(tmp_path, capsys, options, problem):
    assert main(["sweep", "single-neuron", *options, "--out", str(tmp_path / "s")]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.slow
def test_a_student_over_scales_has_a_map_of_the_kernel_distance(tmp_path):
    axes = ["--over", "overall-scales=0.1,2", "--over", "relative-scales=-1,1", "--over", "seed=0:2"]
    small = ["--samples", "60", "--inputs", "10", "--width", "10", "--test-samples", "100", "--duration", "1000"]
    small += ["--times", "8", "--plane-width", "10", "--seeds", "2", "--workers", "0"]
    assert main(["sweep", "student-teacher", *axes, *small, "--out", str(tmp_path / "s")]) == 0
    distance = load_sweep(tmp_path / "s").record["mean_kernel_distance"]
    assert distance.dims == ("overall_scales", "relative_scales", "seed")
    assert float(distance.sel(overall_scales=0.1).min()) > 3 * float(distance.sel(overall_scales=2.0).max())
    assert np.isfinite(distance).all()
