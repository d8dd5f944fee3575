import pytest
import xarray as xr

from dynascope.results import from_tree, make_record
from dynascope.studies.grokking.grokking_digits.page import figures, meaning
from dynascope.studies.grokking.grokking_digits.remedies import TABLE
from dynascope.studies.grokking.grokking_digits.study import GrokkingDigits


def result(fitted, generalised):
    """Two networks per run; the flags are those of the default networks, and all other networks learn."""
    labels, ones = {"run": list(TABLE), "seed": [0, 1]}, [True, True]
    values = {"train_step": [100.0, 100.0], "delay": [7900.0, 7900.0]}
    observed = {name: [each] * len(TABLE) for name, each in values.items()}
    observed["fitted"] = [fitted, *[ones] * (len(TABLE) - 1)]
    observed["generalised"] = [generalised, *[ones] * (len(TABLE) - 1)]
    record = make_record({name: (("run", "seed"), value) for name, value in observed.items()}, labels)
    return from_tree(xr.DataTree.from_dict({"observed": record, "predicted": record}))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("fitted", "generalised", "stated", "drawn"),
    [
        ([True, True], [True, True], "after 7900 more steps.", "none in this run"),
        (
            [True, True],
            [False, False],
            "is at least 7900 steps; this accuracy is not reached by the end of training.",
            "2 of 2 default networks (test images)",
        ),
        (
            [True, True],
            [True, False],
            "is at least 7900 steps; this accuracy is not reached by the end of training in 1 of 2 networks.",
            "1 of 2 default networks (test images)",
        ),
        (
            [False, True],
            [False, True],
            "the delay is unknown: 1 of 2 networks did not reach a training accuracy of",
            "1 of 2 default networks (training images)",
        ),
    ],
)
def test_a_delay_that_exceeds_the_training_is_a_lower_bound(fitted, generalised, stated, drawn):
    study, found = GrokkingDigits(seeds=2), result(fitted, generalised)
    captions = [each.caption for each in figures(study, found)]
    assert stated in meaning(study, found)
    assert stated in captions[0]
    assert drawn in captions[1]
    assert ("at least" in meaning(study, found)) == ("at least" in stated)
