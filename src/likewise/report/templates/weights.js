// Sliders: what a changed weight would allow.
const TOLERANCE = 1e-9;
const sliders = report.columns.map((_, i) => byId("w" + i));
const home = sliders.map((slider) => slider.getAttribute("value"));

// A position is the cube root of what a typical difference counts, so that small weights get the finest steps.
// At its home a slider stands for the report's own weight, to the last digit.
function weightAt(i, position) {
  const column = report.columns[i];
  if (position === home[i]) return column.weight;
  const scale = column.top * Math.pow(Number(position) / 200, 3) / column.typical;
  // Three digits: a weight is something that people agree on.
  return Number(scale.toPrecision(3));
}

function showColumn(i) {
  const column = report.columns[i];
  const text = worth(column, weights[i]);
  const counts = column.typical * weights[i];
  byId("w" + i + "-text").textContent = text;
  byId("w" + i + "-bar").setAttribute("width", Math.min(100, 100 * counts / column.longest) + "%");
  sliders[i].setAttribute("aria-valuetext", text);
}

// Of the sampled people's scores as they are, how many pairs would be above their distance with other weights: in
// proportion, since the page counts pairs once, among all people.
function tally() {
  const people = report.people, above = {};
  for (const name of ["before", "after"]) if (people[0][name] !== null) above[name] = 0;
  for (let a = 0; a < people.length; a++) {
    for (let b = a + 1; b < people.length; b++) {
      const distance = compare(weights, people[a].values, people[b].values).distance;
      for (const name in above) if (gapOf(people[a][name], people[b][name]) > distance + report.epsilon + TOLERANCE) above[name]++;
    }
  }
  return above;
}

function countPairs() {
  const place = byId("effect");
  if (!place) return;
  place.hidden = !isEdited();
  if (place.hidden) return;
  const all = report.people.length * (report.people.length - 1) / 2;
  const share = (count) => (100 * count / all).toFixed(1) + "%";
  const said = Object.entries(tally()).map(([name, count]) => (name === "before" ? "by the unconstrained model " : "by this model ") + share(count));
  place.textContent = "With your weights, and the scores as they are, these shares of the pairs of " + report.people.length + " sampled people would be above the line: " + said.join(", ") + ".";
}

// A basic string of TOML has the escapes of JSON, except that TOML also wants DEL escaped.
const quoted = (text) => JSON.stringify(text).replace(/\u007f/g, "\\u007f");

function toml() {
  const lines = ["p = 1"];
  for (const kind of ["numeric", "categorical"]) {
    const rows = report.columns.map((column, i) => [column, weights[i]]).filter(([column]) => column.kind === kind);
    if (!rows.length) continue;
    lines.push("", "[" + kind + "]");
    for (const [column, weight] of rows) {
      // A line break in a unit must not end the comment.
      lines.push(quoted(column.column) + " = " + weight + "  # " + worth(column, weight).replace(/[\u0000-\u001f\u007f]/g, " "));
    }
  }
  const missing = report.columns.filter((column) => column.missing !== null);
  if (missing.length) lines.push("", "[missing]", ...missing.map((column) => quoted(column.column) + " = " + column.missing));
  const units = report.columns.filter((column) => column.unit);
  if (units.length) lines.push("", "[units]", ...units.map((column) => quoted(column.column) + " = " + quoted(column.unit)));
  const zeros = report.columns.filter((column, i) => column.reason !== null && weights[i] === 0);
  const reasons = [...new Set(zeros.map((column) => column.reason))];
  const listed = (reason) => zeros.filter((column) => column.reason === reason).map((column) => quoted(column.column));
  const origin = reasons.map((reason) => reason + " = [" + listed(reason).join(", ") + "]");
  return lines.join("\n") + "\n" + report.shapes + (origin.length ? ["", "[origin]", ...origin, ""].join("\n") : "");
}

let waiting = false;
function weightsChanged() {
  byId("reset").disabled = !isEdited();
  byId("toml").value = toml();
  // Many input events arrive while a slider is dragged; the pairs are counted once per frame.
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    countPairs();
    onWeights.forEach((listener) => listener());
  });
}

byId("weights-form").addEventListener("input", (event) => {
  const i = Number(event.target.dataset.column);
  weights[i] = weightAt(i, event.target.value);
  showColumn(i);
  weightsChanged();
});

byId("reset").addEventListener("click", () => {
  sliders.forEach((slider, i) => {
    slider.value = home[i];
    weights[i] = report.columns[i].weight;
    showColumn(i);
  });
  sliders[0].focus();
  weightsChanged();
});

byId("copy").addEventListener("click", () => {
  byId("toml").select();
  const done = (text) => { byId("copied").textContent = text; };
  // Browsers may refuse the clipboard to a file; the text is then selected and ready.
  if (!navigator.clipboard) { done("Selected: press Ctrl+C to copy."); return; }
  navigator.clipboard.writeText(byId("toml").value).then(() => done("Copied."), () => done("Selected: press Ctrl+C to copy."));
});

byId("weights-form").addEventListener("submit", (event) => event.preventDefault());
// A browser may restore moved sliders when it goes back to the page; the weights start from the report.
sliders.forEach((slider, i) => { slider.value = home[i]; });
byId("toml").value = toml();
