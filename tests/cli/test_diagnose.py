from __future__ import annotations

import json

import pytest
import torch

from dynascope.cli.commands import main
from dynascope.torch import Recorder


@pytest.fixture
def recorded(tmp_path):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
    with torch.no_grad():
        for each in model.parameters():
            each *= 0.3
    optimizer, x = torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(64, 2)
    y = x[:, :1] * x[:, 1:]
    path = tmp_path / "run.zarr"
    with Recorder(
        model, path, reference=(x, y), optimizer=optimizer, criterion=torch.nn.MSELoss(), verbose=False
    ) as recorder:
        for _ in range(300):
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            recorder.step(loss=loss)
            optimizer.zero_grad()
    return path


def test_the_command_prints_the_summary_and_writes_a_page(recorded, capsys):
    assert main(["diagnose", str(recorded)]) == 0
    printed = capsys.readouterr().out
    page = recorded.with_name("run-diagnosis.html")
    assert str(page) in printed.replace("\n", "")
    text = page.read_text(encoding="utf-8")
    assert "What was measured" in text
    assert "lazy" in text


def test_json_contains_every_line_with_its_number_and_threshold(recorded, capsys):
    assert main(["diagnose", str(recorded), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    lines = {each["topic"]: each for each in found["lines"]}
    assert lines["regime"]["state"] == "rich"
    assert lines["regime"]["number"] >= lines["regime"]["threshold"]
    assert not recorded.with_name("run-diagnosis.html").exists()


def test_a_path_that_is_not_a_run_is_rejected(tmp_path, capsys):
    assert main(["diagnose", str(tmp_path / "missing.zarr")]) == 2
    assert "missing.zarr" in capsys.readouterr().err
