"""Figures and text of the page of stochastic-collapse."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "cumulative",
        over="square",
        log="x",
        symbols={"noise_level": "ζ²/2"},
        y_label="share of the paths below",
        title="Where a weight in a double well settles",
        caption="The distribution of θ², seen and by theory (dashed), for several strengths of the noise. Beyond "
        "ζ²/2 = 1 weights fall to zero, which is a maximum of the loss, near the threshold not all of them in the "
        "time of the runs. The largest distance where they settle is {observed.change[hypothesis=double well, "
        "stationary law]:percent}.",
    ),
    Chart(
        "well_growth",
        over="noise_level",
        y_label="rate at which log |θ| grows",
        title="How fast noise draws a weight to zero",
        caption="By theory 1 − ζ²/2 once that is below zero, and seen to {observed.change[hypothesis=double well, "
        "collapse]}; below the threshold weights settle.",
        points=True,
    ),
    Chart(
        "learned",
        over="teacher",
        symbols={"student": "η"},
        x_label="strength of the teacher, over ης²/2",
        y_label="what is learned, over ης²/2",
        title="What students of noisy labels learn",
        caption="Noise lowers all that is learned by ης²/2, and nothing weaker than that is learned. Straight "
        "lines through the points of strong teachers cross zero within {observed.change[hypothesis=student, "
        "threshold]:percent} of 1.",
        points=True,
    ),
    Chart(
        "neuron_exponent",
        over="neuron",
        y_label="growth over ης²",
        title="What isotropic noise does to neurons",
        caption="Below zero noise makes a neuron vanish, above zero it keeps it away from that: with one input "
        "and one output the one, from three of each on the other.",
        points=True,
    ),
    Chart(
        "final_fraction",
        over="learning_rate",
        log="x",
        symbols={"start": ""},
        y_label="independent units",
        title="How many units are left",
        caption="The share of the units of networks on digits that have neither vanished nor become equal to "
        "others, from true and from noisy labels. A point is a start.",
        points=True,
    ),
    Chart(
        ("independent_fraction", "dead_fraction"),
        over="time",
        members={"run": ("noisy labels",)},
        places={"learning_rate": (-1,)},
        symbols={"start": "", "architecture": ""},
        words=("independent", "dead"),
        y_label="share of the units",
        title="Units while networks train, at the largest rate on noisy labels",
        caption="A dead neuron is active on no digit of the training set, so that decay alone moves it.",
    ),
    Chart(
        "near_growth",
        over="near_foretold",
        symbols={"start": ""},
        x_label="growth that was foretold",
        y_label="growth that was seen",
        title="Neurons near zero",
        caption="How fast a neuron grows that is 10⁻¹² of its size at the start, for each unit of time, over what "
        "Hessians along the time before foretold, averaged over all data. With noisy labels the mean is "
        "{observed.near_growth[run=noisy labels]:mean}; above zero noise does not draw such neurons to zero. A "
        "point is a start.",
        points=True,
    ),
    Chart(
        "late_accuracy",
        over="learning_rate",
        log="x",
        symbols={"start": ""},
        x_label="learning rate at first",
        y_label="accuracy on held-out digits",
        title="What is known after the rate has been lowered",
        caption="All networks were trained on at the smallest rate with true labels: after noisy ones the first "
        "network knew {observed.late_accuracy[architecture=first][run=noisy "
        "labels][learning_rate=first]:mean:percent} if the rate had been the smallest all along, and "
        "{observed.late_accuracy[architecture=first][run=noisy labels][learning_rate=last]:mean:percent} if it "
        "had been the largest. A point is a start.",
        points=True,
    ),
)

MEANING = (
    "Noise in proportion to a weight draws it to zero though the loss pushes it away: in a double well it does "
    "from ζ²/2 = 1 on. A network of two weights that learns noisy labels is such a well. It learns nothing that "
    "is weaker than half of learning rate times variance of the labels, and of all else so much less: the "
    "threshold that was seen is within {observed.change[hypothesis=student, threshold]:percent} of that at every "
    "rate. In more dimensions noise of the same kind does the opposite: at the least neurons grew at the rate "
    "{observed.neuron_exponent:least}, and at the most at {observed.neuron_exponent:most}, in units of the noise. "
    "So whether units of a network vanish does not follow from there being noise. Of the units of the first "
    "network {observed.final_fraction[architecture=first][run=true labels][learning_rate=last]:mean:percent} were "
    "left at the largest rate with true labels, with noisy ones "
    "{observed.final_fraction[architecture=first][run=noisy labels][learning_rate=last]:mean:percent}, and "
    "{observed.final_fraction[architecture=first][run=noisy labels][learning_rate=first]:mean:percent} at the "
    "smallest. Of all units {observed.dead_fraction[architecture=first][run=noisy "
    "labels][learning_rate=last][time=last]:mean:percent} were dead at the largest rate with noisy labels: where "
    "noise has made a neuron active on no digit, decay alone takes it to zero, while theory looks at neurons that "
    "are alive. What is claimed of networks is told by intervals over starts in the table; the verdict rests on "
    "the three models."
)
