"""Measurements on PyTorch modules, functions and tensors.

Only this package imports PyTorch. Probes import `dynascope.torch` when they receive PyTorch objects.
"""

import importlib.util

from dynascope.validation import face

for _needed, _for in (("torch", "PyTorch"), ("array_api_compat", "array-api-compat")):
    if importlib.util.find_spec(_needed) is None:
        raise ModuleNotFoundError(
            f"dynascope.torch requires {_for}, which is missing: run python -m pip install '.[torch]' in a checkout.",
            name=_needed,
        )

__getattr__, __dir__, __all__ = face(__name__, __file__)

# The recorders of other packages can be imported only if these packages are installed.
_INTEGRATIONS = {"LightningRecorder": "lightning", "TransformersRecorder": "transformers"}
__all__[:] = [each for each in __all__ if each not in _INTEGRATIONS or importlib.util.find_spec(_INTEGRATIONS[each])]
