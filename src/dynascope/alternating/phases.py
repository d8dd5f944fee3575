"""Alternation between the utility phase and the cost phase of alternating gradient flow."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.alternating.correlations import correlations
from dynascope.alternating.cost_phase import settle
from dynascope.alternating.events import Event, Jumps, listed
from dynascope.alternating.lockstep import Call
from dynascope.alternating.neurons import average_of, kinked, padded, require_neurons
from dynascope.alternating.operation_count import Effort
from dynascope.alternating.phase_rules import PhaseRules
from dynascope.alternating.quadratic_neurons import slopes_by_moments
from dynascope.alternating.saddle import Departure, rest
from dynascope.alternating.utility_phase import Dormant, Residual, grow, steepest
from dynascope.compilation import filter_jit
from dynascope.flows.deadline import overdue
from dynascope.flows.progress import report_progress
from dynascope.results.clock import time_unit
from dynascope.tasks.task import Task
from dynascope.validation import require

__all__ = ["OUT_OF_TIME", "OUT_OF_WORK", "Alternation"]

OUT_OF_TIME, OUT_OF_WORK = "out of time", "out of operations"
_DENSE = 500  # number of active weights up to which they are integrated accurately and their Hessian is computed
_ALIKE = 0.99  # correlation of outputs above which two neurons compute the same function
_RETURNED = 1e-2  # fraction of the largest active norm below which a neuron becomes dormant again
_LEAST_DROP = 10.0  # smallest drop that counts as a jump, in units of the tolerance of levels
_MOST_EVENTS = 10  # largest number of activations per neuron
_PAUSE = 2.0  # least number of e-folds until active neurons leave a saddle for which the cost phase stops there
_FOLLOWING = 0.3  # largest deviation of a neuron from the active neurons with which it moves
_AVERAGED = 100  # order of magnitude of the cost of an expectation in closed form, in samples
_STAGES, _LOOKS = 4, 40  # gradients per step of a utility phase, and before the first step
_UNCORRELATED = 1e-13  # gradient of the utility, relative to the residual and the output, that counts as rounding
_SPECTRA = 3  # Hessians in the search for a stationary point; each costs two gradients per weight, and its eigenvectors
# two more


class Alternation:
    """State of one run: dormant neurons in polar coordinates, weights of active neurons, and time."""

    def __init__(self, network, task, scale: float, normalised: bool, rules: PhaseRules, max_steps: int, operations):
        require_neurons(network)
        self.task, self.scale, self.normalised = task, scale, normalised
        self.unit = time_unit(scale, degree=network.degree, normalised=normalised)
        self.rules, self.max_steps = rules, max_steps
        self.unsettled_since = math.inf  # time of the first cost phase that ran out of steps
        self.network, self.kinked = network, kinked(network)
        # With one output, a neuron with the same function as a stationary active one has no utility between kinks, and
        # is attracted to the kinks at which the active one is stationary. It stays there; only errors of steps across
        # kinks would drive it away.
        self.stays = self.kinked and network.second.shape[1] == 1
        self.average = average_of(task, network)
        self.each, self.power = slopes_by_moments(network, self.average), 0.0 if normalised else network.degree - 2.0
        rows = np.asarray(network.neurons, np.float64)
        norms = np.linalg.norm(rows, axis=1)
        usable = (norms > 0) & np.isfinite(norms)
        require(
            bool(usable.all()),
            f"the weights of {int(np.sum(~usable))} of {len(rows)} neurons are zero or not finite",
            argument="network",
            value=float(norms.min(initial=0)),
            remedy="give every neuron finite, non-zero initial weights",
        )
        self.dormant = Dormant(rows / norms[:, None], np.log(norms) + np.log(scale), np.zeros(rows.shape))
        self.leaders: list[set[int]] = [set() for _ in rows]
        self.start = self.dormant.directions
        self.active = np.zeros_like(rows)
        self.waiting = np.ones(len(rows), bool)
        self.departure = Departure(np.zeros(0), np.zeros((0, *rows.shape)))
        self.time, self.effort = 0.0, Effort(len(task.inputs) if isinstance(task, Task) else _AVERAGED, operations)
        self.warnings: list[str] = []
        loss, slopes, doubled, most, output = jax.device_get(_first_look(network, self.average, self.start))
        self.initial_loss = float(loss)
        self.uncorrelated = bool(most <= _UNCORRELATED * math.sqrt(2 * loss) * output)
        self._check_start(slopes, doubled, scale * norms.max())
        self.least = rules.least_growth * float(most)
        smallest_drop = _LEAST_DROP * rules.level_tolerance * self.initial_loss
        self.jumps = Jumps(rules.tie, smallest_drop, self.least, None if self.power else self.unit)

    def _check_start(self, slopes: np.ndarray, doubled: np.ndarray, largest: float) -> None:
        degree = self.network.degree
        require(
            bool(
                np.allclose(doubled / 2 ** (degree - 1), slopes, rtol=1e-6, atol=1e-6 * np.abs(slopes).max(initial=0))
            ),
            f"the neurons are not homogeneous of degree {degree}",
            argument="network",
            value=type(self.network).__name__,
            remedy="replace biases with a constant input, and check the degree",
        )
        require(
            self.initial_loss > 0,
            "all targets of the task are zero, so a small network has nothing to learn",
            argument="task",
            value=self.initial_loss,
            remedy="give targets that are not all zero",
        )
        idle = np.flatnonzero(~np.any(slopes, axis=1))
        require(
            len(idle) < len(slopes),
            "no neuron moves, because the gradient of the utility is zero at every neuron",
            argument="network",
            remedy="choose other initial weights, or check that the targets vary with the inputs",
        )
        if len(idle):
            subject = "1 neuron has" if len(idle) == 1 else f"{len(idle)} neurons have"
            never = "never moves" if len(idle) == 1 else "never move"
            self.warnings.append(f"{subject} zero drift and {never}: {listed(idle)}.")
        if largest >= self.rules.threshold:
            self.warnings.append(
                f"The largest neuron has an initial norm of {largest:.2g}, which is not below the threshold of "
                f"{self.rules.threshold:g}, so the prediction is approximate."
            )

    def alternate(self, jumps: int | None, duration: float | None, *, alone: bool) -> Generator[Call, Any, str]:
        """Run until nothing is left to learn, and return why the run ended; if `alone`, report progress by jump."""
        loss, events = self.initial_loss, 0
        if self.uncorrelated:
            self.warnings.append(
                "The output of every neuron is uncorrelated with the targets to machine precision, so this "
                "network does not learn from these data if its initial weights are small."
            )
            return "no dormant neuron has positive utility"
        while True:
            if loss <= self.rules.level_tolerance * self.initial_loss:
                return "the loss is zero"
            if not self.waiting.any():
                return "no neuron is dormant any more"
            found = f"after {len(self.jumps)} jump{'s' if len(self.jumps) > 1 else ''}, so later jumps are unknown"
            if len(self.jumps) and overdue():
                self.warnings.append(f"The time limit of the prediction was reached {found}.")
                return OUT_OF_TIME
            if len(self.jumps) and self.effort.exhausted:
                most = f"{self.effort.most:.2g} operations"
                self.warnings.append(f"The limit of {most} was reached {found}; increase operations to continue.")
                return OUT_OF_WORK
            if events > _MOST_EVENTS * len(self.waiting):
                self.warnings.append(f"After {events} activations, neurons still switch between active and dormant.")
                return "out of steps"
            event = yield from self._grow(duration)
            if isinstance(event, str):
                return event
            if len(self.jumps) == jumps and not self.jumps.follows(event):
                return f"{jumps} jumps"
            yield from self._settle(event)
            self.jumps.append(event, loss)
            self._record_settled_weights(self.jumps.groups[-1])
            loss, events = event.loss, events + 1
            if alone and jumps is not None:
                report_progress(len(self.jumps), jumps, "jumps")

    def _grow(self, duration: float | None) -> Generator[Call, Any, Event | str]:
        """Utility phase: integrate until a neuron becomes active, or the active neurons leave a saddle."""
        departure = self.departure
        escape = departure.time(float(np.linalg.norm(self.active)))
        left = np.inf if duration is None else duration - self.time
        free = self.waiting & ~(self.stays & np.any(self.dormant.spent, axis=1))
        self.dormant, end = yield self._growing(self.dormant, free, min(escape, left))
        self.effort.count((_STAGES * int(end["steps"]) + _LOOKS) * self.each, weights=self.active.size)
        elapsed = float(end["elapsed"])
        if not end["reached"] and escape > elapsed:
            if elapsed >= left:
                return "the duration is over"
            if int(end["steps"]) >= self.max_steps:
                self.warnings.append(
                    f"No neuron became active in {self.max_steps} steps; increase max_steps to continue."
                )
                return "out of steps"
            return "no dormant neuron has positive utility"
        self.time += elapsed
        self.active += departure.growth(elapsed)
        growth, directions = np.asarray(end["growth"]), np.asarray(self.dormant.directions)
        fresh, spent = np.asarray(self.dormant.fresh()), np.asarray(self.dormant.spent)
        chosen = self._chosen(growth, end["log_sizes"]) if end["reached"] else []
        log_norms = np.asarray(self.dormant.log_norms)
        self.active[chosen] = np.exp(log_norms[chosen, None]) * directions[chosen]
        self.waiting[chosen] = False
        if chosen:
            new = fresh[chosen[0]]
            unit = new / np.linalg.norm(new)
            return Event(self.time, np.nan, growth[chosen[0]], chosen, [], unit, spent[chosen[0]])
        moved = departure.deviations[int(np.argmax(departure.rates))]
        most = moved[int(np.argmax(np.linalg.norm(moved, axis=1)))]
        unit = most / np.linalg.norm(most)
        return Event(self.time, np.nan, float(departure.rates.max()), [], [], unit, np.zeros_like(unit))

    def _chosen(self, growth: np.ndarray, log_sizes: np.ndarray) -> list[int]:
        """Choose the neurons to activate: the largest, and those that grow equally fast but compute other functions."""
        log_sizes = np.where(self.waiting, log_sizes, -np.inf)
        order = np.argsort(-log_sizes, kind="stable")
        chosen = [int(order[0])]
        alike = np.asarray(correlations(self.network, self.average, self.dormant.fresh())) > _ALIKE
        if not self.power:
            tied = (log_sizes >= log_sizes[chosen[0]] - self.rules.tie) & (growth >= 0.9 * growth[chosen[0]])
            for i in order:
                if tied[i] and not alike[i, chosen].any():
                    chosen.append(int(i))
        directions, spent = np.asarray(self.dormant.directions), np.array(self.dormant.spent)
        for i in chosen:
            followers = np.flatnonzero(self.waiting & alike[i])
            spent[followers] = directions[followers]
            for j in followers:
                self.leaders[j].add(i)
        self.dormant = self.dormant._replace(spent=spent)
        return chosen

    def _settle(self, event: Event) -> Generator[Call, Any, None]:
        """Cost phase: move the active neurons to a stationary point; those that shrink become dormant again."""
        so_far = self.time + 1 / max(event.growth, self.least)
        slowest = self.rules.level_tolerance * self.initial_loss / so_far
        returned: dict[int, np.ndarray] = {}
        before = self.active.copy()
        # The descent first accelerates, then slows down; if it accelerates again, the flow may have passed a saddle.
        bend, tracked = -1.0, True
        while True:
            members = np.flatnonzero(~self.waiting)
            dense = tracked and len(members) * self.active.shape[1] <= _DENSE
            rows, places = self._gathered(members)
            numbers = (np.asarray(each, float) for each in (slowest, _RETURNED, bend, so_far))
            own = rows, *numbers, np.asarray(not dense)
            result = yield Call(_settled, own, (dense and not self.kinked, self.normalised))
            self.effort.count(float(result.slopes), weights=rows.size)
            self.active[members] = np.asarray(result.rows)[places]
            event.loss = max(float(result.loss), 0.0)
            norms = np.linalg.norm(self.active[members], axis=1)
            shrunk = members[norms < _RETURNED * norms.max()]
            if len(shrunk):
                self.waiting[shrunk] = True
                returned |= {int(neuron): self.active[neuron].copy() for neuron in shrunk}
                self.active[shrunk] = 0.0
            elif dense and not result.stopped:
                # At a kink, small steps make no progress.
                tracked = False
            elif result.finished or not dense:
                break
            elif bend < 0:
                bend = 1.0
            else:
                flowing = self.active.copy()
                self._rest(event, members)
                rates = self.departure.rates
                if len(rates) and self.departure.time(float(np.linalg.norm(self.active))) * rates.max() > _PAUSE:
                    break
                # The saddle was passed on the way to the next stationary point, which is not far from it.
                self.active, bend = flowing, 0.0
        flowing = self.active.copy()
        self._rest(event, members)
        norms = np.linalg.norm(self.active, axis=1)
        vanished = np.flatnonzero(~self.waiting & (norms < _RETURNED * norms.max()))
        if len(vanished):
            # Newton steps are ahead of the flow; these neurons converge to zero.
            self.waiting[vanished] = True
            returned |= {int(neuron): flowing[neuron] for neuron in vanished}
            self.active[vanished] = 0.0
            self._rest(event, np.flatnonzero(~self.waiting))
        self._carry_along(before)
        for neuron, weights in returned.items():
            yield from self._retire(neuron, weights)
        event.returned = list(returned)
        if not result.stopped:
            self.unsettled_since = min(self.unsettled_since, self.time)
            self.warnings.append(
                f"At flow time {self.time:.4g}, the cost phase reached its maximum number of steps before the loss was "
                f"flat (it still fell by {float(result.descent):.2g} per unit of flow time), so the loss after this "
                "phase is an upper bound."
            )

    def _record_settled_weights(self, jump: list[Event]) -> None:
        """Record the current weights of the first neuron that a jump activated."""
        event = next((each for each in jump if each.activated), None)
        # Smooth neurons with the same function exchange weights in the cost phase, so that the weights of one of them
        # no longer show what is new.
        if event is not None and (self.kinked or not event.spent.any()):
            weights = self.active[event.activated[0]]
            new = weights - (weights @ event.spent) * event.spent
            remains = np.linalg.norm(new) > _RETURNED * np.linalg.norm(weights)
            event.settled = new if remains else None

    def _carry_along(self, before: np.ndarray) -> None:
        """Update the dormant neurons that compute the same function as active neurons.

        The weights of such a neuron are a combination of active weights plus a small deviation. The exact flow moves
        the dormant and the active neurons together, and the deviation later determines when the dormant neuron
        separates.
        """
        directions, log_norms, spent = (np.array(each) for each in self.dormant)
        for j in np.flatnonzero(self.waiting & np.any(spent, axis=1)):
            self.leaders[j] = {i for i in self.leaders[j] if not self.waiting[i]}
            leaders = sorted(self.leaders[j])
            shares = np.linalg.lstsq(before[leaders].T, directions[j], rcond=None)[0] if leaders else np.zeros(0)
            deviation = directions[j] - shares @ before[leaders]
            if not leaders or np.linalg.norm(deviation) > _FOLLOWING:
                self.leaders[j], spent[j] = set(), 0.0
                continue
            together = shares @ self.active[leaders]
            moved = together + deviation
            directions[j], log_norms[j] = moved / np.linalg.norm(moved), log_norms[j] + np.log(np.linalg.norm(moved))
            spent[j] = together / np.linalg.norm(together)
        self.dormant = Dormant(directions, log_norms, spent)

    def _retire(self, neuron: int, weights: np.ndarray) -> Generator[Call, Any, None]:
        """Integrate a shrunk neuron backwards in time up to the threshold, because the cost phase takes no time."""
        size = np.linalg.norm(weights)
        directions, log_norms, spent = (np.array(each) for each in self.dormant)
        directions[neuron], log_norms[neuron], spent[neuron] = weights / size, np.log(size), 0.0
        # Slightly below the threshold, which the neuron must cross again to become active.
        start = Dormant(directions, log_norms, spent)
        alone = np.arange(len(directions)) == neuron
        self.dormant, _ = yield self._growing(start, alone, np.inf, back=True)

    def _growing(self, dormant: Dormant, waiting: np.ndarray, longest: float, *, back: bool = False) -> Call:
        numbers = {
            "threshold": np.log(self.rules.threshold) - (1e-6 if back else 0.0),
            "longest": longest,
            "least": self.least,
            "sense": -1.0 if back else 1.0,
        }
        numbers = {name: np.asarray(value, float) for name, value in numbers.items()}
        numbers["max_steps"] = np.asarray(self.max_steps)
        # Copies, because the arrays may be read after they are changed here.
        own = self.active.copy(), dormant, waiting.copy(), self.start, numbers, np.asarray(self.power, float)
        return Call(_grown, own)

    def _gathered(self, members: np.ndarray) -> tuple[Any, Any]:
        """Return the active rows, padded so that few programs are compiled, and the indices of `members` among them."""
        if not getattr(self.network, "exchangeable", True):
            return self.active.copy(), members
        samples = 1 if self.kinked else self.effort.samples
        return padded(self.active[members], len(self.waiting), samples), np.arange(len(members))

    def _rest(self, event: Event, members: np.ndarray) -> None:
        """Complete the cost phase with Newton steps, and compute how the active neurons leave a saddle on their own."""
        self.departure = Departure(np.zeros(0), np.zeros((0, *self.active.shape)))
        if not 0 < len(members) * self.active.shape[1] <= _DENSE:
            return
        exchangeable = getattr(self.network, "exchangeable", True)
        given = members if exchangeable else np.arange(len(self.waiting))
        places = np.arange(len(members)) if exchangeable else members
        self.effort.count(4 * _SPECTRA * self.active[given].size, weights=self.active[given].size)
        rows, loss, (rates, motions) = rest(self.network, self.average, self.active[given], self.normalised)
        event.loss = max(loss, 0.0)
        self.active[members] = rows[places]
        # Slower motions are negligible over the length of a usual plateau.
        kept = rates * self.time > 0.1
        rates, motions = rates[kept], motions[kept]
        deviations = np.zeros((len(motions), *self.active.shape))
        deviations[:, members] = motions[:, places]
        self.departure = Departure(rates, deviations)
        event.unstable_rate = float(rates.max(initial=0.0))


@filter_jit
def _first_look(network: Any, average: Any, start: Any) -> tuple[Any, Any, Any, Any, Any]:
    """Return the loss without neurons, the gradients of the utility at θ and 2θ, the largest gradient, and the output.

    The output is the root mean square of the summed outputs of all neurons, computed from the curvature of the loss
    with respect to a common coefficient of the neurons.
    """
    nobody, everyone = jnp.zeros_like(start), jnp.ones(len(start), bool)
    residual = Residual(network, average, nobody)
    slopes, doubled = residual.slopes(start, everyone), residual.slopes(2 * start, everyone)
    loss = average.loss(network.with_neurons(nobody))
    neurons = network.with_neurons(start)

    def loss_of(coefficient: Any) -> Any:
        return average.loss(neurons.weighted(coefficient * jnp.ones(len(start))))

    output = jnp.sqrt(jnp.maximum(jax.grad(jax.grad(loss_of))(0.0), 0.0))
    return loss, slopes, doubled, jnp.max(steepest(residual, start, everyone)), output


def _grown(common: tuple[Any, Any], active: Any, *state: Any) -> Any:
    return grow(Residual(*common, active), *state)


def _settled(common: tuple[Any, Any], *state: Any) -> Any:
    return settle(*common, *state)
