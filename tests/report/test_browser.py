"""Pages in a real browser: no error in its console, legible on a telephone and in the dark."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from dynascope.report import write_page
from dynascope.results import Chart, make_record
from dynascope.results.chart import to_attributes

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None, reason="there is no Chromium to show pages with (Debian: apt install chromium)"
    ),
]

# The frame has the width of a telephone, which a window of a desktop cannot have; the probe reads the page inside.
FRAME = """<!doctype html><body>
<iframe id="page" src="{page}" width="{width}" height="3000"></iframe><pre id="found"></pre>
<script>
document.getElementById("page").addEventListener("load", () => setTimeout(() => {{
  const page = document.getElementById("page").contentDocument;
  const others = page.querySelector("details.others");
  const folded = others ? [...others.querySelectorAll(".canvas")].filter((each) => !each.firstElementChild) : [];
  if (others) others.open = true;
  setTimeout(() => look(page, folded), 500);
}}, 500));
function look(page, folded) {{
  const box = (each) => each.getBoundingClientRect();
  const apart = (a, b) =>
    a.right <= b.left + 1 || b.right <= a.left + 1 || a.bottom <= b.top + 1 || b.bottom <= a.top + 1;
  const drawn = [...page.querySelectorAll(".canvas")].filter((each) => each.querySelector(".main-svg"));
  const ticks = (each) => [...each.querySelectorAll(".xtick text, .ytick text")].map(box);
  const titles = (each) => [...each.querySelectorAll(".xtitle, .ytitle")].map(box);
  document.getElementById("found").textContent = JSON.stringify({{
    canvases: page.querySelectorAll(".canvas").length,
    folded: folded.length,
    drawn: drawn.length,
    overflow: page.scrollingElement.scrollWidth - page.scrollingElement.clientWidth,
    covered: drawn.flatMap((each) =>
      titles(each).filter((title) => ticks(each).some((tick) => !apart(title, tick)))).length,
    outside: drawn.flatMap((each) => [...each.querySelectorAll("text")].filter((text) =>
      box(text).width && (box(text).left < box(each).left - 1 || box(text).right > box(each).right + 1 ||
        box(text).top < box(each).top - 1 || box(text).bottom > box(each).bottom + 1))).length,
    legends: drawn.map((each) => [...each.querySelectorAll(".legendtext")].map((text) => text.textContent)),
    clipped: [...page.querySelectorAll(".scroll")].filter((each) =>
      box(each.firstElementChild).width > each.scrollWidth + 1).length,
    sideways: [...page.querySelectorAll(".scroll")].filter((each) => each.scrollWidth > each.clientWidth + 1).length,
    focusable: [...page.querySelectorAll(".scroll")].every((each) => each.tabIndex === 0),
    paper: page.defaultView.getComputedStyle(page.body).backgroundColor,
    ink: drawn.length && page.defaultView.getComputedStyle(drawn[0].querySelector(".xtick text")).fill,
  }});
}}
</script>"""


def shown(page: Path, *, width: int = 400, dark: bool = False) -> tuple[dict, list[str]]:
    """What the probe found on the page, and what the browser's console said."""
    frame = page.with_name("frame.html")
    frame.write_text(FRAME.format(page=page.name, width=width), "utf-8")
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    command += ["--virtual-time-budget=8000", "--enable-logging=stderr", "--window-size=1400,3200", "--dump-dom"]
    command += ["--blink-settings=preferredColorScheme=0"] * dark
    command += [f"--user-data-dir={page.parent / 'profile'}", frame.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.DOTALL)
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(found[1] or "null")) if found else {}, said


def brightness(colour: str) -> float:
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    time = np.linspace(0.0, 2e6, 200)
    strength = np.stack([1e7 * mode * (1 - np.exp(-time * mode / 1e6)) for mode in range(1, 7)])
    record = make_record(
        {
            "strength": (["mode", "time"], strength),
            "mode_strength": (["mode", "time"], strength / 1e7),
            "loss": (["time"], np.exp(-time / 1e5)),
            "test_loss": (["time"], np.exp(-time / 2e5)),
        },
        {"time": time, "mode": np.arange(1, 7)},
        names={"loss": ("a loss whose name is longer than any axis of a telephone is wide or high in all", "1")},
    )
    tree = xr.DataTree.from_dict({"observed": record, "predicted": record})
    each = {"error": 1.234e-10, "tolerance": 1e-6, "agrees": True, "reason": "the theory is exact"}
    tree.attrs |= {
        "question": "How fast does each mode grow?",
        "title": "A page",
        "verdict": "agree",
        "study": "a-study",
        "parameters": {"width": 64, "batch_size": 0},
        "reference": "A. Author, A title (arXiv 2401.00001)",
        "agreement": {"strength": each, "strength_maximum": each, "loss": each},
        "figures": to_attributes(
            [
                Chart("strength", caption="Six modes.", x_label="gradient-flow time, in words that need a second line"),
                Chart("loss", residual=True, log="y"),
                Chart("mode_strength", members={"mode": (1, 2, 3, 4)}),
            ]
        ),
    }
    return write_page(tree, tmp_path_factory.mktemp("page") / "page.html")


@pytest.mark.parametrize(("width", "dark"), [(400, True), (1280, False)], ids=["narrow, dark", "wide, light"])
def test_a_page_is_legible(written, width, dark):
    found, said = shown(written, width=width, dark=dark)
    assert said == []
    assert found["folded"] == 1  # it is drawn when it is unfolded
    assert found["drawn"] == found["canvases"] == 4
    assert {name: found[name] for name in ("overflow", "sideways", "covered", "outside", "clipped")} == {
        "overflow": 0,
        "sideways": 0,
        "covered": 0,
        "outside": 0,
        "clipped": 0,
    }
    assert found["focusable"]
    assert found["legends"] == [
        ["observed", "predicted"],
        ["observed", "predicted"],
        ["observed", "predicted", *(f"mode {i}" for i in range(1, 5))],
        ["observed", "predicted"],
    ]
    paper, ink = brightness(found["paper"]), brightness(found["ink"])
    # Of 255 levels; words that differ by less from their paper would be hard to read.
    assert (ink - paper if dark else paper - ink) > 150
