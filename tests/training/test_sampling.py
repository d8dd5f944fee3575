import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.tasks import Expectation, SparseParity, Task
from dynascope.training.sampling import chosen_batches, chosen_steps

TASK = Task(np.eye(6), np.ones((6, 1)))
STREAM = SparseParity(skills=2, bits=4, relevant_bits=2)
NONE = {"replacement": False, "augmentation": None}


@pytest.mark.usefixtures("unchecked_types")
def test_a_batch_and_its_parts():
    batches, parts = chosen_batches(TASK, np.int64(4), 2, "shared", **NONE)
    assert (batches.size, batches.samples, batches.per_epoch, parts) == (4, 6, 1, 2)
    assert type(batches.size) is int
    assert hash(batches) == hash(chosen_batches(TASK, 4, None, "shared", **NONE).batches)
    whole, parts = chosen_batches(TASK, None, 3, "independent", **NONE)
    assert (whole.size, whole.per_epoch, whole.independent, parts) == (None, 1, True, 2)


@pytest.mark.parametrize(
    ("task", "size", "micro", "options", "argument"),
    [
        (TASK, 7, None, {}, "batch_size"),
        (TASK, 0, None, {}, "batch_size"),
        (TASK, True, None, {}, "batch_size"),
        (TASK, 2.0, None, {}, "batch_size"),
        (TASK, 4, 3, {}, "micro_batch_size"),
        (TASK, None, 4, {}, "micro_batch_size"),
        (TASK, None, None, {"replacement": True}, "replacement"),
        (STREAM, None, None, {}, "batch_size"),
        (STREAM, 4, None, {"replacement": True}, "replacement"),
        (Expectation(lambda network: 0.0), 4, None, {}, "batch_size"),
        (Expectation(lambda network: 0.0), None, 4, {}, "micro_batch_size"),
        (Expectation(lambda network: 0.0), None, None, {"augmentation": lambda key, x: x}, "augmentation"),
    ],
)
@pytest.mark.usefixtures("unchecked_types")
def test_batches_that_a_task_cannot_fill_are_refused(task, size, micro, options, argument):
    with pytest.raises(InputError) as caught:
        chosen_batches(task, size, micro, "shared", **NONE | options)
    assert caught.value.argument == argument


def test_with_replacement_a_batch_may_be_larger_than_the_data():
    batches, _ = chosen_batches(TASK, 20, None, "shared", **NONE | {"replacement": True})
    assert (batches.size, batches.per_epoch) == (20, None)


def test_steps_are_counted_or_epochs_are():
    count, recorded, epochs = chosen_steps(None, 4, None, None, 3)
    assert (count, recorded.tolist(), epochs.tolist()) == (12, [0, 3, 6, 9, 12], [0, 1, 2, 3, 4])
    count, recorded, epochs = chosen_steps(13, None, None, [0, 2, 4], 3)
    assert (count, recorded.tolist(), epochs.tolist()) == (13, [0, 6, 12], [0, 2, 4])
    count, recorded, epochs = chosen_steps(None, 4, range(0, 13, 5), None, 3)
    assert (count, recorded.tolist(), epochs) == (12, [0, 5, 10], None)
    count, recorded, _ = chosen_steps(1000, None, 4, None, 3)
    assert (count, recorded.tolist()) == (1000, [0, 1, 32, 1000])


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ((None, None, None, None, 3), "steps"),
        ((5, 5, None, None, 3), "steps"),
        ((0, None, None, None, 3), "steps"),
        ((None, 0, None, None, 3), "epochs"),
        ((None, 5, None, None, None), "epochs"),
        ((5, None, None, [0, 1], None), "record_epochs"),
        ((5, None, [0, 5], [0, 1], 3), "record_epochs"),
        ((5, None, None, [0, 2], 3), "record_epochs"),
        ((5, None, [0, 6], None, 3), "record_steps"),
        ((5, None, [3, 2], None, 3), "record_steps"),
        ((5, None, 1, None, 3), "record_steps"),
    ],
)
def test_steps_that_make_no_sense_are_refused(options, argument):
    with pytest.raises(InputError) as caught:
        chosen_steps(*options)
    assert caught.value.argument == argument
