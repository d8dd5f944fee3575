"""What every public probe must be; a probe that a face re-exports takes part without further words."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest
from documented import Member, is_numeric, is_record, is_row, members, numbers

from dynascope import probes
from dynascope.compilation import jit
from dynascope.errors import InputError

MEMBERS = members(probes)
# Those take a function of JAX, or say what such a one costs.
OF_A_FUNCTION = {
    "diffusion.noise_spectrum",
    "diffusion.top_curvatures",
    "kernel.estimate_cost",
    "kernel.neural_tangent_kernel",
    "redundancy.normal_hessians",
}
# Those look at shapes only, whatever the numbers.
OF_SHAPES = {"kernel.estimate_cost"}
# Those need to see the numbers, or a function in their example does, so that they are no part of a compiled function.
OF_NUMBERS = {"filters.filter_scores", "filters.gabor_fit", "utility.two_layer_utility"}


@pytest.fixture(scope="module", params=MEMBERS.values(), ids=MEMBERS)
def member(request) -> Member:
    return request.param


def converted(value: Any, convert: Callable[[np.ndarray], Any]) -> Any:
    """The value with every NumPy array in it converted."""
    if isinstance(value, np.ndarray):
        return convert(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **{name: converted(part, convert) for name, part in vars(value).items()})
    if hasattr(value, "_fields"):
        return type(value)(*(converted(part, convert) for part in value))
    if isinstance(value, list | tuple):
        return type(value)(converted(part, convert) for part in value)
    return value


def arrays_in(value: Any) -> list[Any]:
    """Every array of floating-point numbers of JAX, traced or not, and every other such number, in their order."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = list(vars(value).values())
    if isinstance(value, list | tuple):
        return [array for part in value for array in arrays_in(part)]
    is_number = isinstance(value, float | np.ndarray | np.generic | jax.Array)
    return [value] if is_number and jax.numpy.issubdtype(jax.numpy.result_type(value), np.floating) else []


def compiled(member: Member, call: Any, arguments: dict[str, Any]) -> list[Any]:
    """The numbers from one compiled program: operations one at a time would each be compiled."""
    arrays, rest = eqx.partition(arguments, eqx.is_array)
    return jit(lambda arrays: arrays_in(member(call, **eqx.combine(arrays, rest))))(arrays)


# What it says.


def test_its_docstring_explains_every_parameter_and_no_other(member):
    assert list(member.explained) == list(member.signature.parameters)


def test_its_example_calls_it(member):
    assert member.calls


# What it takes.


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_arrays_of_every_library_give_the_same_numbers(member, library):
    if library == "torch" and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    if member.name in OF_A_FUNCTION:
        return
    call = member.calls[0]._replace(wide=True)
    expected = list(numbers(member(call)))
    with jax.enable_x64(True):
        convert = jax.device_put if library == "jax" else importlib.import_module("torch").asarray
        arguments = {name: converted(value, convert) for name, value in call.arguments.items()}
        in_one = library == "jax" and member.name not in OF_NUMBERS
        found = list(numbers(compiled(member, call, arguments) if in_one else member(call, **arguments)))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        # Sums in another order; half of the digits of numbers that are zero but for rounding.
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-8 * np.abs(other).max(initial=1.0))


# What collects numbers from batches, by the arguments that have one row for each sample.
STREAMED = {
    "activation_patterns.count_active": ("preactivations",),
    "activation_patterns.count_flips": ("before", "after"),
    "diffusion.gradient_noise": ("batch_gradients",),
    "features.feature_moments": ("features", "outputs"),
    "neural_collapse.class_moments": ("features", "labels"),
    "utility.output_utility": ("outputs", "residuals"),
    "utility.two_layer_utility": ("inputs", "residuals"),
}


def test_every_result_that_can_be_added_is_streamed():
    plain = int | float | list | tuple | np.ndarray | np.generic | jax.Array
    results = {name: probe(probe.calls[0]) for name, probe in MEMBERS.items()}
    assert {name for name, each in results.items() if hasattr(each, "__add__") and not isinstance(each, plain)} == set(
        STREAMED
    )


@pytest.mark.parametrize("name", STREAMED)
def test_what_is_collected_from_batches_is_what_the_whole_gives(name):
    probe = MEMBERS[name]
    call = probe.calls[0]
    whole = probe(call)
    half = len(call.arguments[STREAMED[name][0]]) // 2
    first, second = (
        probe(call, **{each: call.arguments[each][rows] for each in STREAMED[name]})
        for rows in (slice(0, half), slice(half, None))
    )
    found, expected = list(numbers(first + second)), list(numbers(whole))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


# What it refuses.


@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_of_each_argument_is_refused_by_its_name(member):
    call = member.calls[0]
    known = member(call) if member.name in OF_SHAPES else None
    accepted = []
    for name, value in call.arguments.items():
        if not (is_numeric(value) or is_row(value)) or is_record(value):
            continue
        for kind, bad in {"NaN": np.nan, "∞": np.inf}.items():
            first = np.array(value[0] if is_row(value) else value, dtype=float)
            if np.asarray(value[0] if is_row(value) else value).dtype.kind != "f":
                continue
            first.flat[0] = bad
            try:
                answer = member(call, **{name: [first, *value[1:]] if is_row(value) else first})
            except InputError as error:
                if not str(error.argument).startswith(name):
                    accepted.append(f"{name} {kind}: named {error.argument}")
            except Exception as error:
                accepted.append(f"{name} {kind}: {type(error).__name__} {str(error)[:80]}")
            else:
                if member.name not in OF_SHAPES or answer != known:
                    accepted.append(f"{name} {kind}: answered {str(answer)[:80]}")
    assert not accepted, "\n".join(accepted)
