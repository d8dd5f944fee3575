"""The command that predicts a staircase for one's own data and, if asked, puts it to the test."""

from __future__ import annotations

import dataclasses
import json
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

import dynascope

# The face of a room loads what is behind it when it is used, so that help is there at once.
from dynascope import comparison, networks, prediction, record, tasks
from dynascope.arguments import require
from dynascope.cli.answers import prediction_answer
from dynascope.cli.exit_codes import code_of
from dynascope.cli.progress import step
from dynascope.cli.results import check_before, open_page, print_json, print_places, result_name, write_results
from dynascope.comparison.loss_convention import LossName
from dynascope.compilation import compile_cache
from dynascope.record.clock import is_exponential, other_scale

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["Predict"]


@dataclasses.dataclass(frozen=True)
class Predict:
    """Predict the loss staircase of a network trained on your data from small initialisation.

    Args:
        data: "digits", or a file: .npz with arrays x and y, x.npy beside y.npy, .csv or .parquet.
        network: Kind of network: two-layer relu, quadratic or linear, diagonal linear, or linear attention, which
            learns in-context regression on inputs like those of the data.
        scale: Initialisation scale, below one; if not said 1e-8, or 1e-3 where times grow as a power of it.
        target: Target columns of a table.
        only: Keep a single target, by its name.
        classification: Whether the target is a class label; decided by its type if not said.
        check: Also train the network, overlay both and judge.
        curve: CSV file with the loss of a run of yours (columns step and loss, or loss alone), to overlay and judge by.
        learning_rate: With the curve, the learning rate of its steps.
        loss: With the curve, how its loss is defined; mse is torch.nn.MSELoss.
        slope: With the check, also train from 1e-4 of the scale and compare slopes dt/dlog(1/scale).
        seed: Seed of the initial weights.
        width: Number of hidden neurons, or of attention heads.
        normalised: Predict, and train by, the homogeneity-normalised flow.
        jumps: Number of jumps after which to stop; all if not said, but 5 for relu, quadratic and attention.
        context: Number of examples in a prompt, for attention.
        out: Folder for the page and the record.
        open: Open the page in the browser.
        json: Print one JSON object.
    """

    data: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATA")]
    network: Literal["relu", "quadratic", "linear", "diagonal", "attention"] = "linear"
    scale: float | None = None
    target: tuple[str, ...] = ()
    only: str | None = None
    classification: bool | None = None
    check: bool = False
    curve: Path | None = None
    learning_rate: float | None = None
    loss: LossName | None = None
    slope: bool = False
    seed: int = 0
    width: int = 50
    normalised: bool = False
    jumps: int | None = None
    context: float = 20.0
    out: Path = Path()
    open: bool = False
    json: bool = False

    @compile_cache()
    def __call__(self) -> int:
        """Predict, check if asked, write the results and say them; returns the exit code."""
        start = time.perf_counter()
        check_before(self.out, self.seed)
        own = self._own_curve()
        with step(f"Reading {self.data}"):
            task = self._task()
        network = networks.network_for(self.network, task, width=self.width, seed=self.seed)
        clock = {"degree": network.degree, "normalised": self.normalised}
        scale = (1e-8 if is_exponential(**clock) else 1e-3) if self.scale is None else self.scale
        usual = None if self.network in ("linear", "diagonal") else 5
        with step(f"Predicting a {self.network} network from scale {scale:g}"):
            jumps = usual if self.jumps is None else self.jumps
            predicted = prediction.predict(task, network, scale=scale, normalised=self.normalised, jumps=jumps)
        if own is not None:
            tree = comparison.compare(own, self._of_another_start(predicted), attributes=self._said())
        elif self.check or self.slope:
            tree = self._checked(task, network, predicted, other_scale(scale, **clock))
        else:
            tree = comparison.unjudged(predicted, attributes=self._said())
        written = write_results(tree, self.out, result_name(f"{task.name}-{self.network}", self._changed()))
        view, seconds = record.TreeView.of(tree), time.perf_counter() - start
        if self.json:
            print_json(prediction_answer(view, seconds=seconds, record=written))
        else:
            from dynascope.cli.console import print_staircase  # it loads rich, which JSON does without

            print_staircase(view)
            print_places(written)
        if self.open:
            open_page(written)
        return code_of(tree.attrs.get("verdict"))

    def _changed(self) -> dict[str, Any]:
        """The options that make the results different, and are not what they usually are."""
        said = {"data", "network", "out", "open", "json"}
        values = {field.name: (getattr(self, field.name), field.default) for field in dataclasses.fields(self)}
        return {name: value for name, (value, usual) in values.items() if name not in said and value != usual}

    def _said(self) -> dict[str, str]:
        """What the results say of the command that made them."""
        words = ["dynascope", "predict", self.data, "--network", self.network]
        for name, value in self._changed().items():
            given = value if isinstance(value, tuple) else () if isinstance(value, bool) else (value,)
            words += [f"--{'no-' if value is False else ''}{name.replace('_', '-')}", *map(str, given)]
        drawn = {} if self.network == "diagonal" else {"seed": self.seed, "width": self.width}
        return {"command": shlex.join(words), "parameters": json.dumps(drawn)}

    def _own_curve(self) -> xr.Dataset | None:
        """The record of the user's curve, read before anything is computed."""
        besides = {"learning_rate": self.learning_rate, "loss": self.loss}
        if self.curve is None:
            for name, value in besides.items():
                require(
                    value is None,
                    f"{name} is {value}, and there is no curve that it is of",
                    argument=name,
                    value=value,
                    remedy="name the file with the losses of your run by --curve",
                )
            return None
        for name in ("check", "slope", "normalised"):
            require(
                not getattr(self, name),
                f"--{name} is about training here, and --curve about a run of yours",
                argument=name,
                value=True,
                remedy="leave one of them out",
            )
        require(
            self.scale is not None,
            "nothing says from how small weights the run of the curve started",
            argument="scale",
            remedy="give the factor on its initial weights by --scale",
        )
        return comparison.own_curve(self.curve, **besides)

    def _of_another_start(self, predicted: xr.Dataset) -> xr.Dataset:
        """The prediction with a warning of what it cannot know of the user's run."""
        start = f"seed {self.seed}, width {self.width}"
        told = [
            *json.loads(predicted.attrs.get("warnings", "[]")),
            f"The initial weights of your run are not known here; others of the same size ({start}) stand for them. "
            "In Python, predict takes those of your run.",
        ]
        said = {"warnings": json.dumps(told), "weights": "drawn"}
        return predicted if self.network == "diagonal" else predicted.assign_attrs(said)

    def _task(self) -> Any:
        if self.data == "digits":
            require(
                not self.target,
                "digits has no columns to choose targets from",
                argument="target",
                value=list(self.target),
                remedy="leave --target out, or name a single digit by --only 'digit 3'",
            )
            require(
                self.classification is not False,
                "the targets of digits are class labels",
                argument="classification",
                value=self.classification,
                remedy="leave --classification out",
            )
            task = tasks.digits()
        else:
            task = tasks.from_file(self.data, target=self.target or None, classification=self.classification)
        if self.only is not None:
            return task.only(self.only)
        if self.network == "attention":
            return tasks.InContextRegression.on_inputs_of(task, self.context)
        first, last = task.targets[:, 0], task.targets[:, -1]
        if self.network == "diagonal" and task.output_dimension == 2 and abs(first + last).max() < 1e-12:
            # Two centred classes mirror each other, so one target says it all.
            return task.only(task.target_names[1])
        return task

    def _checked(self, task: Any, network: Any, predicted: xr.Dataset, second_scale: float) -> xr.DataTree:
        options: dict[str, Any] = {"normalised": True} if self.normalised else {}

        def trained(scale: float) -> xr.Dataset:
            with step(f"Training it from scale {scale:g}"):
                return dynascope.observe(
                    task, network, scale=scale, duration=record.training_time(predicted, scale), **options
                )

        observed = trained(float(predicted.attrs["scale"]))
        other = trained(second_scale) if self.slope else None
        return comparison.compare(observed, predicted, at_other_scale=other, attributes=self._said())
