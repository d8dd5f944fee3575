"use strict";
for (const figure of document.querySelectorAll("figure.plot")) {
  const canvas = figure.querySelector(".canvas");
  const { data, layout } = JSON.parse(figure.querySelector("script").textContent);
  // A long legend would leave a phone no room for the curves, which also say their names when touched.
  layout.showlegend = canvas.clientWidth > 560 || data.filter((trace) => trace.showlegend).length < 5;
  Plotly.newPlot(canvas, data, layout, {
    responsive: true,
    displaylogo: false,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  });
  for (const box of figure.querySelectorAll("input")) {
    box.addEventListener("change", () =>
      Plotly.relayout(canvas, {
        [box.name + ".type"]: box.checked ? "log" : "linear",
        [box.name + ".autorange"]: true,
      }),
    );
  }
}
