"""Emergence: when, from how many samples and with how many neurons a network learns each of its skills.

A network is calibrated on a task of one skill; what it does with skills of given frequencies is then forecast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
