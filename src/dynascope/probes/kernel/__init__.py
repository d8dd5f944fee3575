"""The neural tangent kernel: algorithms, what each costs, and what kernels say about feature learning."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
