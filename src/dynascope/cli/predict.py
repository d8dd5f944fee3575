"""The command that predicts a staircase for one's own data and, if asked, puts it to the test."""

from __future__ import annotations

import dataclasses
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

# The face of a room loads what is behind it when it is used, so that help is there at once.
from dynascope import comparison, prediction, results
from dynascope.cli.exit_codes import code_of
from dynascope.cli.failure import FAILURES, Failure
from dynascope.cli.json_output import prediction_answer
from dynascope.cli.option_values import changed_options, option_words
from dynascope.cli.options import check_options, with_bounds_in_help
from dynascope.cli.output import (
    check_before,
    open_page,
    page_of,
    print_json,
    print_places,
    replace_results,
    result_name,
    write_results,
)
from dynascope.cli.progress import step
from dynascope.cli.user_curve import UserCurve, of_another_start
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
    """Predict the loss staircase of a network trained on your data from small initialisation.

    Args:
        data: What is learned.
        start: The network and its initial weights.
        curve: A run that was trained elsewhere.
        training: How the network is trained here, to check the prediction.
        theory: Name of the theory to predict by, as `dynascope which` lists them; chosen if not said.
        normalised: Predict, and train by, the homogeneity-normalised flow.
        jumps: Number of jumps after which to stop; all if not said, but 5 for relu, quadratic and attention.
        smallest_jump: Jumps that explain less of the initial loss are told in one line.
        context: Number of examples in a prompt, for attention.
        max_steps: Steps after which a phase of relu or quadratic networks is given up.
        out: Folder for the page and the record.
        open: Open the page in the browser.
        json: Print one JSON object.
    """

    data: UserData
    start: UserWeights = dataclasses.field(default_factory=UserWeights)
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
        """Predict, check if asked, write the results and say them; returns the exit code."""
        start = time.perf_counter()
        check_options(self)
        check_before(self.out)
        self.training.require_training(learning_rate=self.curve.learning_rate, normalised=self.normalised)
        curve = self.curve.read(
            known=self.start.scale is not None or self.start.weights is not None,
            check=self.training.check,
            slope=self.training.slope,
            normalised=self.normalised,
            flow=self.training.flow == "descent",
        )
        with step(f"Reading {self.data.source}"):
            task = self.data.task(self.start.network, self.context)
        network, scale = self.start.network_on(task)
        predicted = self._predicted(task, network, scale)
        if not results.is_staircase(predicted):
            self._require_no_batches(predicted.attrs["theory_name"])
            self._require_nothing_of_jumps(predicted.attrs["theory_name"])
        if curve is None:
            tree: Result = self._described(results.Prediction.of(predicted))
        else:
            if self.start.network != "diagonal" and self.start.weights is None:
                predicted = of_another_start(predicted, f"seed {self.start.seed}, width {self.start.width}")
            tree = self._described(comparison.compare(curve, predicted))
        written, failed, failure = None, "the prediction could not be written: ", None
        try:
            written = write_results(tree, self.out, result_name(f"{task.name}-{self.start.network}", self._changed()))
            if self.training.trains:
                print(f"The prediction is in {page_of(written)}", file=sys.stderr)
                failed = "the prediction stays, and the check failed: "
                tree = self._checked(task, network, predicted)
                failed = "the check could not be written, and the prediction stays: "
                replace_results(tree, written)
        except FAILURES as error:
            # What was found so far is worth being told.
            failure = Failure.of(error)
        seconds = time.perf_counter() - start
        if self.json:
            answer = prediction_answer(tree, seconds=seconds, record=written, task=task)
            print_json(answer if failure is None else {**answer, "error": failure.answer})
        else:
            # They load rich, which JSON does without.
            from dynascope.cli.terminal import print_data, print_staircase
            from dynascope.cli.terminal_curve import print_curve

            if self.data.prepares:
                print_data(task)
            (print_curve if tree.staircase is None else print_staircase)(tree)
            if written is not None:
                print_places(written)
            if failure is not None:
                failure.print(failed)
        if self.open and written is not None:
            open_page(written)
        return code_of(None if tree.verdict is None else tree.verdict.outcome) if failure is None else failure.code

    def _predicted(self, task: Any, network: Any, scale: float | None) -> xr.Dataset:
        if scale is None:
            scale = prediction.default_scale(network, normalised=self.normalised)
        usual = None if self.start.network in ("linear", "diagonal") else 5
        article = "an" if self.start.network == "attention" else "a"
        with step(f"Predicting {article} {self.start.network} network from scale {scale:g}"):
            jumps = usual if self.jumps is None else self.jumps
            given: dict[str, Any] = {"scale": scale, "normalised": self.normalised, "jumps": jumps}
            given["max_steps"] = self.max_steps
            if self.start.seeds == 1:
                predicted = prediction.predict(task, network, theory=self.theory, **given).record
            else:
                seeds = {"seeds": self.start.seeds, "first": self.start.seed, "width": self.start.width}
                predicted = prediction.predict_seeds(task, self.start.network, **seeds, **given).record
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
        """Refuse to judge a loss that is exact by a training whose batches part it from the predicted one."""
        require(
            self.training.flow == "gradient_flow" or self.training.batch_size is None,
            f"{theory} gives the loss without the noise of batches",
            argument="batch_size",
            value=self.training.batch_size,
            remedy="leave --batch-size out, which descends by all samples",
        )

    def _require_nothing_of_jumps(self, theory: str) -> None:
        """Refuse options that are about jumps, where a theory gives the loss over time alone."""
        about = {
            "slope": self.training.slope,
            "seeds": self.start.seeds > 1 and self.start.seeds,
            "jumps": self.jumps,
        }
        for name, said in about.items():
            require(
                said in (None, False),
                f"{name} is about jumps, and the theory {theory} gives the loss over time",
                argument=name,
                value=said,
                remedy="leave it out, or choose a theory of small starts: dynascope which",
            )

    def _checked(self, task: Any, network: Any, predicted: xr.Dataset) -> Comparison:
        given = {"learning_rate": self.curve.learning_rate, "loss": self.curve.loss, "seed": self.start.seed}
        observed, other = self.training.trained(task, network, predicted, **given)
        return self._described(comparison.compare(observed, predicted, at_other_scale=other))

    def _changed(self) -> dict[str, Any]:
        """The options that make the results different, and are not what they usually are."""
        return changed_options(self, without=("source", "network", "out", "open", "json"))

    def _described(self, result: _Kind) -> _Kind:
        """The result with the command that made it, its options and its figures."""
        words = ["dynascope", "predict", self.data.source, "--network", self.start.network]
        words += option_words(self._changed())
        parameters = {}
        if self.start.network != "diagonal" and not self.start.weights:
            parameters["seed"] = results.Parameter(self.start.seed, "Seed of the initial weights.")
            parameters["width"] = results.Parameter(self.start.width, "Number of hidden neurons.")
        return dataclasses.replace(
            result,
            parameters=parameters,
            provenance=dataclasses.replace(result.provenance, command=shlex.join(words)),
            **_page(result.predicted, self.start.seeds),
        )


def _page(predicted: Any, seeds: int) -> dict[str, Any]:
    """The figures and texts that tell a prediction; none where the usual ones do."""
    if not results.is_staircase(predicted):
        return _page_of_a_curve(predicted)
    if "loss_median" not in predicted:
        return {}
    spread = results.Chart(
        "loss_median",
        title=f"The loss over {seeds} draws of the initial weights",
        caption="Median of the predicted losses at this scale, in the band from the least to the largest.",
        interval=("loss_low", "loss_high"),
        y_label="loss",
    )
    return {"charts": (results.Chart("loss", staircase=True), spread)}


def _page_of_a_curve(predicted: xr.Dataset) -> dict[str, Any]:
    """The figures and texts for a theory that predicts the loss over time."""
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
        "question": f"How does a {network} network learn {task} from its initial weights?",
        "meaning": "The dashed curve is the closed-form solution, or the solution of a small equation for the function "
        "alone, from the network's initial weights. Nothing was trained to obtain it.",
        "charts": tuple(charts),
    }
