"""Optimisers: optax transformations, Runge–Kutta steps, weight decay and decreasing learning rates."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jax.tree_util import Partial

from dynascope.errors import InputError
from dynascope.validation import calling, require, shown_error

__all__ = [
    "annealed",
    "applied_rate",
    "chosen_optimizer",
    "decayed",
    "falling",
    "name_of",
    "optimizer_errors",
    "runge_kutta",
    "transformation",
]


class RungeKuttaState(NamedTuple):
    """State of `runge_kutta`: the number of completed steps."""

    count: Any


def runge_kutta(learning_rate: Any) -> optax.GradientTransformationExtraArgs:
    """Classical Runge–Kutta method for the gradient flow θ̇ = −∇L(θ), as an optax transformation.

    With the slopes

        k₁ = ∇L(θ),  k₂ = ∇L(θ − ½ η k₁),  k₃ = ∇L(θ − ½ η k₂),  k₄ = ∇L(θ − η k₃),

    a step is θ ← θ − η (k₁ + 2 k₂ + 2 k₃ + k₄)/6, at the cost of four gradients. For a fixed loss, the error at a fixed
    time decreases as η⁴, compared with η for plain descent. Steps are stable if η times the largest curvature is below
    2.78. All four gradients use the batch of the step. Pass this function to `Descent` as the optimiser. In an optax
    chain, `runge_kutta` must come first, because it uses the incoming gradient as k₁.

    Args:
        learning_rate: η > 0, or a JAX function of the number of completed steps.

    Returns:
        An optax transformation. The `update` of the transformation requires the parameters and `value_fn`, the loss as
        a function of the parameters.

    References:
        W. Kutta, Beitrag zur näherungsweisen Integration totaler Differentialgleichungen, Z. Math. Phys. 46 (1901).

    Example:
        >>> import numpy as np
        >>> from dynascope.training import Descent, descend
        >>> from dynascope.networks import DeepLinear
        >>> from dynascope.tasks import Task
        >>> task, network = Task(np.eye(2), np.zeros((2, 1))), DeepLinear((2, 1))
        >>> ends = descend(task, network, Descent(runge_kutta, learning_rate=0.5, steps=4, save=[0, 4]))
        >>> flow = np.exp(-2.0)  # of the loss, at the rate ½ of each weight, after the time 2
        >>> bool(abs(float(ends["loss"][1] / ends["loss"][0]) - flow) < 1e-4)
        True
    """

    def initial(params: Any) -> RungeKuttaState:
        return RungeKuttaState(jnp.zeros((), jnp.int32))

    def update(
        updates: Any, state: Any, params: Any = None, *, value_fn: Callable[[Any], Any], **_: Any
    ) -> tuple[Any, RungeKuttaState]:
        length: Any = learning_rate(state.count) if callable(learning_rate) else learning_rate
        slope = jax.grad(value_fn)

        def ahead(part: float, slopes: Any) -> Any:
            return jax.tree.map(lambda weight, each: weight - part * length * each, params, slopes)

        two = slope(ahead(0.5, updates))
        three = slope(ahead(0.5, two))
        four = slope(ahead(1.0, three))
        changes = jax.tree.map(
            lambda *slopes: -length * ((slopes[0] + 2 * slopes[1] + 2 * slopes[2] + slopes[3]) / 6),
            *(updates, two, three, four),
        )
        return changes, RungeKuttaState(state.count + 1)

    # The type of `update` in optax does not allow required extra arguments.
    return optax.GradientTransformationExtraArgs(initial, update)  # type: ignore[arg-type]


def decayed(optimizer: Callable[..., Any], weight_decay: Any, **options: Any) -> Partial:
    """Optimiser for the loss plus ½ λ‖θ‖²; λθ is added to the gradient, as in PyTorch's SGD and Adam.

    Args:
        optimizer: A function from a learning rate to an optax transformation.
        weight_decay: λ ≥ 0.
        **options: Additional arguments of `optimizer`.

    Example:
        >>> import jax
        >>> made = decayed(optax.sgd, 0.5)(0.1)
        >>> round(float(jax.jit(made.update)(1.0, made.init(4.0), 4.0)[0]), 6)
        -0.3
    """
    return Partial(_decayed, optimizer, weight_decay, **options)


def annealed(
    name: Literal["sgd", "adam"], steps: int, *, largest_gradient: float | None = None, weight_decay: float = 0.0
) -> Partial:
    """Optimiser whose learning rate decreases to zero on a cosine schedule.

    Args:
        name: Name of the optax optimiser.
        steps: Number of steps until the rate is zero.
        largest_gradient: Norm at which gradients are clipped; None for no clipping.
        weight_decay: λ ≥ 0; λθ is added to the gradient.
    """
    return Partial(_annealed, name, steps, largest_gradient, weight_decay)


def falling(learning_rate: Any, updates: Any, factor: float = 0.2) -> Partial:
    """Schedule that multiplies the learning rate by a factor after each of the given numbers of updates.

    Example:
        >>> import jax
        >>> import numpy as np
        >>> rate = jax.jit(falling(0.5, np.array([3, 6])))
        >>> [round(float(rate(update)), 3) for update in (2, 3, 6)]
        [0.5, 0.1, 0.02]
    """
    return Partial(_fallen, learning_rate, updates, factor)


def chosen_optimizer(optimizer: Any, learning_rate: Any) -> tuple[Any, Any]:
    """Validate the optimiser and the learning rate.

    Returns:
        The optimiser, as a transformation or as a function of the rate that returns one; and the learning rates of the
        members.
    """
    if hasattr(optimizer, "gradient_transformation"):
        optimizer = optimizer.gradient_transformation()
    require(
        (isinstance(optimizer, str) and optimizer == "sgd") or _is_transformation(optimizer) or callable(optimizer),
        f"optimizer is {optimizer!r}",
        argument="optimizer",
        value=str(optimizer),
        remedy='choose "sgd", an optax transformation, or a function of the learning rate that returns one',
    )
    if _is_transformation(optimizer):
        require(
            learning_rate is None or isinstance(learning_rate, Mapping),
            f"learning_rate is {learning_rate}, but the optimizer is a transformation with its own rate",
            argument="learning_rate",
            value=str(learning_rate),
            remedy="omit learning_rate, or give as optimizer a function that maps a learning rate to a transformation",
        )
    elif learning_rate is None:
        raise InputError(
            "learning_rate is missing",
            argument="learning_rate",
            remedy="give a number, a list of numbers, a number for each layer, or a schedule",
        )
    rates = 1.0 if learning_rate is None or callable(learning_rate) else learning_rate
    return optax.sgd if isinstance(optimizer, str) else optimizer, rates


def transformation(optimizer: Any, rate: Any, schedule: Any) -> optax.GradientTransformationExtraArgs:
    """Return the transformation for a schedule, or for a constant rate if the schedule is None."""
    if schedule is not None:
        _check_schedule(schedule)
    with optimizer_errors(optimizer):
        if _is_transformation(optimizer):
            return optax.with_extra_args_support(optimizer)
        made = optimizer(rate if schedule is None else lambda count: _scheduled(schedule, count))
        return optax.with_extra_args_support(made)


def name_of(optimizer: Any) -> str:
    """Return the name of an optimiser or of a schedule for records."""
    function = optimizer.update if _is_transformation(optimizer) else optimizer
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", type(function).__name__)
    # In optax, `update` is nested in the function with the name of the transformation.
    return name.split(".")[0]


def applied_rate(schedule: Callable[[Any], Any] | None, before: Any, after: Any, step: Any, dtype: Any) -> Any:
    """Return the learning rate of a step from the state of the optimiser or, if it contains no rate, from the schedule.

    The state contains the rate if `optax.inject_hyperparams` or a line search is used. If there is neither a rate in
    the state nor a schedule, the rate is one. With `optax.MultiSteps`, the rate is zero at a step without an update,
    and the schedule is a function of the number of updates.
    """
    rates, updates = _named(after, "learning_rate"), _named(before, "gradient_step")
    if not rates:
        rates = [1.0 if schedule is None else _scheduled(schedule, updates[0] if updates else step)]
    rate = jnp.asarray(rates[0], dtype)
    return jnp.where(_named(after, "gradient_step")[0] > updates[0], rate, 0) if updates else rate


@contextlib.contextmanager
def optimizer_errors(optimizer: Any) -> Iterator[None]:
    """Raise `InputError` if constructing, initialising or applying an optimiser fails in this context."""
    try:
        yield
    except InputError:
        raise
    except (TypeError, ValueError, AttributeError, AssertionError, LookupError, ArithmeticError) as error:
        sentence = shown_error(error)
        missing = re.search(r"required (?:keyword-only |positional )?arguments?: (.+)", sentence)
        problem = f"requires {missing[1]}" if missing else f"cannot be applied ({sentence})"
        raise InputError(
            f"the optimizer {name_of(optimizer)} {problem}",
            argument="optimizer",
            value=name_of(optimizer),
            remedy="use an optimizer that requires only gradients, parameters, value, grad and value_fn",
        ) from error


def _is_transformation(optimizer: Any) -> bool:
    """Whether the optimiser is a transformation with its own learning rate."""
    return hasattr(optimizer, "init") and hasattr(optimizer, "update")


def _check_schedule(schedule: Callable[[Any], Any]) -> None:
    form = "give a JAX function of the number of updates that returns a real number"
    with calling("learning_rate", name_of(schedule), form):
        value = jax.eval_shape(schedule, jnp.zeros((), jnp.int32))
    number = isinstance(value, jax.ShapeDtypeStruct) and value.shape == () and jnp.issubdtype(value.dtype, jnp.number)
    require(
        number and not jnp.issubdtype(value.dtype, jnp.complexfloating),
        f"learning_rate is the function {name_of(schedule)}, which returns {value}",
        argument="learning_rate",
        value=str(value),
        remedy=form,
    )


def _scheduled(schedule: Callable[[Any], Any], count: Any) -> Any:
    """Return the rate after `count` updates; `count` has the default integer type, for precise quotients."""
    return schedule(jnp.asarray(count, jnp.result_type(int)))


def _named(state: Any, name: str) -> list[Any]:
    return [value for _, value in optax.tree_utils.tree_get_all_with_path(state, name)]


def _decayed(
    optimizer: Callable[..., Any], weight_decay: Any, learning_rate: Any, **options: Any
) -> optax.GradientTransformation:
    return optax.chain(optax.add_decayed_weights(weight_decay), optimizer(learning_rate, **options))


def _annealed(
    name: str, steps: int, largest_gradient: float | None, weight_decay: float, learning_rate: Any
) -> optax.GradientTransformation:
    return optax.chain(
        optax.identity() if largest_gradient is None else optax.clip_by_global_norm(largest_gradient),
        optax.add_decayed_weights(weight_decay) if weight_decay else optax.identity(),
        getattr(optax, name)(optax.cosine_decay_schedule(1.0, steps)),
        optax.scale(learning_rate),
    )


def _fallen(first: Any, after: Any, factor: float, updates: Any) -> Any:
    return first * factor ** jnp.sum(updates >= after)
