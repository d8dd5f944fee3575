"""Encode symmetries as text, so that a record contains the symmetries whose charges it stores."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynascope.errors import InputError
from dynascope.symmetry.charge import Charge, Part
from dynascope.symmetry.residual_charge import ResidualCharge
from dynascope.symmetry.symmetry_arguments import require_symmetries
from dynascope.validation import require, shown_error

__all__ = ["decode_charges", "encode_charges"]

_KINDS = {"charge": Charge, "residual": ResidualCharge}


def encode_charges(symmetries: Sequence[Charge]) -> str:
    """Return symmetries as JSON text, with arrays compressed by zlib.

    Args:
        symmetries: The symmetries that `find_symmetries` found, or `Charge` objects that you construct.

    Raises:
        InputError: If `symmetries` is empty, or contains anything other than `Charge` and `ResidualCharge` objects.

    Example:
        >>> norm = Charge("scale", (Part("['w']", np.array([0, 0, 1]), 1.0),), 2)
        >>> (found,) = decode_charges(encode_charges([norm]))
        >>> found.kind, found.units, found.parts[0].labels.tolist()
        ('scale', 2, [0, 0, 1])
    """
    require_symmetries(symmetries, remedy="give at least one symmetry from symmetry.find_symmetries")
    return json.dumps([_encoded(each) for each in symmetries], separators=(",", ":"))


def decode_charges(text: str) -> tuple[Charge, ...]:
    """Return the symmetries that `encode_charges` encoded.

    Raises:
        InputError: If the text does not encode symmetries.
    """
    try:
        return tuple(_decoded(each) for each in json.loads(text))
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise InputError(
            f"text does not encode symmetries ({shown_error(error)})",
            argument="text",
            value=type(text).__name__,
            remedy="give the text that encode_charges returned",
        ) from error


def _encoded(charge: Charge) -> dict[str, Any]:
    name = next((name for name, kind in _KINDS.items() if type(charge) is kind), None)
    require(
        name is not None,
        f"symmetries contains an object of type {type(charge).__name__}, which cannot be encoded",
        argument="symmetries",
        value=type(charge).__name__,
        remedy="give Charge and ResidualCharge objects",
    )
    found: dict[str, Any] = {
        "type": name,
        "kind": charge.kind,
        "units": charge.units,
        "block": charge.block,
        "parts": [
            {"path": part.path, "factor": part.factor, "labels": _packed(part.labels, "<i4")} for part in charge.parts
        ],
    }
    if isinstance(charge, ResidualCharge):
        found["basis"] = _packed(charge.basis, "<f8")
    return found


def _decoded(found: dict[str, Any]) -> Charge:
    parts = tuple(Part(each["path"], _unpacked(each["labels"], "<i4", int), each["factor"]) for each in found["parts"])
    basis = {"basis": _unpacked(found["basis"], "<f8", float)} if "basis" in found else {}
    return _KINDS[found["type"]](found["kind"], parts, found["units"], found["block"], **basis)


def _packed(array: np.ndarray, dtype: str) -> dict[str, Any]:
    data = base64.b64encode(zlib.compress(np.ascontiguousarray(array, dtype).tobytes())).decode()
    return {"shape": list(np.shape(array)), "data": data}


def _unpacked(packed: dict[str, Any], dtype: str, kind: type) -> np.ndarray:
    flat = np.frombuffer(zlib.decompress(base64.b64decode(packed["data"])), dtype)
    return flat.reshape(packed["shape"]).astype(kind)
