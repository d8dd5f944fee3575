"""Draw the picture of the README from what the command under it leaves: python docs/images/make_staircase.py."""

import tempfile
from pathlib import Path

from dynascope import cli, plot, results

COMMAND = "predict digits --network linear --check"

with tempfile.TemporaryDirectory() as folder:
    cli.main([*COMMAND.split(), "--out", folder])
    (path,) = Path(folder).glob("*.zarr.zip")
    tree = results.load(path)

    axes = plot.staircase(tree)
    axes.get_legend().set_loc("lower left")
    plot.learned_features(tree, axes.inset_axes((0.46, 0.42, 0.53, 0.56)))
    plot.save_figure(axes.figure, Path(__file__).with_name("staircase.png"))
