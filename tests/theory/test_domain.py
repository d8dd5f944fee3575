from __future__ import annotations

import importlib

from dynascope.theory.domain import covers, find_domains


def test_a_function_keeps_what_is_stated_of_it():
    @covers(network="n", data="d", start="s", gives="g", reference="r", exact=False)
    def theory():
        return 1

    assert theory() == 1
    assert (theory.domain.network, theory.domain.exact) == ("n", False)


def test_every_name_found_can_be_called_under_it():
    for name, domain in find_domains().items():
        module, _, function = f"dynascope.{name}".rpartition(".")
        assert getattr(importlib.import_module(module), function).domain == domain
        assert all((domain.network, domain.data, domain.start, domain.gives, domain.reference))
