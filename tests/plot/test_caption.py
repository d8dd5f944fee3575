from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dynascope.errors import InputError
from dynascope.plot import fill_caption
from dynascope.results import make_record

SPACE = "\N{NO-BREAK SPACE}"


@pytest.fixture
def tree() -> xr.DataTree:
    record = make_record(
        {
            "strength": (["mode", "time"], [[0.1, 0.8], [0.0, 0.25]]),
            "slope": ([], 1.23456),
            "dust": ([], -2e-16),
            "late": (["mode"], [1740.93, 2.345e6]),
            "speed": (["start"], [1.0, 2.0]),
            "reached": (["mode"], [np.nan, 3.0]),
            "never": (["mode"], [np.nan, np.nan]),
            "jump_time": (["jump"], []),
        },
        {"time": [0.0, 1.0], "mode": [1, 2], "start": ["small", "large"], "jump": []},
    )
    tree = xr.DataTree.from_dict({"observed": record})
    tree.attrs |= {
        "parameters": {"width": 64, "inputs": "whitened"},
        "agreement": {
            "loss": {"error": 2.5e-7, "tolerance": 0.02, "agrees": True},
            "level": {"error": None, "tolerance": 0.02},
        },
    }
    return tree


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("no number", "no number"),
        ("{observed.slope}", "1.23"),
        ("{observed.strength[mode=2]:last:percent}", f"25{SPACE}%"),
        ("{observed.strength:most} and {observed.strength:least}", "0.8 and 0"),
        ("{observed.strength[mode=1]:mean}, {observed.strength[mode=1]:median}", "0.45, 0.45"),
        ("{observed.speed[start=large]}", "2"),
        ("{observed.strength[time=last]:least}, {observed.strength[time=last][mode=first]}", "0.25, 0.8"),
        ("{observed.reached:most}, {observed.reached:first}, {observed.never:mean}", "3, –, –"),
        ("{observed.jump_time:last}, {agreement.level:percent}", f"–, –{SPACE}%"),
        ("{parameters.width} neurons, {parameters.inputs}", "64 neurons, whitened"),
        ("{agreement.loss} of {agreement.loss.tolerance}", f"2.5{SPACE}×{SPACE}10⁻⁷ of 0.02"),
        ("{observed.dust:percent}", f"0{SPACE}%"),
        ("{observed.late:first}, {observed.late:last}", f"1740, 2.34{SPACE}×{SPACE}10⁶"),
        ("the set {{1, 2}}", "the set {1, 2}"),
    ],
)
def test_a_caption_holds_the_numbers_that_it_names(tree, template, text):
    assert fill_caption(template, tree) == text


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{observed.los:last}", "there is no 'los': choose from .*strength"),
        ("{observed.strength[mode=3]:last}", "there is no '3': choose from 1, 2"),
        ("{observed.strength[depth=3]:last}", "there is no 'depth'"),
        ("{observed.strength:last}", "which is 4 numbers: choose a member"),
        ("{observed.strength}", "which is 4 numbers: choose a member .* or end in one of :first"),
        ("{predicted.strength:last}", "the tree has no 'predicted': choose from observed"),
        ("{agreement.slope}", "there is no 'slope': choose from loss"),
        ("{parameters.depth}", "there is no 'depth': choose from width, inputs"),
        ("{1 + 1}", r"the caption names '1 \+ 1'"),
    ],
)
def test_a_number_that_is_not_there_is_bad_input(tree, template, problem):
    with pytest.raises(InputError, match=problem):
        fill_caption(template, tree)
