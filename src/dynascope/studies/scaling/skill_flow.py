"""The multilinear model as a network, and the method by which it follows its gradient flow."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import optax

__all__ = ["SkillFlow", "skill_flow"]

_STABLE = 2.0  # the method of fourth order is stable up to 2.78


class SkillFlow(NamedTuple):
    """What trains a multilinear model.

    Attributes:
        network: The module with its weights and shares.
        lengths: Of the steps, a schedule.
        optimizer: The method, a function of the lengths.
    """

    network: Any
    lengths: Any
    optimizer: Any


@functools.cache
def skill_flow() -> SkillFlow:
    """The network, the lengths of its steps and its optimiser, one each, so that a compiled program is found again."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    from dynascope.flows import runge_kutta

    class Skills(eqx.Module):
        """The model f = Σ_k a_k b_k g_k; what else belongs to a run are arrays too, so that all share a program.

        Attributes:
            first: a_k.
            second: b_k.
            shares: p_k.
            target_scale: S.
            arrays: What is needed to measure.
        """

        first: Any
        second: Any
        shares: Any
        target_scale: Any
        arrays: Any

        def __call__(self, skills: Any) -> Any:
            return jnp.sum(self.first * self.second * skills, axis=-1)

        @property
        def missing(self) -> Any:
            """What every skill lacks, S − a_k b_k."""
            return jax.lax.stop_gradient(self.target_scale) - self.first * self.second

    class Lengths(eqx.Module):
        """The length of the step after so many: to the first start, and then at equal ratios within each interval.

        Attributes:
            starts: Of the intervals, shape (intervals,).
            ends: Number of steps at the end of each.
            ratios: Of the time after a step to that before it.
        """

        starts: Any
        ends: Any
        ratios: Any

        def __call__(self, steps: Any) -> Any:
            place = jnp.searchsorted(self.ends, steps, side="right")
            # One step leads to the first start.
            before = jnp.where(place == 0, 1, self.ends[place - 1])
            start, ratio = self.starts[place], self.ratios[place]
            return jnp.where(steps == 0, self.starts[0], start * ratio ** (steps - before) * (ratio - 1))

    def runge_kutta_where_stable(lengths: Any) -> optax.GradientTransformationExtraArgs:
        """The classical method, which leaves skills alone for which a step is too long."""
        method = runge_kutta(lengths)

        def update(updates: Any, state: Any, params: Any = None, **given: Any) -> tuple[Any, Any]:
            stable = 2 * params.target_scale * params.shares * lengths(state.count) < _STABLE
            changes: Any
            changes, after = method.update(updates, state, params, **given)
            own = [jnp.where(stable, each, 0) for each in (changes.first, changes.second)]
            return eqx.tree_at(lambda each: (each.first, each.second), changes, own), after

        return optax.GradientTransformationExtraArgs(method.init, update)

    return SkillFlow(Skills, Lengths, runge_kutta_where_stable)
