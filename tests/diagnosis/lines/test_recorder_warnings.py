"""The warnings of a recorder reach the diagnosis of its run."""

from __future__ import annotations

import pytest

from dynascope.diagnosis import RecorderWarning, diagnose

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("is_cleared", [False, True])
def test_a_warning_is_in_the_diagnosis_of_the_folder(tmp_path, is_cleared):
    from dynascope.torch import Recorder

    model = torch.nn.Linear(3, 1)
    optimizer, inputs = torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(8, 3)
    path = tmp_path / "run.zarr"

    def train():
        with Recorder(model, path, reference=inputs, optimizer=optimizer, verbose=False) as recorder:
            for _ in range(3):
                loss = model(inputs).square().mean()
                loss.backward()
                optimizer.step()
                if is_cleared:
                    optimizer.zero_grad()
                recorder.step(loss=loss)
                optimizer.zero_grad()

    if is_cleared:
        with pytest.warns(RecorderWarning, match="there are no gradients"):
            train()
    else:
        train()
    line = next(each for each in diagnose(path).lines if each.topic == "recorder")
    assert line.state == ("warnings" if is_cleared else "no warnings")
    assert ("there are no gradients" in line.sentence) == is_cleared
