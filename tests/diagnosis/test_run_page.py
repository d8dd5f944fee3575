from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from recorded_runs import STEPS, write_run

from dynascope.diagnosis import load_run
from dynascope.diagnosis.run_findings import run_findings
from dynascope.errors import InputError
from dynascope.results import GrowingRecord, Observation, load, make_record

ROWS = len(STEPS)


def told(run: Observation, words: str) -> str:
    """The finding that contains some words, with plain spaces; empty if there is none."""
    found = [each.replace("\N{NO-BREAK SPACE}", " ") for each in run.findings]
    return next((each for each in found if words in each), "")


def chart_of(run: Observation, name: str) -> Any:
    return next((chart for chart in run.charts if name in chart.variables), None)


def test_findings_contain_the_first_and_last_values_of_the_record(tmp_path):
    run = load_run(write_run(tmp_path / "run.zarr"))
    assert told(run, "covers 100 steps")
    assert "from 2 (step 1) to 0.02 (step 100)" in told(run, "loss")
    assert "100 %" in told(run, "weights moved")
    assert "layers.1.weight" in told(run, "moved most")
    assert "0.3" in told(run, "pseudo-kernel is at distance")
    assert told(run, "20 % of the activations")
    assert told(run, "3.6 % of the time")  # 9 rows of two probes of 0.1 s in 50 s


@pytest.mark.parametrize(
    ("distance", "final", "regime"),
    [(0.005, 0.01, "lazy"), (0.05, 0.1, "undecided"), (0.3, 0.9, "rich"), (0.005, 0.9, "delayed rich")],
)
def test_the_regime_is_judged_when_most_of_the_decrease_of_the_loss_is_over(distance, final, regime):
    steps = [0, 1, 10, 100]
    record = make_record(
        {
            "mean_loss": (["step"], [np.nan, 2.0, 0.1, 0.0]),
            "kernel_distance": (["step"], [0.0, 0.0, distance, final]),
            "kernel_distance_of_halves": (["step"], [0.25, 0.25, 0.5, 0.5]),
        },
        {"step": steps},
    )
    found = next(each for each in run_findings(record) if "lazy" in each)
    assert found.startswith(f"Training was {regime}")
    assert "(step 10)" in found
    assert "0.25" in found


def test_a_loss_that_stops_being_finite_is_reported(tmp_path):
    losses = {"mean_loss": (["step"], np.where(STEPS > 18, np.inf, 1.0)), "loss_count": (["step"], np.ones(ROWS))}
    measured = np.repeat((STEPS <= 18)[:, None], 2, axis=1)
    run = load_run(write_run(tmp_path / "run.zarr", measured=(["step", "probe"], measured), **losses))
    assert f"from step {STEPS[STEPS > 18][0]}" in told(run, "not finite")
    assert not told(run, "budget")


def test_a_loss_that_recovers_is_reported_at_its_step(tmp_path):
    losses = {"mean_loss": (["step"], np.where(STEPS == 18, np.inf, 1.0)), "loss_count": (["step"], np.ones(ROWS))}
    run = load_run(write_run(tmp_path / "run.zarr", **losses))
    assert told(run, "was not finite at or shortly before step 18")
    assert not told(run, "on (or slightly earlier)")


def test_losses_that_are_not_logged_at_every_row_are_no_divergence(tmp_path):
    losses = {
        "mean_loss": (["step"], np.where(STEPS > 18, np.nan, 1.0)),
        "loss_count": (["step"], np.where(STEPS > 18, 0.0, 1.0)),
    }
    assert not told(load_run(write_run(tmp_path / "run.zarr", **losses)), "not finite")


def test_a_value_that_is_not_that_of_the_last_row_names_its_step(tmp_path):
    kernel = np.where(STEPS > 18, np.nan, 0.1)
    run = load_run(write_run(tmp_path / "run.zarr", kernel_distance=(["step"], kernel)))
    assert f"at step {STEPS[STEPS <= 18][-1]}" in told(run, "pseudo-kernel is at distance")


def test_charges_outside_the_bounds_of_their_laws_are_counted():
    values = {name: np.ones((ROWS, 3)) for name in ("measured_charge", "predicted_charge")}
    values["measured_charge"][-1, 0] = 1.1
    values["charge_bound"] = np.full((ROWS, 3), 1e-9)
    variables = {name: (["step", "charge"], each) for name, each in values.items()}
    record = make_record(variables, {"step": STEPS, "charge": ["a", "b", "c"]})
    assert any("1 of 3 conserved charges" in each for each in run_findings(record))


def test_a_negative_loss_is_allowed(tmp_path):
    run = load_run(write_run(tmp_path / "run.zarr", loss=(["step"], -np.ones(ROWS))))
    assert float(run["loss"][0]) == -1


def test_a_skipped_probe_is_reported_with_the_rows_that_were_due(tmp_path):
    measured = np.ones((ROWS, 2), bool)
    assert not told(load_run(write_run(tmp_path / "all.zarr", measured=(["step", "probe"], measured))), "budget")
    measured[5:7, 1] = False
    run = load_run(write_run(tmp_path / "some.zarr", measured=(["step", "probe"], measured)))
    assert "kernel at 8 of 10 rows" in told(run, "budget")


def test_a_probe_with_its_own_schedule_is_not_reported_where_it_was_not_due(tmp_path):
    steps = np.arange(ROWS)  # the kernel is due at 0, 1, 2, 3 and 6
    measured = np.stack([np.ones(ROWS, bool), np.isin(steps, [0, 1, 2, 3, 6])], axis=1)
    run = load_run(write_run(tmp_path / "run.zarr", step=(["step"], steps), measured=(["step", "probe"], measured)))
    assert not told(run, "budget")


def test_variables_without_values_have_no_figure(tmp_path):
    run = load_run(write_run(tmp_path / "run.zarr"))
    assert chart_of(run, "kernel_distance").variables == ("kernel_distance", "hamming_distance")
    assert chart_of(run, "nc1") is None
    assert chart_of(run, "dead_fraction") is None
    assert chart_of(run, "learning_rate") is None


def test_a_learning_rate_that_varies_has_a_figure(tmp_path):
    rates = np.linspace(0.1, 0.2, ROWS)[:, None]
    assert chart_of(
        load_run(write_run(tmp_path / "run.zarr", learning_rate=(["step", "group"], rates))), "learning_rate"
    )


def test_the_eight_parameters_that_change_most_are_drawn(tmp_path):
    chart = chart_of(load_run(write_run(tmp_path / "run.zarr", parameters=20)), "weight_norm")
    assert chart.members["parameter"] == tuple(f"layers.{k}.weight" for k in range(12, 20))
    assert "8 of 20" in chart.caption


@pytest.mark.parametrize(("steps", "log"), [(STEPS, True), (np.arange(ROWS), False)])
def test_steps_are_on_a_logarithmic_axis_if_most_rows_are_early(tmp_path, steps, log):
    run = load_run(write_run(tmp_path / "run.zarr", step=(["step"], steps)))
    assert {"x" in chart.log for chart in run.charts} == {log}


def test_another_growing_record_is_rejected(tmp_path):
    variables = {"step": (["step"], int), "loss": (["step"], float)}
    GrowingRecord.create(tmp_path / "other.zarr", variables, axis="step").close()
    with pytest.raises(InputError, match="is not the record of a training run"):
        load_run(tmp_path / "other.zarr")


def test_a_run_without_rows_or_parameter_groups_is_drawn(tmp_path):
    empty = write_run(tmp_path / "empty.zarr")
    GrowingRecord.open(empty).truncate(0)
    assert load_run(empty).findings == ("No step has been recorded yet.",)
    run = load_run(write_run(tmp_path / "run.zarr", groups=0))
    assert run.to_html(tmp_path / "run.html").is_file()
    assert run.plot().axes


@pytest.mark.slow
def test_findings_and_figures_survive_saving(tmp_path):
    run = load_run(write_run(tmp_path / "run.zarr"))
    run.save(tmp_path / "saved.zarr.zip")
    assert load(tmp_path / "saved.zarr.zip").findings == run.findings
    assert load(tmp_path / "saved.zarr.zip").charts == run.charts
    assert load_run(tmp_path / "saved.zarr.zip").charts == run.charts
