"use strict";
// Words in lines of at most so many letters, with room for a word that is longer.
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
  // The numbers and the title beside the vertical axis take of the width, by about so much.
  layout.xaxis.title.text = wrapped(layout.xaxis.title.text, (across - 60) / 7.5);
  layout.yaxis.title.text = wrapped(layout.yaxis.title.text, upwards / 7.5);
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
        // Its steps were chosen for the logarithmic axis.
        [box.name + ".dtick"]: null,
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
