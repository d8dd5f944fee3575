"""Tables are read from text or Parquet, by the extension of the file."""

from __future__ import annotations

import pandas as pd

from dynascope.tasks.data.table_files import read_frame


def test_names_of_a_parquet_file_are_kept(tmp_path):
    pd.DataFrame({"a": [1.0], "2": [2.0]}).to_parquet(tmp_path / "trees.parquet")
    frame, notes, _ = read_frame(tmp_path / "trees.parquet")
    assert (list(frame), notes) == (["a", "2"], [])


def test_other_extensions_are_text(tmp_path):
    (tmp_path / "trees.dat").write_text("a b\n1 2\n3 4\n")
    assert read_frame(tmp_path / "trees.dat").frame["b"].tolist() == [2, 4]
