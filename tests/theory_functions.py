"""The public functions of theory, without what states domains, which computes nothing."""

from __future__ import annotations

from documented import members

from dynascope import theory

__all__ = ["MEMBERS"]

MEMBERS = {name: member for name, member in members(theory).items() if not name.startswith("domain.")}
