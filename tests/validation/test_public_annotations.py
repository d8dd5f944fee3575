from __future__ import annotations

import inspect

import pytest
import xarray as xr

import dynascope

ROOMS = [name for name in dynascope.__all__ if inspect.ismodule(getattr(dynascope, name))]


def functions(face):
    for name in face.__all__:
        value = getattr(face, name)
        if inspect.ismodule(value) and value.__name__.startswith(face.__name__) and hasattr(value, "__all__"):
            yield from functions(value)
        elif inspect.isfunction(plain := inspect.unwrap(value) if callable(value) else None):
            yield plain


@pytest.mark.parametrize("room", ROOMS)
def test_the_annotations_of_public_functions_can_be_evaluated_and_so_checked(room):
    unread = []
    for function in functions(getattr(dynascope, room)):
        for argument, annotation in function.__annotations__.items():
            if argument != "return" and isinstance(annotation, str):
                try:
                    eval(annotation, {"xr": xr} | function.__globals__)
                except Exception as error:
                    unread.append(f"{function.__module__}.{function.__name__}({argument}: {annotation}): {error}")
    assert not unread, "\n".join(unread)
