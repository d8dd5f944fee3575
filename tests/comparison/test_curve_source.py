from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from dynascope.comparison import own_curve
from dynascope.comparison.curve_source import rate_of_each_step, read_curve
from dynascope.errors import InputError

LOSSES = [1.0, 0.75, 0.5]


def curve(losses, **more):
    return own_curve(losses, **{"learning_rate": 0.1, "loss": "mse"} | more)


def write(folder, text):
    path = folder / "run.csv"
    path.write_text(text)
    return path


def test_arrays_of_numpy_and_jax_lists_tuples_and_series_are_the_same_curve():
    kinds = [
        np.array(LOSSES),
        jnp.array(LOSSES),
        LOSSES,
        tuple(LOSSES),
        pd.Series(LOSSES),
        [jnp.array(x) for x in LOSSES],
    ]
    for each in kinds:
        np.testing.assert_array_equal(curve(each)["loss"], LOSSES)
        np.testing.assert_array_equal(curve(each)["time"], [0, 1, 2])


def test_tensors_of_pytorch_are_taken_also_while_they_require_gradients():
    torch = pytest.importorskip("torch")
    whole = torch.tensor(LOSSES, requires_grad=True)
    for each in (whole, list(whole), whole.bfloat16()):
        np.testing.assert_array_equal(curve(each)["loss"], LOSSES)


def test_the_index_of_a_series_counts_the_steps():
    rare = pd.Series(LOSSES, index=[0, 100, 250])
    np.testing.assert_array_equal(curve(rare)["time"], [0, 100, 250])
    over_time = curve(rare.rename_axis("time"), learning_rate=None)
    assert over_time["time"].attrs["units"] == "sum of learning rates"


@pytest.mark.parametrize(
    "text",
    [
        "step,loss\n0,1.0\n10,0.75\n20,0.5\n",
        "loss, Step\n1.0, 0\n0.75, 10\n0.5, 20\n",
        "step,accuracy,loss\n0,0.1,1.0\n10,0.2,0.75\n20,0.3,0.5\n",
        "step,train_mse\n0,1.0\n10,0.75\n20,0.5\n",
    ],
)
def test_columns_of_a_file_are_found_by_name(tmp_path, text):
    for found in (curve(write(tmp_path, text)), curve(str(write(tmp_path, text)))):
        np.testing.assert_array_equal(found["loss"], LOSSES)
        np.testing.assert_array_equal(found["time"], [0, 10, 20])


@pytest.mark.parametrize("text", ["loss\n1.0\n0.75\n0.5\n", "1.0\n0.75\n0.5\n", "mse\n1\n.75\n.5\n"])
def test_a_single_column_is_the_loss_of_every_step(tmp_path, text):
    np.testing.assert_array_equal(curve(write(tmp_path, text))["loss"], LOSSES)
    np.testing.assert_array_equal(curve(write(tmp_path, text))["time"], [0, 1, 2])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("step,train,test\n0,1.0,1.1\n1,0.5,0.6\n", "'step', 'train', 'test'"),
        ("epoch,loss\n0,1.0\n1,0.5\n", "'epoch', 'loss'"),
        ("time,step,loss\n0,0,1.0\n1,1,0.5\n", "'time', 'step', 'loss'"),
        ("0,1.0\n1,0.5\n", "'0', '1'"),
        ("step\n0\n1\n", "'step'"),
        ("", "cannot be read"),
        ('step,loss\n"0,1.0\n', "cannot be read"),
        ("step,loss\n0,one\n1,two\n", "not numbers"),
    ],
)
def test_files_that_do_not_say_what_is_what_are_refused(tmp_path, text, said):
    with pytest.raises(InputError, match=said) as caught:
        curve(write(tmp_path, text))
    assert caught.value.argument == "losses"


@pytest.mark.parametrize("name", [".", "nowhere.csv"])
def test_places_without_a_file_are_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"directory|exist") as caught:
        curve(tmp_path / name)
    assert caught.value.argument == "losses"


@pytest.mark.parametrize("losses", [[[1.0, 0.5], [1.0, 0.4]], 1.0, [1.0, 0.5j], ["1.0", "0.5"], [1.0, [0.5]], None])
def test_what_is_no_row_of_numbers_is_refused(losses):
    with pytest.raises(InputError) as caught:
        curve(losses)
    assert caught.value.argument == "losses"


def test_dates_are_no_steps():
    dated = pd.Series(LOSSES, index=pd.date_range("2026-01-01", periods=3))
    with pytest.raises(InputError, match="not numbers") as caught:
        read_curve(dated)
    assert caught.value.argument == "steps"


def test_a_column_of_rates_holds_each_until_the_next_is_logged():
    steps = np.array([3.0, 5.0, 6.0])
    logged = pd.DataFrame({"step": steps, "loss": [1.0, 0.5, 0.4], "LR": [0.1, 0.2, 0.4]})
    assert read_curve(logged).rates.tolist() == [0.1, 0.2, 0.4]
    assert read_curve(logged.drop(columns="LR")).rates is None
    assert read_curve([1.0, 0.5, 0.4]).rates is None
    assert rate_of_each_step(np.array([0.1, 0.2, 0.4]), steps).tolist() == [0.1] * 5 + [0.2, 0.4]
    assert rate_of_each_step(np.array([0.1, 0.1, 0.1]), steps) == 0.1
