"""Langevin dynamics with diffrax solvers, whose paths converge as the time step decreases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp

from dynascope.compilation import filter_jit
from dynascope.validation import require

__all__ = ["langevin_steps", "require_langevin_solver"]

_AREAS = (diffrax.BrownianIncrement, diffrax.SpaceTimeLevyArea, diffrax.SpaceTimeTimeLevyArea)
_STOCHASTIC = (diffrax.AbstractItoSolver, diffrax.AbstractStratonovichSolver)
_REMEDY = {"underdamped": "diffrax.QUICSORT() or diffrax.ALIGN()", "overdamped": "diffrax.ShARK() or diffrax.Heun()"}


def require_langevin_solver(solver: Any, dynamics: str) -> None:
    """Raise `InputError` if a diffrax solver does not support the equations of `dynamics`."""
    inertial = isinstance(solver, diffrax.AbstractFosterLangevinSRK)
    fits = inertial if dynamics == "underdamped" else isinstance(solver, _STOCHASTIC) and not inertial
    require(
        fits and not isinstance(solver, diffrax.AbstractImplicitSolver),
        f"solver is {type(solver).__name__}, which does not support {dynamics} Langevin equations",
        argument="solver",
        value=type(solver).__name__,
        remedy=f"choose a solver such as {_REMEDY[dynamics]}, or omit solver",
    )


class _Spread(diffrax.AbstractBrownianPath):
    """The Brownian path Σ^½ W; its increments and Lévy areas are linear in W.

    Both ends of a step are evaluated in a single tree search, because compiling this search takes most of the time.
    Chen's relation (arXiv:2405.06464) then gives the increment and the area over the step.
    """

    path: diffrax.VirtualBrownianTree
    spread: Callable[[Any], Any]
    levy_area: Any = eqx.field(static=True)

    @property
    def t0(self) -> Any:
        return self.path.t0

    @property
    def t1(self) -> Any:
        return self.path.t1

    def evaluate(self, t0: Any, t1: Any = None, left: bool = True, use_levy: bool = False) -> Any:
        ends: Any = jax.vmap(lambda t: self.path.evaluate(t, use_levy=True))(jnp.stack([t0, t1]))
        span, (before, after) = t1 - t0, ends.W
        parts = {"W": after - before}
        if hasattr(ends, "H"):
            bridge = t0 * after - t1 * before
            first, last = t0 * ends.H[0], t1 * ends.H[1]
            area = last - first + bridge / 2
            parts["H"] = area / span
            if hasattr(ends, "K"):
                areas = t1**2 * ends.K[1] - t0**2 * ends.K[0] - span / 2 * first + t0 / 2 * area
                parts["K"] = (areas + (t1 - 2 * t0) / 12 * bridge) / span**2
        spread = {name: self.spread(each) for name, each in parts.items()}
        return self.levy_area(dt=span, **spread) if use_levy else spread["W"]


@filter_jit
def langevin_steps(
    gradient: Any, place: Any, push: Any, strength: Any, settings: Any, recorded: Any, keys: Any, solver: Any
) -> Any:
    """Simulate θ and v at the recorded steps, each of shape (times, runs, d).

    The Brownian path of a run is a binary tree whose time span is 2^n steps, so halving the time step does not change
    the path.

    Args:
        gradient: Function from weights (d,) to ∇L (d,).
        place: Initial θ, shape (runs, d).
        push: Initial v, shape (runs, d).
        strength: √(η/S) Σ^½, shape (d, d), or (d,) for independent coordinates.
        settings: Δt, η, β and λ.
        recorded: Indices of the recorded steps, at least one of them positive.
        keys: One random key per run.
        solver: A diffrax solver; its type determines whether the equations are underdamped or overdamped.
    """
    step, rate, momentum, decay = settings
    kick = 2 / (rate * (1 + momentum))
    friction = kick * (1 - momentum)
    inertial = isinstance(solver, diffrax.AbstractFosterLangevinSRK)
    span = step * 2 ** jnp.ceil(jnp.log2(jnp.maximum(recorded[-1], 1)))
    least = getattr(solver, "minimal_levy_area", diffrax.AbstractBrownianIncrement)
    area = next(each for each in _AREAS if issubclass(each, least))

    def force(a: Any) -> Any:
        return gradient(a) + decay * a

    def spread_out(z: Any) -> Any:
        return kick * (strength * z if strength.ndim == 1 else strength @ z)

    def terms(key: Any) -> Any:
        path = diffrax.VirtualBrownianTree(0.0, span, step / 2, place.shape[1:], key, area)
        if not inertial:
            drift = diffrax.ODETerm(lambda t, y, args: -force(y) / (1 - momentum))
            spread = strength if strength.ndim == 2 else jnp.diag(strength)
            alone = _Spread(path=path, spread=lambda z: z, levy_area=area)
            return diffrax.MultiTerm(drift, diffrax.ControlTerm(lambda t, y, args: spread / (1 - momentum), alone))
        # In diffrax, the noise amplitude is √(2γu), which is set to 1 here.
        damping = 1 / (2 * friction)
        shared = _Spread(path=path, spread=spread_out, levy_area=area)
        return diffrax.MultiTerm(
            diffrax.UnderdampedLangevinDriftTerm(friction, damping, lambda y, args: kick / damping * force(y)),
            diffrax.UnderdampedLangevinDiffusionTerm(friction, damping, shared),
        )

    def of_run(a: Any, v: Any, key: Any) -> Any:
        equation = terms(key)
        start = (a, v) if inertial else a

        def move(k: Any, held: Any) -> Any:
            y, state = held
            y, _, _, state, _ = solver.step(equation, k * step, (k + 1) * step, y, None, state, made_jump=False)
            return y, state

        def reach(carried: Any, target: Any) -> Any:
            number, held = carried
            held = jax.lax.fori_loop(number, target, move, held)
            return (target, held), held[0]

        initial = solver.init(equation, 0.0, step, start, None)
        found = jax.lax.scan(reach, (jnp.zeros_like(recorded[0]), (start, initial)), recorded)[1]
        return found if inertial else (found, jnp.zeros_like(found))

    return jax.vmap(of_run, out_axes=1)(place, push, keys)
