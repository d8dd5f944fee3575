from __future__ import annotations

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.studies import find_study

ContinualLearning = find_study("continual-learning")


@pytest.mark.slow
def test_as_much_is_forgotten_in_the_end_whatever_the_balance():
    predicted = ContinualLearning(**ContinualLearning.tiny | {"balances": 5}).predict()
    # At the last time e⁻⁴ of the slowest network's error is left.
    end = float(predicted["old_loss_at_the_end"])
    np.testing.assert_allclose(predicted["old_loss"][:, -1], end, rtol=0.1)


@pytest.mark.slow
def test_a_large_first_layer_forgets_late_where_there_are_more_inputs():
    loss = ContinualLearning(**ContinualLearning.tiny | {"largest_balance": 2.0}).predict()["loss"].to_numpy()
    negative, positive = loss
    assert np.all(negative[1:] > positive[1:])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("weakest", bad) for bad in (0.0, -1.0, 5.0, np.nan)),
        *(("times", bad) for bad in (1, 0)),
        *(("balances", bad) for bad in (1, 0)),
        *(("largest_balance", bad) for bad in (0.0, np.inf)),
        *(("inputs", bad) for bad in (0, -2)),
    ],
)
def test_a_field_out_of_range_is_refused_by_name_when_the_study_is_made(field, value):
    with pytest.raises(InputError) as refusal:
        ContinualLearning(**ContinualLearning.tiny | {field: value})
    assert refusal.value.argument == field
