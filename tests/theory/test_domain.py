from __future__ import annotations

import importlib
import inspect

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.theory import assumptions
from dynascope.theory.domain import covers, find_domains
from dynascope.theory.second_moment import MEASURED

# Functions of arrays alone, which do not see the inputs that they are about.
OF_WHITE_INPUTS = {
    "balanced": {"balanced_limit", "gram", "loss", "ntk", "product"},
    "deep_modes": {"saddle_escape_time", "strength_at", "time_to_strength"},
    "neuron": {"kernel_change", "neuron_limit", "neuron_trajectory", "regime", "rich_delay"},
    "regimes": {"silent_alignment", "stage_kernel_distance"},
    "transfer": {
        "converged_layers",
        "forgetting",
        "joint_transfer",
        "lazy_forgetting",
        "reversal_time",
        "reversal_trajectory",
        "transfer_error",
        "transfer_speed",
    },
}


def public(name):
    module, _, function = f"dynascope.{name}".rpartition(".")
    return getattr(importlib.import_module(module), function)


def test_a_function_keeps_what_is_stated_of_it():
    @covers(network="n", data="d", start="s", gives="g", reference="r", exact=False)
    def theory():
        return 1

    assert theory() == 1
    assert (theory.domain.network, theory.domain.exact) == ("n", False)


def test_every_name_found_can_be_called_under_it():
    for name, domain in find_domains().items():
        assert public(name).domain == domain
        assert all((domain.network, domain.data, domain.start, domain.gives, domain.reference))


def test_what_assumes_white_inputs_is_known():
    found = {name for name, domain in find_domains().items() if assumptions.WHITE_INPUTS in domain.assumes}
    assert found == {f"theory.{room}.{name}" for room, names in OF_WHITE_INPUTS.items() for name in names}


def test_all_that_assumes_something_of_a_covariance_takes_it_and_refuses_it_by_name_and_amount():
    skewed = np.array([[1.0, 0.9], [0.9, 1.0]])
    for name, domain in find_domains().items():
        assumed = [each.name for each in domain.assumes if each.name in MEASURED]
        if assumed:
            function = public(name)
            assert inspect.signature(function).parameters["covariance"].default is None
            with pytest.raises(InputError, match=r"0\.9") as caught:
                function(covariance=skewed)  # before anything else is looked at
            assert (caught.value.argument, caught.value.value) == ("covariance", pytest.approx(0.9))


def test_covariance_changes_no_answer_and_comes_last_in_the_signature():
    @covers(network="n", data="d", start="s", gives="g", reference="r", assumes=(assumptions.WHITE_INPUTS,))
    def theory(x, *, factor=2.0, **options):
        """F.

        Args:
            x: A number.
            factor: Another.
            options: More.

        Raises:
            InputError: Never.
        """
        return factor * x

    assert theory(3.0, covariance=np.eye(2)) == theory(3.0) == theory(3.0, covariance=None) == 6
    assert list(inspect.signature(theory).parameters) == ["x", "factor", "covariance", "options"]
