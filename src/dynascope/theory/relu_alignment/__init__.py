"""ReLU networks from small initialisation: where their neurons turn before anything is learned."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
