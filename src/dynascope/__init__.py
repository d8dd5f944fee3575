"""dynascope predicts what a neural network will learn, observes it on real training, and compares the two.

Four verbs are the whole top-level face:

* `predict(task, network, *, scale)` picks the theory that fits the pair and returns its record.
* `observe(task, network, *, scale)` trains the same network and returns the same quantities, measured.
* `which(task, network)` says which theories cover the pair, and by how much what they assume is violated.
* `compare(observed, predicted)` puts both on the same axes and gives a verdict.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
