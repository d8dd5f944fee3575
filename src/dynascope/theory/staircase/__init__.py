"""Loss staircases: the plateaus and jumps of training from small initialisation, predicted without training."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
