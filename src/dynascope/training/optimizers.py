"""Any optax transformation as the optimiser of descent, and the rates that it applied."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax

from dynascope.arguments import calling, require, shown_error
from dynascope.errors import InputError

__all__ = [
    "applied_rate",
    "asked_by",
    "check_schedule",
    "checked_optimizer",
    "chosen_rates",
    "is_made",
    "made",
    "name_of",
]


def checked_optimizer(optimizer: Any) -> Any:
    """The optimiser in the form in which programs are compiled for it.

    Raises:
        InputError: It is neither "sgd" nor an optax transformation nor a function.
    """
    if hasattr(optimizer, "gradient_transformation"):
        optimizer = optimizer.gradient_transformation()
    require(
        (isinstance(optimizer, str) and optimizer == "sgd") or is_made(optimizer) or callable(optimizer),
        f"optimizer is {optimizer!r}",
        argument="optimizer",
        value=str(optimizer),
        remedy="choose sgd, or give an optax transformation, or a function from a learning rate to one",
    )
    return optax.sgd if isinstance(optimizer, str) else optimizer


def is_made(optimizer: Any) -> bool:
    """Whether it is a transformation, which has its own learning rate, rather than a function from a rate to one."""
    return hasattr(optimizer, "init") and hasattr(optimizer, "update")


def chosen_rates(learning_rate: Any, *, has_own: bool) -> tuple[Any, Any, bool]:
    """The rates of the members, the schedule, and whether time has to be summed up on the way.

    Args:
        learning_rate: As `descend` takes it.
        has_own: Whether the optimiser has its own rate.

    Raises:
        InputError: There is none, or one too many.
    """
    layerwise = isinstance(learning_rate, Mapping)
    if has_own:
        require(
            learning_rate is None or layerwise,
            f"learning_rate is {learning_rate} and the optimizer, a transformation, has its own",
            argument="learning_rate",
            value=str(learning_rate),
            remedy="leave it out, or give a function from a rate to a transformation as the optimizer",
        )
    elif learning_rate is None:
        raise InputError(
            "learning_rate is not given",
            argument="learning_rate",
            remedy="give a number, several, one for each layer, or a schedule",
        )
    if learning_rate is None:
        return 1.0, None, True
    return (1.0, learning_rate, True) if callable(learning_rate) else (learning_rate, None, False)


def made(optimizer: Any, rate: Any) -> optax.GradientTransformationExtraArgs:
    """The transformation for a learning rate, or a schedule of it."""
    if callable(rate) and not is_made(optimizer):
        return optax.with_extra_args_support(optimizer(lambda count: _scheduled(rate, count)))
    return optax.with_extra_args_support(optimizer if is_made(optimizer) else optimizer(rate))


def name_of(optimizer: Any) -> str:
    """What records call it."""
    function = optimizer.update if is_made(optimizer) else optimizer
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", type(function).__name__)
    # optax transformations are functions within the function that has their name.
    return name.split(".")[0]


def check_schedule(schedule: Callable[[Any], Any]) -> None:
    """Check that a schedule gives a number for a number of updates.

    Raises:
        InputError: It does not.
    """
    form = "give a JAX function of the number of updates whose value is a number"
    with calling("learning_rate", name_of(schedule), form):
        value = jax.eval_shape(schedule, jnp.zeros((), jnp.int32))
    number = isinstance(value, jax.ShapeDtypeStruct) and value.shape == () and jnp.issubdtype(value.dtype, jnp.number)
    require(
        number and not jnp.issubdtype(value.dtype, jnp.complexfloating),
        f"learning_rate, the function {name_of(schedule)}, gives {value}",
        argument="learning_rate",
        value=str(value),
        remedy=form,
    )


def applied_rate(schedule: Callable[[Any], Any] | None, before: Any, after: Any, step: Any, dtype: Any) -> Any:
    """The learning rate of a step, as far as the state of the optimiser tells it, and else that of the schedule.

    States tell it after `optax.inject_hyperparams` and line searches; without a schedule either it counts as one. With
    `optax.MultiSteps`, which counts the updates that are made, it is zero at a step without one, and the schedule is
    that of updates.
    """
    told, updates = _named(after, "learning_rate"), _named(before, "gradient_step")
    if not told:
        told = [1.0 if schedule is None else _scheduled(schedule, updates[0] if updates else step)]
    rate = jnp.asarray(told[0], dtype)
    return jnp.where(_named(after, "gradient_step")[0] > updates[0], rate, 0) if updates else rate


def _scheduled(schedule: Callable[[Any], Any], count: Any) -> Any:
    """The rate after so many updates; optax counts them in 32 bits, of which a quotient has 32 too."""
    return schedule(jnp.asarray(count, jnp.result_type(int)))


def _named(state: Any, name: str) -> list[Any]:
    return [value for _, value in optax.tree_utils.tree_get_all_with_path(state, name)]


@contextlib.contextmanager
def asked_by(optimizer: Any) -> Iterator[None]:
    """While an optimiser is started or applied: say what it asks for that descent does not give.

    Raises:
        InputError: The optimiser cannot be started or applied.
    """
    try:
        yield
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError, AssertionError, LookupError, ArithmeticError) as error:
        sentence = shown_error(error)
        asked = re.search(r"required (?:keyword-only |positional )?arguments?: (.+)", sentence)
        problem = f"asks for {asked[1]}" if asked else f"cannot be applied ({sentence})"
        raise InputError(
            f"the optimizer {name_of(optimizer)} {problem}",
            argument="optimizer",
            value=name_of(optimizer),
            remedy="use one that needs no more than gradients, parameters, value, grad and value_fn",
        ) from error
