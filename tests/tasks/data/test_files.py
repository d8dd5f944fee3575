from __future__ import annotations

import decimal
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dynascope.errors import InputError
from dynascope.tasks import read_table

FIVE = np.array([[1.0, 2.0], [3.0, 4.5], [5.0, 6.0], [7.0, 8.0], [9.0, -1.0]])
# No table is so small that its squares underflow, which is refused.
values = st.floats(-1e6, 1e6).map(lambda value: round(value, 9))


@pytest.fixture
def csv(tmp_path):
    def write(text: str | bytes) -> Path:
        path = tmp_path / "trees.csv"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


@pytest.fixture
def npz(tmp_path):
    def write(**saved) -> Path:
        np.savez(tmp_path / "trees.npz", **saved)
        return tmp_path / "trees.npz"

    return write


@pytest.fixture
def parquet(tmp_path):
    def write(**columns) -> Path:
        pd.DataFrame(columns).to_parquet(tmp_path / "trees.parquet")
        return tmp_path / "trees.parquet"

    return write


# What is read is what was written.


@pytest.mark.slow
@given(arrays(np.float64, st.tuples(st.integers(2, 8), st.integers(2, 5)), elements=values))
def test_every_format_gives_back_the_same_numbers(table):
    x, y = table[:, 1:], table[:, :1]
    names = [f"column {i}" for i in range(table.shape[1])]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "t.npz", x=x, y=y)
        np.save(folder / "t-x.npy", x)
        np.save(folder / "t-y.npy", y)
        frame = pd.DataFrame(table, columns=names)
        frame.to_csv(folder / "t.csv", index=False)
        frame.to_parquet(folder / "t.parquet")
        read = [read_table(folder / file, centre=False) for file in ("t.npz", "t-x.npy")]
        read += [read_table(folder / file, target=names[0], centre=False) for file in ("t.csv", "t.parquet")]
    for task in read:
        np.testing.assert_allclose(task.inputs, x, rtol=1e-15)  # pandas reads decimals to the last bit but one
        np.testing.assert_allclose(task.targets, y, rtol=1e-15)
        assert task.name == "t"
    assert read[2].feature_names == read[3].feature_names == tuple(names[1:])
    assert read[2].target_names == read[3].target_names == (names[0],)


def test_centring_is_done_unless_declined(npz):
    path = npz(x=FIVE, y=FIVE[:, 0])
    np.testing.assert_allclose(read_table(path).inputs, FIVE - FIVE.mean(axis=0), atol=1e-14)
    np.testing.assert_allclose(read_table(path, standardise=True).inputs.std(axis=0), 1, rtol=1e-14)
    raw = read_table(path, centre=False)
    np.testing.assert_array_equal(raw.inputs, FIVE)


@pytest.mark.parametrize("standardise", [None, True, False])
def test_tables_have_mean_0_and_spread_1_unless_it_is_declined(csv, standardise):
    task = read_table(csv("height,girth,age\n9,100,60\n7,300,90\n8,260,84\n"), target="age", standardise=standardise)
    raw = standardise is False
    np.testing.assert_allclose(task.inputs.mean(axis=0), 0, atol=1e-13)
    np.testing.assert_allclose(task.inputs.std(axis=0), np.std([[9, 100], [7, 300], [8, 260]], axis=0) ** raw)
    np.testing.assert_allclose(task.targets.std(axis=0), np.std([60, 90, 84]) ** raw)
    assert ("168" in task.description[-1] and "'age'" in task.description[-1]) is not raw


def test_what_is_standardised_is_centred(csv):
    with pytest.raises(InputError, match="standardise is True, but centre is False"):
        read_table(csv("a,y\n1,2\n3,4\n"), target="y", standardise=True, centre=False)


def test_class_labels_of_a_table_keep_their_units(csv):
    task = read_table(csv("height,kind\n9,oak\n7,elm\n8,oak\n"), target="kind")
    np.testing.assert_allclose(task.targets[:, 0], np.array([0, 1, 0]) - 1 / 3)


def test_a_quantity_of_two_values_is_no_class_label(csv):
    task = read_table(csv("height,age\n9,60\n7,61\n"), target="age")
    np.testing.assert_allclose(task.targets[:, 0], [-1, 1])


def test_images_are_flattened_and_keep_their_shape(npz):
    x = np.random.default_rng(0).normal(size=(5, 2, 3))
    x[:, 0, 1] = 7.0
    task = read_table(npz(x=x, y=FIVE[:, 1]))
    assert (task.image_shape, task.inputs.shape, task.feature_names[5]) == ((2, 3), (5, 6), "pixel 2,3")
    assert any("'pixel 1,2'" in each for each in task.description)


def test_an_image_shape_can_be_given(npz):
    path = npz(x=np.eye(6), y=np.arange(6.0))
    assert read_table(path, image_shape=(2, 3)).image_shape == (2, 3)
    with pytest.raises(InputError, match=r"image_shape is \(2, 4\), but x has shape \(.*, 6\)"):
        read_table(path, image_shape=(2, 4))


def test_vectors_are_single_columns(npz):
    task = read_table(npz(x=FIVE[:, 0], y=FIVE[:, 1]))
    assert (task.inputs.shape, task.targets.shape, task.feature_names, task.target_names) == (
        (5, 1),
        (5, 1),
        ("x",),
        ("y",),
    )


@pytest.mark.parametrize("dtype", [">f4", "<f2", ">i2", "u1", "?", "longdouble"])
def test_arrays_of_any_real_type_are_read(npz, dtype):
    x = np.array([[0, 1], [1, 1], [1, 0], [0, 0]]).astype(dtype)
    np.testing.assert_array_equal(read_table(npz(x=x, y=np.arange(4.0)), centre=False).inputs, x.astype(float))


@pytest.mark.parametrize(("stem", "name"), [("x", "x"), ("run-x", "run"), ("run_x", "run")])
def test_a_pair_is_found_from_the_file_of_the_inputs(tmp_path, stem, name):
    np.save(tmp_path / f"{stem}.npy", FIVE)
    np.save(tmp_path / f"{stem[:-1]}y.npy", FIVE[:, 1])
    task = read_table(str(tmp_path / f"{stem}.npy"), centre=False)
    assert task.name == name
    np.testing.assert_array_equal(task.targets[:, 0], FIVE[:, 1])


def test_several_targets_keep_their_order(csv):
    task = read_table(csv("a,b,c\n1,2,3\n4,5,7\n"), target=["c", "a"], centre=False)
    assert (task.feature_names, task.target_names) == (("b",), ("c", "a"))
    np.testing.assert_array_equal(task.targets, [[3, 1], [7, 4]])


def test_spaces_a_byte_order_mark_and_windows_line_ends_do_no_harm(csv):
    task = read_table(csv("\ufeffa, b\r\n1, 2\r\n3, 4\r\n"), target="b", centre=False)
    assert task.feature_names == ("a",)
    np.testing.assert_array_equal(task.targets, [[2], [4]])


def test_a_column_may_have_the_name_of_a_gap(csv):
    assert read_table(csv("NA,y\n1,2\n3,4\n"), target="y").feature_names == ("NA",)


def test_constant_inputs_are_kept_and_named(csv):
    task = read_table(csv("a,b,y\n1,5,2.5\n2,5,3\n"), target="y")
    assert task.feature_names == ("a", "b")
    assert any("'b'" in each for each in task.description)


def test_decimals_and_columns_that_allow_gaps_are_numbers(parquet):
    path = parquet(
        a=[decimal.Decimal("1.5"), decimal.Decimal("2")],
        b=pd.array([1, 2], dtype="Int64"),
        c=pd.array([True, False], dtype="boolean"),
        y=[2.0, 3.0],
    )
    np.testing.assert_array_equal(read_table(path, target="y", centre=False).inputs, [[1.5, 1, 1], [2, 2, 0]])


# Class labels or quantities.


@pytest.mark.parametrize(
    ("column", "names"),
    [
        (["oak", "elm", "oak", "elm"], ("elm", "oak")),
        ([True, False, False, True], ("y False", "y True")),
        ([3, 5, 5, 3], ("y 3", "y 5")),
        (pd.array([3, 5, 5, 3], dtype="Int64"), ("y 3", "y 5")),
        (pd.array([True, False, False, True], dtype="boolean"), ("y False", "y True")),
        (pd.Categorical(["oak", "elm", "oak", "elm"]), ("elm", "oak")),
    ],
)
def test_labels_are_one_hot_encoded_and_it_is_said(parquet, column, names):
    task = read_table(parquet(a=[1.0, 2.0, 3.0, 4.0], y=column), target="y", centre=False)
    assert task.target_names == names
    assert task.targets.tolist() == [[float(str(label) in name.split()) for name in names] for label in column]
    assert any(f"{names[0]} (2 samples), {names[1]} (2 samples)" in each for each in task.description)


@pytest.mark.parametrize("column", [[3, 5, 7, 3], [3.0, 5.0, 5.0, 3.0], [0.5, 1.5, 1.5, 0.5]])
def test_other_numbers_are_quantities(parquet, column):
    task = read_table(parquet(a=[1.0, 2.0, 3.0, 4.0], y=column), target="y", centre=False)
    np.testing.assert_array_equal(task.targets[:, 0], column)
    assert task.target_names == ("y",)


@pytest.mark.parametrize("column", [[3, 5, 5, 3], [3.0, 5.0, 5.0, 3.0], [True, False, False, True]])
@pytest.mark.parametrize("classification", [True, False])
def test_the_rule_can_be_overridden(npz, column, classification):
    task = read_table(npz(x=np.arange(4.0), y=column), classification=classification)
    assert task.output_dimension == (2 if classification else 1)


def test_labels_of_arrays_may_be_text_or_bytes(npz):
    for labels in (["oak", "élm", "oak"], [b"oak", "élm".encode(), b"oak"]):
        assert read_table(npz(x=np.arange(3.0), y=labels)).target_names == ("oak", "élm")


def test_several_columns_are_never_one_label(npz):
    path = npz(x=FIVE, y=FIVE > 3)
    np.testing.assert_array_equal(read_table(path, centre=False).targets, FIVE > 3)
    with pytest.raises(InputError, match=r"trees\.npz has 2 targets, but classification requires exactly one"):
        read_table(path, classification=True)


# Every bad input is one sentence.


def refused(path, **arguments) -> str:
    with pytest.raises(InputError) as caught:
        read_table(path, **arguments)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_files_that_are_not_there_or_not_readable_are_refused(tmp_path):
    assert "there is no file" in refused(tmp_path / "oaks.csv")
    assert "is a directory" in refused(tmp_path)
    remedies = {
        "oaks": "give an .npz, .npy, .csv, .tsv or .parquet file",
        "oaks.csv.gz": "decompress the file, and give an .npz",
        "oaks.xlsx": "save the file as .csv, or read the file with pandas",
    }
    for name, remedy in remedies.items():
        (tmp_path / name).write_text("1")
        assert f"unknown extension: {remedy}" in refused(tmp_path / name)
    for suffix in ("csv", "npz", "parquet"):
        (tmp_path / f"oaks.{suffix}").touch()
        assert f"oaks.{suffix} is empty" in refused(tmp_path / f"oaks.{suffix}", target="y")


def test_a_file_that_may_not_be_read_says_so(tmp_path, monkeypatch):
    (tmp_path / "oaks.csv").write_text("a,y\n1,2\n2,3\n")
    monkeypatch.setattr("os.access", lambda *_: False)  # as permissions do not bind who tests as root
    assert "oaks.csv cannot be read" in refused(tmp_path / "oaks.csv", target="y")


@pytest.mark.parametrize(("encoding", "told"), [("utf-16", 0), ("cp1252", 1), ("utf-8-sig", 0), ("utf-8", 0)])
def test_letters_of_other_encodings_are_read(tmp_path, encoding, told):
    (tmp_path / "oaks.csv").write_bytes("Höhe,y\n1,2.5\n2,3\n4,1\n".encode(encoding))
    task = read_table(tmp_path / "oaks.csv", target="y")
    assert task.feature_names == ("Höhe",)
    assert sum("Windows-1252" in sentence for sentence in task.description) == told


@pytest.mark.parametrize("suffix", ["npz", "npy", "csv", "parquet"])
@pytest.mark.parametrize("junk", [b"\x00\xff\xfe" * 50, b"PK\x03\x04" * 20, b"\x93NUMPY\x01\x00junk", b"PAR1", b"\x80"])
def test_files_of_junk_are_refused(tmp_path, suffix, junk):
    for name in "xy":
        (tmp_path / f"{name}.{suffix}").write_bytes(junk)
    assert f"x.{suffix}" in refused(tmp_path / f"x.{suffix}", target=None if suffix.startswith("np") else "y")


@given(st.integers(0, 2**32 - 1))
def test_a_damaged_archive_is_read_right_or_refused(seed):
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "t.npz"
        np.savez_compressed(path, x=FIVE, y=FIVE[:, 0])
        damaged = bytearray(path.read_bytes())
        damaged[rng.integers(len(damaged))] ^= int(rng.integers(1, 256))
        path.write_bytes(damaged[: rng.integers(1, len(damaged) + 1)] if rng.random() < 0.5 else damaged)
        try:
            task = read_table(path, centre=False)
        except InputError:
            return
    np.testing.assert_array_equal(task.inputs, FIVE)


def test_nothing_is_unpickled(tmp_path, npz):
    class Bomb:
        def __reduce__(self):
            return Path.touch, (tmp_path / "exploded",)

    bomb = np.array([Bomb()] * 5, dtype=object)
    assert "trees.npz cannot be read" in refused(npz(x=FIVE, y=bomb))
    np.save(tmp_path / "x.npy", FIVE)
    np.save(tmp_path / "y.npy", bomb, allow_pickle=True)
    assert "y.npy cannot be read" in refused(tmp_path / "x.npy")
    bomb.dump(tmp_path / "x.npz")
    assert "x.npz is not an .npz archive" in refused(tmp_path / "x.npz")
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize(
    ("saved", "problem"),
    [
        ({"x": FIVE}, "trees.npz has no array 'y' (it has 'x')"),
        ({"X": FIVE, "Y": FIVE}, "trees.npz has no array 'x' (it has 'X', 'Y')"),
        ({}, "trees.npz has no array 'x' (it has none)"),
        ({"x": FIVE, "y": FIVE[:3]}, "x and y in trees.npz have 5 and 3 samples"),
        ({"x": FIVE[:1], "y": FIVE[:1]}, "trees.npz has 1 sample"),
        ({"x": FIVE[:0], "y": FIVE[:0]}, "the array x in trees.npz has shape (0, 2)"),
        ({"x": FIVE[:, :0], "y": FIVE}, "the array x in trees.npz has shape (5, 0)"),
        ({"x": np.float64(1), "y": FIVE}, "the array x in trees.npz has shape ()"),
        ({"x": FIVE.reshape(5, 2, 1, 1), "y": FIVE}, "the array x in trees.npz has shape (5, 2, 1, 1)"),
        ({"x": FIVE, "y": FIVE.reshape(5, 2, 1)}, "the array y in trees.npz has shape (5, 2, 1)"),
        ({"x": FIVE + 1j, "y": FIVE}, "the array x in trees.npz holds values of type complex128"),
        ({"x": FIVE, "y": np.zeros(5, "M8[D]")}, "the array y in trees.npz holds values of type datetime64[D]"),
        ({"x": np.zeros(5, [("a", "f8")]), "y": FIVE}, "the array x in trees.npz holds values of type [('a', '<f8')]"),
        ({"x": np.full((5, 2), "oak"), "y": FIVE}, "trees.npz has text such as 'oak' in the input 'x1', 'x2'"),
        ({"x": FIVE, "y": np.full((5, 2), "oak")}, "trees.npz has text such as 'oak' in the target 'y1', 'y2'"),
        ({"x": np.where(FIVE > 7, np.nan, FIVE), "y": FIVE}, "trees.npz has 2 rows with missing or infinite values in"),
        ({"x": FIVE, "y": np.where(FIVE > 8, np.inf, FIVE)}, "trees.npz has 1 row with missing or infinite values in"),
        ({"x": FIVE, "y": np.ones(5)}, "the target y is constant"),
        ({"x": np.ones((5, 2)), "y": FIVE}, "the input x is constant"),
        ({"x": FIVE, "y": ["oak"] * 5}, "the target y has only one class"),
        ({"x": FIVE, "y": list("abcde")}, "the target y has 5 classes in 5 samples"),
        ({"x": 1e200 * FIVE, "y": FIVE}, "x has values as large as 9.0e+200"),
    ],
)
def test_arrays_that_make_no_task_are_refused(npz, saved, problem):
    assert problem in refused(npz(**saved))


def test_arrays_have_no_target_to_choose_and_nothing_to_drop(npz):
    assert "target is 'y', but trees.npz has no named columns" in refused(npz(x=FIVE, y=FIVE), target="y")
    assert "drop is ['x1'], but trees.npz has no named columns" in refused(npz(x=FIVE, y=FIVE), drop=["x1"])


def test_arrays_with_gaps_are_filled_or_cut_like_tables(npz):
    path = npz(x=np.where(FIVE > 7, np.nan, FIVE), y=FIVE[:, 0])
    assert read_table(path, missing="drop").samples == 3
    np.testing.assert_allclose(read_table(path, missing="mean", centre=False).inputs[3:, 0], [7, 4])


def test_an_array_without_its_partner_is_refused(tmp_path):
    np.save(tmp_path / "trees.npy", FIVE)
    np.save(tmp_path / "trees-x.npy", FIVE)
    assert "save NAME-x.npy and NAME-y.npy" in refused(tmp_path / "trees.npy")
    assert "there is no file trees-y.npy next to trees-x.npy" in refused(tmp_path / "trees-x.npy")


@pytest.mark.parametrize(
    ("text", "target", "problem"),
    [
        ("a,y\n1,2\n3,4\n", None, "no target column of trees.csv is given"),
        ("a,y\n1,2\n3,4\n", [], "no target column of trees.csv is given"),
        ("a,yield\n1,2\n3,4\n", "yeild", "has no column 'yeild': choose 'yield'"),
        ("a,y\n1,2\n3,4\n", "girth", "trees.csv has no column 'girth'"),
        ("a,y\n1,2\n3,4\n", ["y", "a"], "every column of trees.csv is a target"),
        ("y\n1\n3\n", "y", "every column of trees.csv is a target: .* by commas, semicolons or tabs"),
        ("a,y\n", "y", "trees.csv has 0 samples"),
        ("a,y\n1,2\n", "y", "trees.csv has 1 sample"),
        ("a,b,y\n1,?,2\n2,3,3\n", "y", r"trees.csv has text such as '\?' in the input 'b'"),
        ("a,b,y\n2020-01-02,1,2\n2020-01-03,3,3\n", "y", "text such as '2020-01-02' in the input 'a'"),
        ("a,b,y\n1+2j,1,2\n2+3j,3,3\n", "y", r"text such as '1\+2j' in the input 'a'"),
        ("a,b,y\n1,,2\n2,inf,3\n,1,4\n", "y", "trees.csv has 3 rows with missing or infinite values in 'a', 'b'"),
        ("a,y\n1,2\n2,\n", "y", "trees.csv has 1 row with missing or infinite values in 'y'"),
        ("a,y\n1,oak\n2,\n3,oak\n", "y", "trees.csv has 1 row without a label in 'y'"),
        ("a,y\n1,True\n2,\n3,False\n", "y", "trees.csv has 1 row with missing or infinite values in 'y'"),
        ("a,a,y\n1,2,3\n4,5,6\n", "y", "trees.csv has several columns named 'a'"),
        (
            ",a,y\n5,1,2\n5,3,4\n",
            "y",
            "column 1 of trees.csv has no name, and its values do not number or name the rows",
        ),
        (",a,y\n0.5,1,2\n0.7,3,4\n", "y", "column 1 of trees.csv has no name, and its values do not number or name"),
        (
            "a,,y\n1,2,3\n2,3,4\n",
            "y",
            'column 2 of trees.csv has no name: name the column, or leave it out with `drop=""`',
        ),
        ("a,y\n0,1,2\n1,3,4\n", "y", "rows of trees.csv have 3 fields, but line 1 names only 2 of them"),
        ("a,y\n1,2\n3,4,5\n", "y", "line 3 of trees.csv has 3 instead of 2 fields"),
        ("a,b,y\n1,2\n3,4,5\n", "y", "trees.csv has 1 row with missing or infinite values in 'y'"),
        ("a,y\n1,2\n3,2\n", "y", "the target y is constant"),
        ("a,y\n1,2\n1,3\n", "y", "the input x is constant"),
        (b"a,y\n1,\xe9\x81\n2,b\n", "y", "trees.csv cannot be read as a table .*: write the file in UTF-8"),
    ],
)
def test_tables_that_make_no_task_are_refused(csv, text, target, problem):
    path = csv(text)
    with pytest.raises(InputError, match=problem):
        read_table(path, target=target)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"a": pd.to_datetime(["2020", "2021"])}, "trees.parquet has dates or times such as '2020-01-01' in the input"),
        ({"a": pd.to_timedelta([1, 2])}, "trees.parquet has dates or times such as"),
        (
            {"a": pd.Categorical(["oak", "elm"])},
            "every input of trees.parquet is text with a different value in nearly",
        ),
        ({"a": [[1.0], [2.0]]}, "trees.parquet has values that are not numbers, such as '[1.]' in the input 'a'"),
        ({"a": [b"1", b"2"]}, "trees.parquet has values that are not numbers, such as"),
        ({"a": [None, None]}, "trees.parquet has 2 rows with missing or infinite values in 'a'"),
        ({"a": pd.array([1, None], dtype="Int64")}, "trees.parquet has 1 row with missing or infinite values in 'a'"),
    ],
)
def test_columns_that_are_not_numbers_are_refused(parquet, columns, problem):
    assert problem in refused(parquet(**columns, y=[1.0, 2.0]), target="y")


@pytest.mark.parametrize("column", [pd.to_datetime(["2020", "2021", "2020"]), [b"1", b"2", b"1"]])
@pytest.mark.parametrize("classification", [None, True, False])
def test_targets_that_are_neither_numbers_nor_labels_are_refused(parquet, column, classification):
    path = parquet(a=[1.0, 2.0, 3.0], y=column)
    assert "in the target 'y': encode it as numbers" in refused(path, target="y", classification=classification)


def test_text_is_not_a_quantity(csv):
    path = csv("a,y\n1,oak\n2,elm\n3,oak\n")
    assert "text such as 'oak' in the target 'y'" in refused(path, target="y", classification=False)


def test_whole_numbers_with_gaps_and_infinite_labels_are_refused(parquet):
    gaps = parquet(a=[1.0, 2.0, 3.0, 4.0, 5.0], y=pd.array([1, 2, 1, 2, None], dtype="Int64"))
    assert "1 row with missing or infinite values in 'y'" in refused(gaps, target="y")
    infinite = parquet(a=[1.0, 2.0, 3.0, 4.0], y=[1.0, np.inf, 1.0, np.inf])
    assert "2 rows with missing or infinite values in 'y'" in refused(infinite, target="y", classification=True)


def test_a_parquet_file_with_equal_names_is_refused(tmp_path):
    column = pa.array([1.0, 2.0])
    pyarrow.parquet.write_table(pa.table([column] * 3, names=["a", "a", "y"]), tmp_path / "trees.parquet")
    assert "trees.parquet cannot be read as a table" in refused(tmp_path / "trees.parquet", target="y")


def test_long_lists_of_names_are_cut(csv):
    names = [f"c{i}" for i in range(40)]
    path = csv(",".join(names) + "\n" + ",".join("1" * 40) + "\n")
    assert refused(path).endswith("'c11' and 28 more.")


def test_the_index_of_a_parquet_file_is_left_out_and_named(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "y": [2.0, 1.0, 0.0]}, index=pd.Index([1990, 1991, 1995], name="year"))
    frame.to_parquet(tmp_path / "trees.parquet")
    task = read_table(tmp_path / "trees.parquet", target="y")
    assert task.feature_names == ("a",)
    assert any("the index 'year'" in sentence for sentence in task.description)


@pytest.mark.parametrize("index", [range(1, 4), ["oak", "elm", "yew"], [7, 3, 5]])
def test_row_names_that_pandas_writes_are_left_out(tmp_path, index):
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "y": [2.0, 1.0, 0.0]}, index=index)
    frame.to_csv(tmp_path / "trees.csv")
    task = read_table(tmp_path / "trees.csv", target="y", centre=False)
    assert (task.feature_names, task.inputs.ravel().tolist()) == (("a",), [1.0, 2.0, 4.0])
    assert any("column 1" in each for each in task.description)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt", ".dat"])
def test_text_of_any_extension_is_read_by_what_it_holds(tmp_path, suffix):
    path = tmp_path / f"trees{suffix}"
    path.write_text("# by hand\na b y\n1 2 3\n2 1 4\n3 3 5\n")
    task = read_table(path, target="y", centre=False)
    assert (task.feature_names, task.targets.ravel().tolist()) == (("a", "b"), [3, 4, 5])
