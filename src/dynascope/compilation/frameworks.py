"""Dispatch of functions to `dynascope.torch` for PyTorch modules and tensors."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

import jax

__all__ = ["also_in_pytorch"]

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def also_in_pytorch(module: str) -> Callable[[Callable[_Given, _Found]], Callable[_Given, _Found]]:
    """Dispatch calls with PyTorch arguments to the function of the same name in `dynascope.torch`.

    PyTorch arguments are recognised by the names of their types. `dynascope.torch` requires PyTorch and is imported
    only if an argument is from PyTorch.

    Args:
        module: The module that contains the function: "dynascope.torch" or one of its submodules.
    """

    def decorated(function: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
        @functools.wraps(function)
        def either(*args: _Given.args, **kwargs: _Given.kwargs) -> _Found:
            if any(_is_of_pytorch(each) for each in jax.tree.leaves((args, kwargs), is_leaf=_is_read_once)):
                found = importlib.import_module(module)
                return getattr(found, function.__name__)(*args, **kwargs)
            return function(*args, **kwargs)

        return either

    return decorated


def _is_read_once(value: Any) -> bool:
    return isinstance(value, Iterator)


def _is_of_pytorch(value: Any) -> bool:
    kinds = {(base.__module__.partition(".")[0], base.__name__) for base in type(value).__mro__}
    return bool(kinds & {("torch", "Tensor"), ("torch", "Module")})
