"""Draw the picture of the README: python docs/images/make_staircase.py."""

from pathlib import Path

from dynascope import compare, observe, plot, predict, tasks

digits, scale = tasks.digits(), 1e-20
tree = compare(observe(digits, "linear", scale=scale), predict(digits, "linear", scale=scale))

axes = plot.staircase(tree)
axes.get_legend().set_loc("lower left")
plot.features(tree, axes.inset_axes((0.46, 0.48, 0.53, 0.5)))
plot.save_figure(axes.figure, Path(__file__).with_name("staircase.png"))
