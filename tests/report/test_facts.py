from __future__ import annotations

import xarray as xr

from dynascope.report.facts import facts_of, how_it_was_done, parameters_of
from dynascope.results import Result, from_tree, make_record


def view(**attributes) -> Result:
    curve = {"loss": (["time"], [1.0, 0.5])}
    observed = make_record(
        curve,
        {"time": [0.0, 1.0]},
        attributes={
            "flow": "descent",
            "optimizer": "sgd",
            "learning_rate": 0.1,
            "batch_size": None,
            "warnings": ["a", "b"],
        },
    )
    predicted = make_record(curve, {"time": [0.0, 1.0]}, attributes={"theory": "exact", "warnings": ["b"]})
    tree = xr.DataTree.from_dict({"observed": observed, "predicted": predicted})
    tree.attrs |= {"study": "a-study", "parameters": {"seed": 2, "batch_size": 0}, **attributes}
    return from_tree(tree)


def test_what_is_known_of_the_making_is_told_and_nothing_else():
    seen = view()
    assert list(how_it_was_done(seen, facts_of(seen)).values()) == [
        "exact",
        "descent, sgd, learning rate 0.1",
        "2",
    ]


def test_the_provenance_is_shown():
    seen = view(command="dynascope run a-study", date="2026-11-22", versions={"jax": "0.10"}, version="1.2")
    told = set(how_it_was_done(seen, facts_of(seen)).values())
    assert {"dynascope run a-study", "2026-11-22", "dynascope 1.2, jax 0.10"} <= told


def test_parameters_say_what_they_are_in_the_words_of_the_page():
    seen = view(descriptions={"seed": "A seed.", "batch_size": "Fewer than n_samples; more than batch_size."})
    about = [each.about for each in parameters_of(seen, facts_of(seen))]
    assert about == ["A seed.", "Fewer than n_samples; more than batch size."]


def test_only_a_staircase_begins_at_a_scale_that_is_worth_a_word():
    curve = make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]}, attributes={"scale": 1.0})
    jumps = make_record(
        {"jump_time": (["jump"], [1.0]), "loss_before": (["jump"], [1.0]), "loss_after": (["jump"], [0.0])},
        {"jump": [1]},
        attributes={"scale": 1e-3, "initial_loss": 1.0, "degree": 2},
    )
    names = []
    for record in (curve, jumps):
        seen = from_tree(record)
        names.append([each.name for each in parameters_of(seen, facts_of(seen)) if each.about])
    assert names == [[], ["scale", "initial loss", "degree"]]


def test_a_warning_of_both_sides_is_told_once():
    assert view().warnings == ["a", "b"]


def test_the_variables_of_an_exact_flow_are_described():
    curve = make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]})
    training = [
        how_it_was_done(each, facts_of(each))["Training"]
        for variables in ("weights", "directions and log-norms")
        for each in [
            from_tree(
                xr.DataTree.from_dict({"observed": curve.assign_attrs(flow="gradient flow", variables=variables)})
            )
        ]
    ]
    described = "solved in equivalent variables: the direction and the log-norm of the weights of each neuron"
    assert training == ["gradient flow", f"gradient flow, {described}"]
