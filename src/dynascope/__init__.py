"""dynascope predicts what a neural network will learn, observes real training, and compares the two.

The main functions:

* `predict(task, network)` selects a theory for the task and network and returns a `Prediction`.
* `observe(task, network)` trains the network with `method=GradientFlow(…)` or `Descent(…)` and returns the measured
  quantities as an `Observation`.
* `compare(observed, predicted)` compares the two and returns a `Comparison` with its verdict.
* `user_curve(losses, learning_rate=…, loss=…)` makes an observation from losses that you logged.
* `which(task, network)` lists the theories for the task and network with their measured assumptions.
* `regime(task, network)` tells whether training is lazy or rich, and how to change that.
* `study(name, **fields)` creates the study of a published result; its `run()` returns a `Comparison`.
* `Recorder(apply, params, path)` records a JAX training run; `torch.Recorder` is for PyTorch.
* `load(path)` loads a saved result.

A task is a `Task(x, y)`, `read_table("t.csv", target="y")` or `digits()`. A network is a
`TwoLayer(width=50, activation="relu")`, an equinox or PyTorch module, or the name of a kind, such as "relu". Everything
else is in submodules: `theory`, `probes`, `flows`, `symmetry`, …
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
# `from dynascope import *` does not need PyTorch.
__all__.remove("torch")  # pyright: ignore[reportUnsupportedDunderAll]
