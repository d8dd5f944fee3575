"""The record of a run: creation, resumption from a checkpoint, and one writer at a time."""

import numpy as np
import pytest

from dynascope.diagnosis.recorded_run import RecordedRun
from dynascope.diagnosis.snapshot import Initial
from dynascope.errors import InputError

ROW = {"loss": ([], np.array(4.0)), "norm": (["parameter"], np.array([1.0, 2.0]))}
VALUES = {name: value for name, (_, value) in ROW.items()}
INITIAL = Initial(
    weights={"layer.w": np.array([[1.0, -2.0]], np.float32), "b": np.array(3.0)},
    active={"relu": np.array([[True, False, True]] * 5), "none": np.zeros((0, 4), bool)},
    kernel=np.eye(2),
)


def create(path, **changed):
    options = {"names": {"loss": ("loss", "1")}, "attributes": {"model": "m"}, **changed}
    return RecordedRun.create(path, 0, ROW, {"parameter": ["layer.w", "b"]}, INITIAL, **options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run.zarr"


def recorded(path, steps):
    run = create(path)
    for step in steps:
        run.append(step, {"loss": float(step), "norm": np.full(2, step)})
    run.close()


def test_rows_and_metadata(path):
    recorded(path, [5, 10])
    run, _, last = RecordedRun.resume(path, 10, VALUES)
    found = run.read()
    run.close()
    assert found["step"].values.tolist() == [0, 5, 10]
    assert found["loss"].values.tolist() == [4, 5, 10]
    assert found["norm"].sel(parameter="b").values.tolist() == [2, 5, 10]
    assert found["loss"].attrs["long_name"] == "loss"
    assert found.attrs["model"] == "m"
    assert last["norm"].tolist() == [10, 10]


@pytest.mark.parametrize(("step", "left"), [(0, [0]), (5, [0, 5]), (7, [0, 5]), (100, [0, 5, 10])])
def test_resuming_removes_the_rows_after_the_checkpoint(path, step, left):
    recorded(path, [5, 10])
    run, _, last = RecordedRun.resume(path, step, VALUES)
    assert run.read()["step"].values.tolist() == left
    assert int(last["loss"]) == (left[-1] or 4)
    for later in (101, 102):
        run.append(later, {"loss": 0.5, "norm": np.zeros(2)})
    run.close()
    run, _, _ = RecordedRun.resume(path, 1000, VALUES)
    assert run.read()["step"].values.tolist() == [*left, 101, 102]
    run.close()


def test_the_initial_snapshot_is_restored_exactly(path):
    recorded(path, [])
    run, found, _ = RecordedRun.resume(path, 0, VALUES)
    run.close()
    for one, other in ((INITIAL.weights, found.weights), (INITIAL.active, found.active)):
        assert list(one) == list(other)
        for name, value in one.items():
            assert other[name].dtype == value.dtype
            np.testing.assert_array_equal(other[name], value)
    np.testing.assert_array_equal(found.kernel, INITIAL.kernel)
    assert found.exact_kernel is None


def test_an_existing_path_is_rejected(path):
    recorded(path, [])
    with pytest.raises(InputError, match="exists") as error:
        create(path)
    assert error.value.argument == "path"


def test_a_second_writer_is_rejected_until_the_first_closes(path):
    first = create(path)
    with pytest.raises(InputError, match="another recorder"):
        create(path)
    with pytest.raises(InputError, match="another recorder"):
        RecordedRun.resume(path, 0, VALUES)
    first.close()
    RecordedRun.resume(path, 0, VALUES)[0].close()


def test_other_probes_or_models_cannot_resume(path):
    recorded(path, [5])
    with pytest.raises(InputError, match="another model or of other probes"):
        RecordedRun.resume(path, 5, {**VALUES, "norm": np.ones(3)})
    with pytest.raises(InputError, match="another model or of other probes"):
        RecordedRun.resume(path, 5, {"loss": np.array(1.0)})
    run, _, _ = RecordedRun.resume(path, 5, VALUES)  # a rejected recorder has changed nothing and holds no lock
    assert run.read().sizes["step"] == 2
    run.close()


def test_a_path_that_is_no_record_is_rejected(tmp_path):
    with pytest.raises(InputError, match="not the record of a training run"):
        RecordedRun.resume(tmp_path, 0, VALUES)


def test_a_record_that_starts_after_the_checkpoint_is_rejected_unchanged(path):
    run = RecordedRun.create(path, 7, ROW, {"parameter": ["layer.w", "b"]}, INITIAL, names={}, attributes={})
    run.close()
    with pytest.raises(InputError) as error:
        RecordedRun.resume(path, 6, VALUES)
    assert error.value.argument == "resume"
    run, _, _ = RecordedRun.resume(path, 7, VALUES)
    assert run.read()["step"].values.tolist() == [7]
    run.close()
