from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import plotly.graph_objects as go
import pytest
import xarray as xr
from plotly.offline import get_plotlyjs_version

from dynascope.comparison.effect import Hypothesis, report_effects
from dynascope.comparison.verdict import HEADINGS
from dynascope.errors import InputError
from dynascope.report import write_page
from dynascope.report.page import render_page
from dynascope.results import Chart, make_record
from dynascope.results.chart import to_attributes

TIME = np.linspace(0.0, 10.0, 5001)
HOSTILE = "</script><script>alert('x')</script><img src=x onerror=alert(1)>"


class Outline(HTMLParser):
    """Elements, attributes and the text inside scripts of a page."""

    def __init__(self, page: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[str | None, str]] = []
        self.text: list[str] = []
        self._inside = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._inside = tag
        if tag == "script":
            self.scripts.append((dict(attrs).get("type"), ""))

    def handle_endtag(self, tag):
        self._inside = ""

    def handle_data(self, data):
        if self._inside == "script":
            kind, text = self.scripts[-1]
            self.scripts[-1] = (kind, text + data)
        elif self._inside != "style":
            self.text.append(data)

    def figures(self) -> list[dict]:
        return [json.loads(text) for kind, text in self.scripts if kind == "application/json"]

    def programs(self) -> list[str]:
        return [text for kind, text in self.scripts if kind is None]


def study(
    *, verdict: str | None = "agree", observed: bool = True, staircase: bool = True, seeds: int = 0, word: str = "plain"
) -> xr.DataTree:
    strengths = np.stack([1 / (1 + np.exp(3 - TIME)), 1 / (1 + np.exp(6 - TIME))], axis=1)
    losses = 1 - strengths @ [0.6, 0.3]
    variables: dict = {"mode_strength": (["time", "mode"], strengths)}
    coordinates: dict = {"time": TIME, "mode": [1, 2]}
    if staircase:
        variables |= {
            "jump_time": (["jump"], [3.0, np.inf]),
            "loss_before": (["jump"], [1.0, 0.4]),
            "loss_after": (["jump"], [0.4, 0.1]),
            "slow": (["jump"], [False, True]),
            "reason": (["jump"], ["", f"slow because {word}"]),
            "learned": (["jump"], [f"first {word}", f"second {word}"]),
            "input_feature": (["jump", "feature"], np.eye(2, 4)),
        }
        coordinates |= {"jump": [1, 2], "feature": [f"{word} {i}" for i in range(4)]}
    predicted = make_record(
        variables,
        coordinates,
        attributes={
            "theory": f"theory {word}",
            "scale": 1e-6,
            "warnings": [f"warning {word}"],
            "initial_loss": 1.0,
            "task": f"task {word}",
            "description": [f"treated {word}"],
            "network": f"network {word}",
            "image_shape": [2, 2],
        },
    )
    parts: dict = {"predicted": predicted}
    if observed:
        ensemble = {"seed": np.arange(seeds)} if seeds else {}
        shape = (seeds, len(TIME)) if seeds else (len(TIME),)
        parts["observed"] = make_record(
            {
                "loss": ([*ensemble, "time"], np.broadcast_to(losses, shape)),
                "mode_strength": ([*ensemble, "time", "mode"], np.broadcast_to(strengths, (*shape, 2))),
            },
            {"time": TIME, "mode": [1, 2], **ensemble},
        )
    if verdict is not None:
        parts["/"] = xr.Dataset(
            attrs={
                "title": f"title {word}",
                "claim": f"claim {word}",
                "reference": f"reference {word}",
                "parameters": {"width": 64, f"name {word}": f"value {word}"},
                "verdict": verdict,
                "verdict_sentence": f"sentence {word}",
                "agreement": {
                    f"jump_time {word}": {
                        "error": 0.0123456 if verdict == "agree" else 0.123456,
                        "tolerance": 0.1,
                        "agrees": verdict == "agree",
                        "reason": f"reason {word}",
                    }
                },
            }
        )
    if staircase and observed:
        parts["residual"] = make_record(
            {
                "observed_jump_time": (["jump"], [3.21, np.nan]),
                "jump_time_error": (["jump"], [0.07, np.nan]),
                "observed_loss_after": (["jump"], [0.4321, np.nan]),
            },
            {"jump": [1, 2]},
        )
    return xr.DataTree.from_dict(parts)


def numbers(written: dict[str, str]) -> np.ndarray:
    """The numbers that plotly writes in base64."""
    return np.frombuffer(base64.b64decode(written["bdata"]), written["dtype"])


def rows(page: str) -> list[list[str]]:
    table = re.findall(r"<tr>(.*?)</tr>", page, flags=re.DOTALL)
    return [
        [re.sub(r"<[^>]*>", " ", cell).strip() for cell in re.findall(r"<t[hd].*?</t[hd]>", row, re.DOTALL)]
        for row in table
    ]


def verdicts_of(page: str) -> list[str]:
    """The verdicts that a page says in its banner."""
    return [verdict for verdict, heading in HEADINGS.items() if f"<strong>{heading}</strong>" in page]


@functools.cache
def page_of(**options) -> str:
    """The page of a tree that no test changes."""
    return render_page(study(**options))


def test_the_page_says_all_that_the_tree_says():
    text = " ".join(Outline(page_of()).text)
    for part in (
        "title",
        "claim",
        "treated",
        "warning",
        "reference",
        "reason",
        "theory",
        "network",
        "task",
    ):
        assert f"{part} plain" in text.lower()
    assert "½" in text


def test_the_agreement_is_tabled():
    assert ["jump time plain", "✓ yes", "0.012", "0.1"] in rows(page_of())
    assert ["jump time plain", "✗ no", "0.12", "0.1"] in rows(page_of(verdict="disagree"))


def test_a_quantity_that_could_not_be_compared_is_not_said_to_agree():
    tree = study()
    nothing = {"slope": {"error": None, "tolerance": 0.1, "agrees": True, "reason": "none"}}
    tree.attrs["agreement"] = nothing
    assert ["not scored", "–", "0.1"] in [row[1:] for row in rows(render_page(tree))]


def test_the_banner_says_the_verdict_once_and_then_the_sentence_of_the_tree():
    text = "".join(Outline(page_of()).text)
    assert text.count(HEADINGS["agree"]) == 1
    assert "sentence plain" in text


def test_the_staircase_is_tabled_beside_what_was_observed():
    table = rows(page_of())
    assert ["1", "first plain", "3", "3.21", "+7.0 %", "0.4", "0.4321"] in table
    assert ["2", "∞", "–", "–", "0.1", "–"] in [[row[0], *row[2:]] for row in table]


def test_a_level_that_has_not_settled_is_marked():
    assert "not settled" not in page_of().casefold()
    tree = study()
    tree["residual"] = tree["residual"].to_dataset().assign(settled=("jump", [False, True]))
    page = render_page(tree)
    assert page.count("not settled") == page.count("Not settled:") == 1


def test_slow_jumps_are_explained_once_for_all():
    assert page_of().count("slow because plain") == 1


def test_without_an_observation_the_table_has_only_the_prediction():
    table = rows(page_of(verdict=None, observed=False))
    assert ["1", "first plain", "3", "0.4"] in table


def test_of_an_ensemble_the_table_has_the_medians():
    tree = study()
    predicted = tree["predicted"].to_dataset()
    several = xr.concat([predicted.assign(jump_time=predicted["jump_time"] * factor) for factor in (1, 2, 9)], "seed")
    # Only the staircase differs between seeds here; the other variables keep their dimensions.
    several = predicted.drop_vars("jump_time").assign(jump_time=several["jump_time"]).assign_coords(seed=[0, 1, 2])
    tree["predicted"] = xr.DataTree(several)
    assert "6" in next(row for row in rows(render_page(tree)) if row[1] == "first plain")


@pytest.mark.parametrize(
    ("options", "verdict"),
    [
        ({"verdict": "agree"}, "agree"),
        ({"verdict": "disagree"}, "disagree"),
        ({"verdict": None, "observed": False}, None),
        ({"verdict": None}, None),
        ({"staircase": False}, "agree"),
        ({"seeds": 4}, "agree"),
    ],
)
def test_every_kind_of_tree_makes_a_page_that_says_its_verdict(options, verdict):
    assert verdicts_of(page_of(**options)) == ([] if verdict is None else [verdict])


def test_an_observation_alone_makes_a_page():
    page = render_page(study()["observed"].to_dataset())
    assert verdicts_of(page) == []


def test_a_power_law_is_drawn_between_logarithmic_axes_and_the_boxes_say_so():
    samples = np.geomspace(10, 1e5, 9)
    page = render_page(make_record({"test_loss": (["samples"], samples**-0.4)}, {"samples": samples}))
    (figure,) = Outline(page).figures()
    assert [figure["layout"][axis]["type"] for axis in ("xaxis", "yaxis")] == ["log", "log"]
    assert page.count(" checked>") == 2


def test_the_figures_draw_solid_observations_and_dashed_predictions():
    loss, strength = Outline(page_of()).figures()
    for figure, count in ((loss, 1), (strength, 2)):
        go.Figure(figure)  # Raises on a property that plotly does not know.
        lines = [trace for trace in figure["data"] if "meta" in trace]
        assert [trace["line"].get("dash") is None for trace in lines] == [True] * count + [False] * count


def test_every_member_of_a_small_ensemble_is_drawn():
    loss, strength = Outline(page_of(seeds=4)).figures()
    assert [trace["meta"] for trace in loss["data"] if "meta" in trace] == [4, 1]
    assert [trace["meta"] for trace in strength["data"] if "meta" in trace] == [4, 4, 1, 1]


@pytest.mark.slow
def test_a_large_ensemble_is_cut_and_the_page_says_so():
    outline = Outline(render_page(study(seeds=70)))
    _, strength = outline.figures()
    lines = [trace for trace in strength["data"] if "meta" in trace]
    assert sum(line["meta"] for line in lines if "dash" not in line["line"]) == 100
    assert sum(line["meta"] for line in lines if "dash" in line["line"]) == 2
    assert re.search(r"102\D+142\D", " ".join(outline.text))


def test_values_that_are_not_finite_are_gaps():
    record = make_record({"loss": (["time"], [1.0, np.nan, np.inf, 0.5])}, {"time": [0.0, 1.0, 2.0, 3.0]})
    (figure,) = Outline(render_page(record)).figures()
    np.testing.assert_array_equal(numbers(figure["data"][0]["y"]), [1.0, np.nan, np.nan, 0.5])


def test_text_from_users_cannot_become_markup():
    outline = Outline(page_of(word=HOSTILE))
    assert not [attributes for tag, attributes in outline.elements if "onerror" in attributes]
    assert len(outline.scripts) == len(Outline(page_of()).scripts)
    assert f"title {HOSTILE}" in "".join(outline.text)
    # Plotly renders a little markup of its own, so its texts must be escaped too.
    figures = json.dumps(outline.figures())
    assert "alert" in figures
    assert "<script" not in figures
    assert "<img" not in figures


def test_the_page_asks_the_network_for_nothing():
    page = page_of()
    outline = Outline(page)
    sources = [
        value for _, attributes in outline.elements for name, value in attributes.items() if name in ("src", "href")
    ]
    assert sources
    assert all(str(source).startswith("data:image/png;base64,") for source in sources)
    assert not {"link", "iframe", "object", "base"} & {tag for tag, _ in outline.elements}
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert "http" not in style


def test_the_policy_of_the_page_allows_its_two_scripts_and_nothing_else():
    outline = Outline(page_of(word=HOSTILE))
    (policy,) = [a["content"] or "" for _, a in outline.elements if a.get("http-equiv") == "Content-Security-Policy"]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in outline.programs()]
    assert len(hashes) == 2
    assert policy.startswith("default-src 'none'; script-src " + " ".join(f"'sha256-{each}'" for each in hashes) + ";")
    assert "http" not in policy


def test_the_bundle_is_the_one_that_its_readme_names_and_fits_the_python_package():
    folder = files("dynascope.report").joinpath("plotly")
    told, bundle = folder.joinpath("README.md").read_text("utf-8"), folder.joinpath("plotly-basic.min.js").read_bytes()
    assert hashlib.sha256(bundle).hexdigest() in told
    (version,) = set(re.findall(r"plotly.js-basic-dist-min[@-](\d+\.\d+\.\d+)", told))
    assert f"plotly.js (basic - minified) v{version}".encode() in bundle
    # Figures are described in the words of a major version.
    assert version.split(".")[0] == get_plotlyjs_version().split(".")[0]
    assert "MIT License" in folder.joinpath("LICENSE").read_text("utf-8")


def test_plotly_is_on_the_page_once_however_many_figures():
    programs = Outline(page_of()).programs()
    assert sum("plotly.js (basic" in program for program in programs) == 1


def test_what_is_learned_are_pictures_where_inputs_are_images_and_else_a_table():
    tree = study()
    images = [attributes for tag, attributes in Outline(page_of()).elements if tag == "img"]
    assert [re.findall(r"\d", image["alt"] or "") for image in images] == [["1"], ["2"]]
    assert all(base64.b64decode((image["src"] or "").split(",")[1]).startswith(b"\x89PNG") for image in images)
    del tree["predicted"].attrs["image_shape"]
    assert ["plain 0", "1", "0"] in rows(render_page(tree))


def test_equal_trees_give_equal_pages():
    assert render_page(study()) == page_of()


def test_the_page_is_written_whole(tmp_path):
    path = write_page(study(), tmp_path / "report.html")
    assert path.read_text("utf-8") == page_of()
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_page_that_cannot_be_made_leaves_the_old_one(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    with pytest.raises(InputError):
        write_page(xr.DataTree(), path)
    assert path.read_text() == "old"


def test_a_folder_is_not_a_page(tmp_path):
    with pytest.raises(InputError, match="is a folder"):
        write_page(study(), tmp_path)


def test_a_figure_of_what_is_not_there_is_bad_input():
    tree = study()
    tree.attrs["figures"] = [{"variables": ["nothing"]}]
    with pytest.raises(InputError, match="nothing"):
        render_page(tree)


def test_planes_are_on_the_page_though_their_paths_turn_back():
    record = make_record(
        {"a": (["time"], [2.0, 0.0, 1.0]), "b": (["time"], [3.0, 1.0, 1.0])}, {"time": [0.0, 1.0, 2.0]}
    )
    tree = xr.DataTree.from_dict({"observed": record})
    tree.attrs["figures"] = to_attributes([Chart("b", over="a")])
    page = render_page(tree)
    (path,) = Outline(page).figures()[0]["data"]
    np.testing.assert_array_equal(numbers(path["x"]), [2.0, 0.0, 1.0])
    np.testing.assert_array_equal(numbers(path["y"]), [3.0, 1.0, 1.0])


def test_hypotheses_are_told_in_a_table_and_not_judged():
    claims = [Hypothesis("width", "kappa_cka", direction, f"H{direction}", "A <claim>.") for direction in (1, -1)]
    effects = [each.compare([[1.0, 1.1], [2.0, 2.2]]) for each in claims]
    record = make_record(
        {"loss": (["time"], [1.0, 0.5]), **report_effects(claims, effects)},
        {"time": [0.0, 1.0], "hypothesis": [each.name for each in claims]},
    )
    page = render_page(record)
    assert "A &lt;claim&gt;." in page
    told = [row[1:] for row in rows(page) if re.search(r"H-?1:", row[0])]
    assert [(row[0], row[2]) for row in told] == [("rises", "holds"), ("falls", "does not hold")]
    assert all(re.fullmatch(r"1\.1 \(\S+ to \S+\)", row[1]) for row in told)
    assert verdicts_of(page) == []


def test_an_interval_without_an_end_is_told():
    claim = Hypothesis("kind", "step", 1, "H1", "It comes late.", median=True)
    effects = [claim.compare([np.zeros(6), [1.0, 2, 3, 4, 5, np.inf]])]
    record = make_record(
        {"loss": (["time"], [1.0, 0.5]), **report_effects([claim], effects)},
        {"time": [0.0, 1.0], "hypothesis": ["H1"]},
    )
    assert "3.5 optimiser steps (1 to ∞)" in [row[2] for row in rows(render_page(record)) if len(row) == 4]


def test_the_top_of_the_page_asks_answers_and_shows_before_it_explains():
    tree = study()
    tree.attrs |= {
        "question": "When is each <mode> learned?",
        "meaning": "The network of width 64 learns one at a time.",
        "figures": to_attributes([Chart("mode_strength", title="Modes", caption="They rise.")]),
    }
    page = render_page(tree)
    text = " ".join(" ".join(Outline(page).text).split())
    parts = ["When is each <mode> learned?", "Modes", "of width 64 learns", "treated plain"]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "<mode>" not in page


def test_what_no_figure_declares_is_folded():
    tree = study()
    tree.attrs["figures"] = to_attributes([Chart("mode_strength")])
    page = render_page(tree)
    before, folded = page.split('<details class="others">')
    assert before.count('class="plot"') == folded.count('class="plot"') == 1
    assert '<details class="others" open' not in page


def test_a_figure_that_names_a_missing_variable_is_bad_input():
    tree = study()
    tree.attrs["figures"] = to_attributes([Chart("accuracy")])
    with pytest.raises(InputError, match=r"one of the figures contains 'accuracy', .* choose from loss"):
        render_page(tree)


def test_the_alternative_text_of_a_figure_is_its_caption():
    tree = study()
    tree.attrs["figures"] = to_attributes([Chart("loss", title="Loss", caption="It falls.", staircase=True)])
    canvases = [each for tag, each in Outline(render_page(tree)).elements if "canvas" in (each.get("class") or "")]
    assert (canvases[0]["aria-label"] or "").startswith("Loss. It falls.")
    assert all(each["role"] == "img" for each in canvases)


def test_tables_are_reached_by_the_keyboard_and_have_names():
    regions = [each for tag, each in Outline(page_of()).elements if each.get("class") == "scroll" and "role" in each]
    assert len(regions) == 2
    assert all(each["aria-label"] and each["tabindex"] == "0" for each in regions)


def test_a_reason_is_said_once():
    tree = study()
    each = {"error": 0.001, "tolerance": 0.1, "agrees": True, "reason": "the theory is exact"}
    tree.attrs["agreement"] = dict.fromkeys(("loss", "loss_maximum", "mode_strength"), each)
    page = render_page(tree)
    assert page.count("the theory is exact") == 1
    assert ["loss", "✓ yes", "0.001", "0.001", "0.1"] in rows(page)
    assert ["✓ yes", "0.001", "", "0.1"] in [row[1:] for row in rows(page)]


def test_a_long_name_with_markup_stays_text():
    record = make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]}, names={"loss": (HOSTILE, "1")})
    outline = Outline(render_page(record))
    assert len(outline.scripts) == len(Outline(page_of()).scripts) - 1  # one figure in place of two
    assert "<img" not in json.dumps(outline.figures())
    assert HOSTILE in "".join(outline.text)


@pytest.mark.slow
def test_the_page_of_a_large_tree_is_at_most_a_megabyte_and_a_half():
    time, modes = np.geomspace(1e-3, 1e3, 400), np.arange(1, 21)
    values = np.random.default_rng(0).normal(size=(8, 20, 400))
    names = [f"quantity_{i}" for i in range(20)]
    record = make_record(
        {name: (["seed", "mode", "time"], values) for name in names},
        {"seed": np.arange(8), "mode": modes, "time": time},
    )
    tree = xr.DataTree.from_dict({"observed": record, "predicted": record.isel(seed=0, drop=True)})
    assert len(render_page(tree).encode()) <= 1_500_000


@pytest.mark.parametrize(("outcomes", "told"), [("h", ["Holds"]), ("hhhh", []), ("hnhh", ["Does not hold"])])
def test_the_claims_that_decide_are_read_beside_the_verdict_if_few_or_not_held(outcomes, told):
    names = [f"claim {i}" for i in range(len(outcomes))]
    holds = ["holds" if each == "h" else "does not hold" for each in outcomes]
    measured = [4.0 if each == "h" else 2.0 for each in outcomes]
    record = make_record(
        {
            "statement": (["hypothesis"], [f"Statement of {name}." for name in names]),
            "holds": (["hypothesis"], holds),
            "least": (["hypothesis"], np.full(len(names), 3.0)),
            "most": (["hypothesis"], np.full(len(names), np.inf)),
            **{name: (["hypothesis"], measured) for name in ("change", "low", "high")},
        },
        {"hypothesis": names},
    )
    tree = xr.DataTree.from_dict({"observed": record})
    tree.attrs |= {"verdict": "agree", "claims": dict(zip(names, holds, strict=True))}
    page = render_page(tree)
    found = re.findall(r"<li>([\w ]*): Statement of claim \d\.\D*3\D*[24]\D*?</li>", page)
    assert found == told
