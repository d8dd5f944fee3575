from __future__ import annotations

import re

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

from dynascope import plot
from dynascope.comparison import user_curve
from dynascope.comparison.user_curves import units
from dynascope.comparison.user_curves.reading import rate_of_each_step, read_curve
from dynascope.errors import InputError
from dynascope.report.page import render_page
from dynascope.results import describe

LOSSES = (1.0, 0.75, 0.5)


def curve(losses=LOSSES, **more):
    return user_curve(losses, **{"learning_rate": 0.1, "loss": "mse"} | more)


def write(folder, text):
    path = folder / "run.csv"
    path.write_text(text)
    return path


def test_arrays_of_numpy_and_jax_lists_tuples_and_series_are_the_same_curve():
    kinds = [
        np.array(LOSSES),
        jnp.array(LOSSES),
        list(LOSSES),
        LOSSES,
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


def test_a_named_index_of_a_table_is_a_column():
    table = pd.DataFrame({"step": [0, 100, 250], "loss": LOSSES}).set_index("step")
    np.testing.assert_array_equal(curve(table)["time"], [0, 100, 250])


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


def test_a_column_of_numbers_with_commas_is_not_cut_at_them(tmp_path):
    for text in ("step;loss\n0;1,0\n10;0,75\n20;0,5\n", "step\tloss\n0\t1,0\n10\t0,75\n20\t0,5\n"):
        np.testing.assert_array_equal(curve(write(tmp_path, text))["loss"], LOSSES)
        np.testing.assert_array_equal(curve(write(tmp_path, text))["time"], [0, 10, 20])
    for text in ("loss\n1,0\n0,75\n0,5\n", "1,0;\n0,75;\n0,5;\n"):
        np.testing.assert_array_equal(curve(write(tmp_path, text))["loss"], LOSSES)
    with pytest.raises(InputError, match=r"rows of run\.csv have 3 fields, but line 1 names only 2 of them"):
        curve(write(tmp_path, "step,loss\n0,3,5\n1,2,5\n2,1,5\n"))


TENSORBOARD = "Wall time,Step,Value\n1700000000.5,0,1.0\n1700000001.5,10,0.75\n1700000002.5,20,0.5\n"
WANDB = '"Step","val-7 - train/loss","val-7 - train/loss__MIN","val-7 - train/loss__MAX"\n' + "".join(
    f'"{step}","{loss}","{loss / 2}","{2 * loss}"\n' for step, loss in zip((0, 10, 20), LOSSES, strict=True)
)
LIGHTNING = (
    "epoch,lr-SGD,step,train_loss,val_loss\n,0.1,0,,\n0,,0,1.0,\n0,,10,0.75,\n0,,10,,0.8\n1,,20,0.5,\n1,,20,,0.6\n"
)


@pytest.mark.parametrize(
    ("text", "column", "skipped"),
    [(TENSORBOARD, "Value", 0), (WANDB, "val-7 - train/loss", 0), (LIGHTNING, "train_loss", 3)],
)
def test_exports_of_loggers_are_read_and_the_column_is_named(tmp_path, text, column, skipped):
    path = write(tmp_path, text)
    for source, called in ((path, "run.csv"), (pd.read_csv(path), "the table")):
        found = curve(source)
        np.testing.assert_array_equal(found["loss"], LOSSES)
        np.testing.assert_array_equal(found["time"], [0, 10, 20])
        named, *rows = found.attrs["warnings"]
        assert repr(column) in named
        assert called in named
        assert [re.findall(r"\d+", row) for row in rows] == [[str(skipped), "6"]] * (skipped > 0)


@pytest.mark.parametrize(
    ("text", "losses"),
    [
        (
            WANDB.replace("__MIN", "/again").replace("__MAX", "__MIN"),
            "'val-7 - train/loss', 'val-7 - train/loss/again'",
        ),
        (
            "step,train_loss_step,train_loss_epoch,val_loss\n0,1,1,1\n1,.5,.5,.5\n",
            "'train_loss_step', 'train_loss_epoch'",
        ),
        ("step,train,test\n0,1.0,1.1\n1,0.5,0.6\n", "'train', 'test'"),
    ],
)
def test_several_columns_that_may_be_the_loss_are_named(tmp_path, text, losses):
    with pytest.raises(InputError, match=losses):
        curve(write(tmp_path, text))


def test_a_loss_that_is_no_number_is_a_divergence_and_an_empty_cell_beside_another_is_not(tmp_path):
    for row in ("0,,10,nan,", "0,,10,NaN,0.8"):
        with pytest.raises(InputError, match="the loss at step 10 is nan"):
            curve(write(tmp_path, LIGHTNING.replace("0,,10,0.75,", row, 1)))
    with pytest.raises(InputError, match="the loss at step 1 is nan"):
        curve(write(tmp_path, "step,loss\n0,1.0\n1,\n2,0.5\n"))


@pytest.mark.parametrize(
    "text",
    [
        ",loss\n0,1.0\n1,0.75\n2,0.5\n",
        ",0\n0,1.0\n1,0.75\n2,0.5\n",
        '"","step","loss"\n"1",0,1.0\n"2",1,0.75\n"3",2,0.5\n',
    ],
)
def test_row_numbers_are_no_loss(tmp_path, text):
    np.testing.assert_array_equal(curve(write(tmp_path, text))["loss"], LOSSES)
    np.testing.assert_array_equal(curve(write(tmp_path, text))["time"], [0, 1, 2])


def test_row_numbers_that_may_be_steps_need_a_name(tmp_path):
    for text in (",loss\n0,1.0\n10,0.75\n", '"","loss"\n"1",1.0\n"2",0.75\n'):
        with pytest.raises(InputError, match=r"column 1 of run\.csv has no name and does not count the rows from 0"):
            curve(write(tmp_path, text))


def test_rates_are_held_where_other_rows_have_them(tmp_path):
    path = write(tmp_path, "step,loss,lr,val\n0,1.0,0.1,\n2,0.75,,\n2,,,0.9\n3,0.5,0.2,\n")
    found = curve(path, learning_rate=None)
    np.testing.assert_allclose(found["time"], [0, 0.2, 0.3])


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


def test_the_record_keeps_losses_and_steps_and_says_their_convention():
    record = curve(steps=[0, 10, 30])
    np.testing.assert_array_equal(record["loss"], [1.0, 0.75, 0.5])
    np.testing.assert_array_equal(record["time"], [0, 10, 30])
    assert "0.1" in record.attrs["convention"]
    assert plot.curves(record, "loss").get_xlabel() == describe("step")[1]


def test_rates_of_each_step_add_up():
    for rates in ([0.1, 0.2], [0.1, 0.2, 0.4]):
        record = curve(learning_rate=rates)
        np.testing.assert_allclose(record["time"], [0, 0.1, 0.3])
    assert record["time"].attrs["units"] == "sum of learning rates"
    np.testing.assert_allclose(curve(learning_rate=np.full(30, 0.1), steps=[0, 10, 30])["time"], [0, 1, 3])


def test_steps_of_rate_zero_are_left_out():
    record = curve([1.0, 1.0, 0.5], learning_rate=[0.0, 0.1])
    np.testing.assert_array_equal(record["loss"], [1.0, 0.5])


def test_a_curve_alone_has_a_page_in_its_own_units():
    page = render_page(curve())
    assert "MSELoss" in page
    assert "½" not in page


@pytest.mark.parametrize(
    ("argument", "said", "options"),
    [
        ("learning_rate", "learning rate is missing", {"learning_rate": None}),
        ("learning_rate", "is 0", {"learning_rate": 0}),
        ("learning_rate", "is -0.1", {"learning_rate": -0.1}),
        ("learning_rate", "not finite", {"learning_rate": np.nan}),
        ("learning_rate", "not an array of real numbers", {"learning_rate": "0.1"}),
        ("learning_rate", "5 learning rates, but the curve ends at step 2", {"learning_rate": [0.1] * 5}),
        ("learning_rate", "1 learning rates, but the curve ends at step 2", {"learning_rate": [0.1]}),
        ("learning_rate", "3 learning rates, .* step 200", {"learning_rate": [0.1] * 3, "steps": [0, 100, 200]}),
        ("learning_rate", "smallest learning rate is -0.1", {"learning_rate": [0.1, -0.1]}),
        ("learning_rate", "smallest learning rate is 0", {"learning_rate": [0.0, 0.0]}),
        ("loss", "definition of the loss is missing", {"loss": None}),
        ("losses", "the loss at step 1 is nan", {"losses": [1.0, np.nan, 0.5]}),
        ("losses", "the loss at step 100 is inf", {"losses": [1.0, np.inf, 0.5], "steps": [0, 100, 200]}),
        ("momentum", "is 1:", {"momentum": 1}),
        ("momentum", "is -0.1:", {"momentum": -0.1}),
        ("momentum", "nan", {"momentum": np.nan}),
        ("losses", "the loss at step 2 is -0.5: give the squared loss", {"losses": [1.0, 0.5, -0.5]}),
        ("losses", "1 point:", {"losses": [1.0]}),
        ("losses", "0 points", {"losses": []}),
        ("losses", "first loss is zero", {"losses": [0.0, 0.0]}),
        ("steps", "losses has length 3, but steps has length 2", {"steps": [0, 1]}),
        ("steps", "steps is not increasing, since 5 follows 10: sort the curve", {"steps": [0, 10, 5]}),
        ("steps", "steps is not increasing, since 10 follows 10", {"steps": [0, 10, 10]}),
        ("steps", "the first step is -1", {"steps": [-1, 0, 1]}),
        ("steps", "not finite", {"steps": [0, 1, np.inf]}),
        ("steps", "not integers", {"steps": [0, 0.5, 1], "learning_rate": [0.1]}),
    ],
)
def test_bad_curves_are_refused_by_what_is_wrong(argument, said, options):
    with pytest.raises(InputError, match=said) as caught:
        curve(**options)
    assert caught.value.argument == argument


def test_an_unknown_convention_is_answered_by_those_there_are(unchecked_types):
    with pytest.raises(InputError, match="'mse'") as caught:
        curve(loss="cross_entropy")
    assert all(repr(name) in str(caught.value) for name in units.LOSSES)


def test_steps_are_given_once(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("step,loss\n0,1.0\n10,0.5\n")
    with pytest.raises(InputError, match="contains its steps") as caught:
        curve(path, steps=[0, 1])
    assert caught.value.argument == "steps"


def test_a_curve_over_time_has_no_learning_rate(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("time,loss\n0,1.0\n0.5,0.5\n")
    np.testing.assert_array_equal(curve(path, learning_rate=None)["time"], [0, 0.5])
    with pytest.raises(InputError, match="omit learning_rate") as caught:
        curve(path)
    assert caught.value.argument == "learning_rate"
