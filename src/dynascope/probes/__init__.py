"""What did happen: measurements on arrays of NumPy, JAX or PyTorch alike."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
