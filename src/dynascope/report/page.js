"use strict";
function draw(figure) {
  const canvas = figure.querySelector(".canvas");
  const { data, layout } = JSON.parse(figure.querySelector("script").textContent);
  Plotly.newPlot(canvas, data, layout, {
    responsive: true,
    // On a narrow screen the buttons would lie on the legend.
    displayModeBar: canvas.clientWidth > 560 ? "hover" : false,
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
// What is folded has no width yet, so that it is drawn when it is opened.
const folded = document.querySelector("details.others");
for (const figure of document.querySelectorAll("figure.plot")) {
  if (!folded || !folded.contains(figure)) draw(figure);
}
if (folded) {
  folded.addEventListener("toggle", () => folded.querySelectorAll("figure.plot").forEach(draw), { once: true });
}
