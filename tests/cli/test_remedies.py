from __future__ import annotations

import pytest

from dynascope.cli.remedies import in_options


@pytest.mark.parametrize(
    ("python", "command"),
    [
        ("No neuron was activated in 20000 steps; raise max_steps to go on.", "raise --max-steps to go on."),
        ("check the data for extreme values, or shorten the duration", "stop after fewer --jumps"),
        (
            'drop or fill them (missing="drop" or "mean", on the command line --missing), or leave out',
            "them (--missing),",
        ),
        ("the first loss fits loss='mse' (mean of the squares)", "fits --loss mse (mean"),
        ("give learning_rate=, one number", "give --learning-rate, one number"),
        ("Steps of learning rate 0.02 on loss = mean", "on loss = mean"),
    ],
)
def test_what_is_said_in_python_is_said_in_options(python, command):
    assert command in in_options(python)
