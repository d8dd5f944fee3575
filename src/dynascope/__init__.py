"""dynascope predicts what a neural network will learn, observes it on real training, and compares the two.

The verbs:

* `predict(task, network)` picks the theory that fits the pair and returns a `Prediction`.
* `observe(task, network)` trains the network, by `method=GradientFlow(…)` or `Descent(…)`, and returns the same
  quantities, measured, as an `Observation`.
* `compare(observed, predicted)` puts both on the same axes and returns a `Comparison` with its verdict.
* `user_curve(losses, learning_rate=…, loss=…)` takes losses that you logged yourself, in place of an observation.
* `which(task, network)` lists the theories of the pair with their measured assumptions.
* `study(name, **fields)` makes the study of a published result; its `run()` returns a `Comparison`.
* `load(path)` reads a saved result.

A task is a `Task(x, y)`, `read_table("t.csv", target="y")` or `digits()`. A network is the name of a kind, such as
"relu", a `TwoLayer(width=50, activation="relu")`, or a module of equinox or PyTorch. Everything else is in the rooms:
`theory`, `probes`, `flows`, `symmetry`, …
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
# `from dynascope import *` does not need PyTorch.
__all__.remove("torch")  # pyright: ignore[reportUnsupportedDunderAll]
