"""The command that predicts the loss of a network on the user's data and optionally checks the prediction."""

from __future__ import annotations

import dataclasses
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

# Rooms load their modules lazily, so that help appears immediately.
from dynascope import comparison, prediction, results
from dynascope.cli.exit_codes import code_of
from dynascope.cli.failure import FAILURES, Failure
from dynascope.cli.json_output import prediction_answer
from dynascope.cli.option_values import changed_options, option_words
from dynascope.cli.options import check_options, with_bounds_in_help
from dynascope.cli.output import (
    check_writable,
    open_page,
    page_of,
    print_json,
    print_paths,
    replace_results,
    result_name,
    write_results,
)
from dynascope.cli.progress import step
from dynascope.cli.user_curve import UserCurve, with_unknown_weights
from dynascope.cli.user_data import UserData
from dynascope.cli.user_training import UserTraining
from dynascope.cli.user_weights import UserWeights
from dynascope.compilation import compile_cache
from dynascope.results.numbers import rounded
from dynascope.validation import require
from dynascope.validation.bounded_scalars import Fraction, PositiveInt

if TYPE_CHECKING:
    import xarray as xr

    from dynascope.results import Comparison, Result

    _Kind = TypeVar("_Kind", bound=Result)

__all__ = ["Predict"]


@with_bounds_in_help
@dataclasses.dataclass(frozen=True)
class Predict:
    """Predict the loss staircase of a network trained on your data from a small initialisation.

    Args:
        data: The data.
        model: The network and its initial weights.
        curve: Your training run, which is compared with the prediction.
        training: The training run that checks the prediction.
        theory: Name of the theory, as listed by `dynascope which`; chosen automatically by default.
        normalised: Use the homogeneity-normalised flow for prediction and training.
        jumps: Maximum number of predicted jumps. Default: 5 for relu, quadratic and attention networks, otherwise all.
        smallest_jump: Jumps smaller than this fraction of the initial loss are summarised in one line.
        context: Number of examples in a prompt (attention only).
        max_steps: Maximum number of integration steps in each phase of the alternating flow (relu and quadratic
            networks only).
        out: Folder for the page and the record.
        open: Open the page in the browser.
        json: Print one JSON object.
    """

    data: UserData
    model: UserWeights = dataclasses.field(default_factory=UserWeights)
    curve: UserCurve = dataclasses.field(default_factory=UserCurve)
    training: UserTraining = dataclasses.field(default_factory=UserTraining)
    theory: str | None = None
    normalised: bool = False
    jumps: PositiveInt | None = None
    smallest_jump: Fraction = 1e-3
    context: float = 20.0
    max_steps: PositiveInt = 20_000
    out: Path = Path()
    open: bool = False
    json: bool = False

    @compile_cache()
    def __call__(self) -> int:
        """Predict, check the prediction if requested, and write and print the results; returns the exit code."""
        start = time.perf_counter()
        check_options(self)
        check_writable(self.out)
        self.training.require_training(learning_rate=self.curve.learning_rate, normalised=self.normalised)
        curve = self.curve.read(
            known=self.model.scale is not None or self.model.weights is not None,
            check=self.training.check,
            slope=self.training.slope,
            normalised=self.normalised,
            flow=self.training.flow == "descent",
        )
        with step(f"Reading {self.data.source}"):
            task = self.data.task(self.model.network, self.context)
        network, scale = self.model.network_on(task)
        predicted = self._predicted(task, network, scale)
        if not results.is_staircase(predicted):
            self._require_no_batches(predicted.attrs["theory_name"])
            self._require_no_jump_options(predicted.attrs["theory_name"])
        if curve is None:
            tree: Result = self._described(results.Prediction.of(predicted))
        else:
            if self.model.network != "diagonal" and self.model.weights is None:
                predicted = with_unknown_weights(predicted, f"seed {self.model.seed}, width {self.model.width}")
            tree = self._described(comparison.compare(curve, predicted))
        written, failed, failure = None, "could not save the prediction: ", None
        try:
            written = write_results(tree, self.out, result_name(f"{task.name}-{self.model.network}", self._changed()))
            if self.training.trains:
                print(f"Prediction: {page_of(written)}", file=sys.stderr)
                failed = "the check failed (the prediction was saved): "
                tree = self._checked(task, network, predicted)
                failed = "could not save the check (the prediction was saved): "
                replace_results(tree, written)
        except FAILURES as error:
            # The results so far are printed before the error.
            failure = Failure.of(error)
        seconds = time.perf_counter() - start
        if self.json:
            answer = prediction_answer(tree, seconds=seconds, record=written, task=task)
            print_json(answer if failure is None else {**answer, "error": failure.answer})
        else:
            # These modules load rich, which JSON output does not need.
            from dynascope.cli.terminal import print_data, print_staircase
            from dynascope.cli.terminal_curve import print_curve

            if self.data.prepares or self.model.network == "attention":
                print_data(task)
            (print_curve if tree.staircase is None else print_staircase)(tree)
            if written is not None:
                print_paths(written)
            if failure is not None:
                failure.print(failed)
        if self.open and written is not None:
            open_page(written)
        return code_of(None if tree.verdict is None else tree.verdict.outcome) if failure is None else failure.code

    def _predicted(self, task: Any, network: Any, scale: float | None) -> xr.Dataset:
        if scale is None:
            scale = prediction.default_scale(network, normalised=self.normalised)
        usual = None if self.model.network in ("linear", "diagonal") else 5
        article = "an" if self.model.network == "attention" else "a"
        with step(f"Predicting the training of {article} {self.model.network} network at scale {scale:g}"):
            jumps = usual if self.jumps is None else self.jumps
            given: dict[str, Any] = {"scale": scale, "normalised": self.normalised, "jumps": jumps}
            given["max_steps"] = self.max_steps
            if self.model.seeds == 1:
                predicted = prediction.predict(task, network, theory=self.theory, **given).record
            else:
                seeds = {"seeds": self.model.seeds, "first": self.model.seed, "width": self.model.width}
                predicted = prediction.predict_seeds(task, self.model.network, **seeds, **given).record
        if results.is_staircase(predicted):
            predicted = predicted.assign_attrs(smallest_jump=self.smallest_jump)
        if self.curve.learning_rate is None:
            return predicted
        return comparison.in_steps(
            predicted,
            learning_rate=self.curve.learning_rate,
            momentum=self.curve.momentum,
            loss=self.curve.loss or "squared",
            batch_size=self.training.batch_size,
        )

    def _require_no_batches(self, theory: str) -> None:
        """Reject minibatches for an exact theory, whose predictions contain no minibatch noise."""
        require(
            self.training.flow == "gradient_flow" or self.training.batch_size is None,
            f"batch_size is {self.training.batch_size}, but {theory} predicts the loss of full-batch training",
            argument="batch_size",
            value=self.training.batch_size,
            remedy="omit --batch-size to train on all samples",
        )

    def _require_no_jump_options(self, theory: str) -> None:
        """Reject options about jumps if the theory predicts only the loss over time."""
        about = {
            "slope": self.training.slope,
            "seeds": self.model.seeds > 1 and self.model.seeds,
            "jumps": self.jumps,
        }
        for name, given in about.items():
            require(
                given in (None, False),
                f"{name} applies to jumps, but the theory {theory} predicts only the loss over time",
                argument=name,
                value=given,
                remedy=f"omit --{name}, or use `dynascope which` to find a theory that predicts jumps",
            )

    def _checked(self, task: Any, network: Any, predicted: xr.Dataset) -> Comparison:
        given = {"learning_rate": self.curve.learning_rate, "loss": self.curve.loss, "seed": self.model.seed}
        observed, other = self.training.trained(task, network, predicted, **given)
        return self._described(comparison.compare(observed, predicted, at_other_scale=other))

    def _changed(self) -> dict[str, Any]:
        """Return the options that affect the results and differ from their defaults."""
        return changed_options(self, without=("source", "network", "out", "open", "json"))

    def _described(self, result: _Kind) -> _Kind:
        """Add the command line, its options and the figures to the result."""
        words = ["dynascope", "predict", self.data.source, "--network", self.model.network]
        words += option_words(self._changed())
        parameters = {}
        if self.model.network != "diagonal" and not self.model.weights:
            parameters["seed"] = results.Parameter(self.model.seed, "Seed of the initial weights.")
            parameters["width"] = results.Parameter(self.model.width, "Number of hidden neurons.")
        return dataclasses.replace(
            result,
            parameters=parameters,
            provenance=dataclasses.replace(result.provenance, command=shlex.join(words)),
            **_page(result.predicted, self.model.seeds),
        )


def _page(predicted: Any, seeds: int) -> dict[str, Any]:
    """Return the fields of a result that declare its page, or an empty dictionary for the default page."""
    if not results.is_staircase(predicted):
        return _page_of_a_curve(predicted)
    if "loss_median" not in predicted:
        return {}
    spread = results.Chart(
        "loss_median",
        title=f"Loss over {seeds} draws of the initial weights",
        caption="Median of the predicted losses at this scale; the band extends from the minimum to the maximum.",
        interval=("loss_low", "loss_high"),
        y_label="loss",
    )
    return {"charts": (results.Chart("loss", staircase=True), spread)}


def _page_of_a_curve(predicted: xr.Dataset) -> dict[str, Any]:
    """Return the figures, question and explanation for a theory that predicts the loss over time."""
    loss, network, task = predicted["loss"], predicted.attrs["network"], predicted.attrs["task"]
    charts = [
        results.Chart(
            "loss",
            title="Loss over time",
            caption=f"The loss falls from {rounded(loss[0])} to {rounded(loss[-1])}.",
            residual=True,
        )
    ]
    if "coefficient" in predicted:
        hidden = {str(name): "" for name in predicted["coefficient"].dims if name != "time"}
        charts.append(
            results.Chart(
                "coefficient",
                title="The network's linear map",
                caption="Each line is one coefficient of the linear map from inputs to outputs.",
                symbols=hidden,
            )
        )
    return {
        "question": f'How does a {network} network learn the task "{task}" from its initial weights?',
        "meaning": "The dashed curve is computed from the initial weights without training: in closed form, or by "
        "solving a differential equation for the network function.",
        "charts": tuple(charts),
    }
