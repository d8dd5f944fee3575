"""Skills: when, from how many samples and with how many neurons a network learns each of them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
