from typing import ClassVar

import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.networks import DeepLinear
from dynascope.studies import Reference, Study, curve_tolerance, parameter
from dynascope.tasks import Task
from dynascope.training import Descent, descend
from dynascope.validation.bounded import PositiveFloat, PositiveInt

REFERENCE = Reference(paper="A. Author, Decay", arxiv="1234.56789", claim="It decays.")
TASK = Task(np.eye(2), np.ones((2, 1)))


class Decays(Study):
    """Losses that fall at several rates."""

    rates: PositiveInt = parameter(2, "Number of rates.")
    fastest: PositiveFloat = parameter(2.0, "The largest rate.")
    off: PositiveFloat = parameter(1.0, "Factor on what theory says of the rates.")

    name: ClassVar[str] = "decays"
    reference: ClassVar[Reference] = REFERENCE
    theory: ClassVar[str] = "exponentials"
    axes: ClassVar = ("mode", "time")
    minutes: ClassVar[float] = 0.1
    tolerance: ClassVar = curve_tolerance(loss=(1e-6, "both are exponentials"))

    def check(self):
        if self.rates > 10 * self.fastest:
            raise InputError("too many", argument="rates", value=self.rates, remedy="choose fewer")

    def trained(self):
        return {"loss": self.curves(1.0), "final": ("mode", self.curves(1.0)[:, -1])}

    def exact(self):
        return {"loss": self.curves(self.off)}

    def curves(self, factor):
        rates = factor * self.fastest / jnp.arange(1, self.rates + 1)
        # Of double precision only within the base.
        return jnp.exp(-rates[:, None] * jnp.linspace(0.0, 1.0, 5))

    def labels(self):
        return {"time": np.linspace(0, 1, 5)}

    def about(self):
        return {"task": "nothing", "network": "none"}


def test_records_are_written_from_values_in_double_precision():
    tree = Decays().run()
    observed, predicted = tree.observed, tree.predicted
    assert tree.verdict.outcome == "agree"
    assert observed["loss"].dims == ("mode", "time")
    assert observed["loss"].dtype == np.float64
    assert observed["final"].dims == ("mode",)
    # Modes are counted from one.
    assert observed["mode"].to_numpy().tolist() == [1, 2]
    assert predicted.attrs["theory"] == "exponentials"
    assert predicted.attrs["reference"] == REFERENCE.paper
    assert observed.attrs["task"] == predicted.attrs["task"] == "nothing"


def test_the_verdict_turns_where_theory_is_wrong():
    assert Decays(off=1.1).run().verdict.outcome == "disagree"


def test_what_concerns_several_fields_is_checked_when_the_study_is_made():
    with pytest.raises(InputError, match="choose fewer"):
        Decays(rates=30)


def test_values_that_do_not_fit_their_axes_are_refused():
    with pytest.raises(InputError):
        Decays().record({"loss": np.ones(5)})
    with pytest.raises(InputError):
        Decays().record({"loss": np.ones((2, 4))})


class Several(Study):
    """Networks of several widths."""

    name: ClassVar[str] = "several"
    reference: ClassVar[Reference] = REFERENCE

    def labels(self):
        return {"balance": [-1.0, 1.0]}


@pytest.mark.slow
def test_the_record_of_a_run_keeps_what_the_flow_says_and_names_its_members():
    study, networks = Several(), [DeepLinear((2, 1), seed=seed) for seed in range(2)]
    run = descend(
        TASK,
        networks,
        Descent(
            learning_rate=0.1,
            steps=3,
            save=[0, 3],
            statistics={"weights": (lambda network: network.weights[0][:, 0], ["feature"])},
        ),
    )
    size = (("balance", "step"), np.sum(run["weights"].to_numpy() ** 2, axis=-1))
    found = study.run_record(run, {"size": size}, members="balance", without=["weights"])
    assert found["loss"].dims == found["size"].dims == ("balance", "step")
    assert found["balance"].to_numpy().tolist() == [-1.0, 1.0]
    assert "feature" not in found.coords
    assert found.attrs["flow"] == "descent"


class Counted(Study):
    """A study whose times are known beforehand, and whose hypotheses are not."""

    even: PositiveInt = parameter(2, "An even number.")

    def check(self):
        self.require(self.even % 2 == 0, "even", "double it")

    def labels(self):
        return {"time": [0.5, 1.5]}


def test_labels_that_are_found_with_the_values_come_before_those_of_the_study():
    found = {"size": ("hypothesis", [3.0]), "hypothesis": ("hypothesis", ["H1"])}
    record = Counted().record({"loss": [2.0, 1.0, 0.5], "time": [0.0, 1.0, 2.0], **found})
    np.testing.assert_array_equal(record["time"], [0.0, 1.0, 2.0])
    np.testing.assert_array_equal(record["hypothesis"], ["H1"])
    np.testing.assert_array_equal(Counted().record({"loss": [2.0, 1.0]})["time"], [0.5, 1.5])


def test_variables_keep_the_order_in_which_they_are_stated():
    assert list(Counted().record({"loss": [2.0, 1.0], "accuracy": [0.0, 1.0]})) == ["loss", "accuracy"]


def test_what_a_study_requires_is_refused_by_the_name_of_its_field():
    with pytest.raises(InputError, match=r"even is 3.*double it") as caught:
        Counted(even=3)
    assert (caught.value.argument, caught.value.value) == ("even", 3)


class Named(Counted):
    """A study that calls a loss by another name, and has a field with the name of a hook."""

    labels: list[str] = parameter(["a"], "What is labelled.", options=("a", "b"))

    names: ClassVar = {"loss": ("loss on new samples", "mV²"), "accuracy": ("test accuracy", "1")}


def test_a_study_may_call_variables_otherwise_than_elsewhere():
    loss = Named().record({"loss": [2.0, 1.0]})["loss"]
    assert (loss.attrs["long_name"], loss.attrs["units"]) == ("loss on new samples", "mV²")


def test_where_a_field_is_called_labels_the_labels_of_axes_come_with_the_values():
    record = Named().record({"loss": [2.0, 1.0], "time": [0.5, 1.5]})
    np.testing.assert_array_equal(record["time"], [0.5, 1.5])


def test_a_check_that_is_misspelt_is_refused_and_no_identity_becomes_a_claim():
    class Misspelt(Decays):
        checks: ClassVar = ("los",)

    with pytest.raises(InputError, match="lack tolerances"):
        Misspelt().run()
