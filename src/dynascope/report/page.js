"use strict";
// Wrap a text at the given number of letters; a longer word gets a line of its own.
function wrapped(text, letters) {
  const lines = [];
  for (const word of text.split(" ")) {
    const longer = lines.length ? lines[lines.length - 1] + " " + word : word;
    if (lines.length && longer.length <= letters) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines.join("<br>");
}
function draw(figure) {
  const canvas = figure.querySelector(".canvas");
  const { data, layout } = JSON.parse(figure.querySelector("script").textContent);
  const across = canvas.clientWidth - layout.margin.l - layout.margin.r;
  const upwards = (layout.yaxis2 ? 0.6 : 1) * (canvas.clientHeight - layout.margin.t - layout.margin.b);
  // Estimate the width taken by the tick labels and title of the y-axis.
  layout.xaxis.title.text = wrapped(layout.xaxis.title.text, (across - 60) / 7.5);
  layout.yaxis.title.text = wrapped(layout.yaxis.title.text, upwards / 7.5);
  Plotly.newPlot(canvas, data, layout, {
    responsive: true,
    // On a narrow screen the buttons would cover the legend.
    displayModeBar: canvas.clientWidth > 560 ? "hover" : false,
    displaylogo: false,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  });
  for (const box of figure.querySelectorAll("input")) {
    box.addEventListener("change", () =>
      Plotly.relayout(canvas, {
        [box.name + ".type"]: box.checked ? "log" : "linear",
        [box.name + ".autorange"]: true,
        // The tick spacing was chosen for the logarithmic axis.
        [box.name + ".dtick"]: null,
      }),
    );
  }
}
// Collapsed figures have no width yet, so they are drawn when they are opened.
const folded = document.querySelector("details.others");
for (const figure of document.querySelectorAll("figure.plot")) {
  if (!folded || !folded.contains(figure)) draw(figure);
}
if (folded) {
  folded.addEventListener("toggle", () => folded.querySelectorAll("figure.plot").forEach(draw), { once: true });
}
