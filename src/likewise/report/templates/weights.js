// Sliders: what a changed weight would allow.
const BINS = 40, SHADES = [1, 3, 10, 30, 100], TOLERANCE = 1e-9;
const sliders = report.columns.map((_, i) => byId("w" + i));
const home = sliders.map((slider) => slider.getAttribute("value"));

// A position is the cube root of what a typical difference counts, so that small weights get the finest steps.
// At its home a slider stands for the report's own weight, to the last digit.
function weightAt(i, position) {
  const column = report.columns[i];
  if (position === home[i]) return column.weight;
  const scale = column.top * Math.pow(Number(position) / 200, 3) / column.typical;
  // Three digits: a weight is something that people agree on.
  return Number((!column.is_number || P === Infinity ? scale : Math.pow(scale, P)).toPrecision(3));
}

function showColumn(i) {
  const column = report.columns[i];
  const text = worth(column, weights[i]);
  const counts = column.typical * perUnit(column, weights[i]);
  byId("w" + i + "-text").textContent = text;
  byId("w" + i + "-bar").setAttribute("width", Math.min(100, 100 * counts / column.longest) + "%");
  sliders[i].setAttribute("aria-valuetext", text);
}

function cells(counts) {
  const paths = SHADES.map(() => "");
  counts.forEach((count, cell) => {
    let shade = -1;
    while (shade + 1 < SHADES.length && count >= SHADES[shade + 1]) shade++;
    if (shade >= 0) paths[shade] += "M" + Math.floor(cell / BINS) + " " + (BINS - 1 - cell % BINS) + "h1v1h-1z";
  });
  return paths;
}

function countPairs() {
  const models = ["before", "after"].filter((name) => byId(name + "-count"));
  if (!models.length) return;
  const people = report.people;
  const tally = {};
  for (const name of models) tally[name] = { above: 0, beyond: 0, within: new Array(BINS * BINS).fill(0), over: new Array(BINS * BINS).fill(0) };
  let defined = 0;
  for (let a = 0; a < people.length; a++) {
    for (let b = a + 1; b < people.length; b++) {
      const distance = compare(weights, people[a].values, people[b].values).distance;
      if (Number.isNaN(distance)) continue;
      defined++;
      for (const name of models) {
        const gap = gapOf(people[a][name], people[b][name]);
        const over = gap > distance + TOLERANCE;
        if (over) tally[name].above++;
        if (gap > distance + report.epsilon + TOLERANCE) tally[name].beyond++;
        if (distance <= report.limit) {
          const x = Math.min(BINS - 1, Math.floor(distance / report.limit * BINS));
          const y = Math.min(BINS - 1, Math.floor(gap / report.limit * BINS));
          tally[name][over ? "over" : "within"][x * BINS + y]++;
        }
      }
    }
  }
  for (const name of models) {
    const count = tally[name].above.toLocaleString("en-US");
    byId(name + "-count").textContent = count;
    document.querySelector(".running ." + name + "-count").textContent = count;
    cells(tally[name].within).forEach((path, k) => byId(name + "-within-" + (k + 1)).setAttribute("d", path));
    cells(tally[name].over).forEach((path, k) => byId(name + "-above-" + (k + 1)).setAttribute("d", path));
  }
  if (byId("after-epsilon")) byId("after-epsilon").textContent = tally.after.beyond.toLocaleString("en-US");
  byId("effect").textContent = (isEdited() ? "With your weights" : "With the weights of this report") + ", of " +
    defined.toLocaleString("en-US") + " pairs among " + people.length + " sampled people, these are above their distance:";
}

// A basic string of TOML has the escapes of JSON, except that TOML also wants DEL escaped.
const quoted = (text) => JSON.stringify(text).replace(/\u007f/g, "\\u007f");
const tomlNumber = (x) => (x === Infinity ? "inf" : String(x));

function toml() {
  const lines = ["p = " + tomlNumber(P)];
  for (const kind of ["numeric", "categorical"]) {
    const rows = report.columns.map((column, i) => [column, weights[i]]).filter(([column]) => column.is_number === (kind === "numeric"));
    if (!rows.length) continue;
    lines.push("", "[" + kind + "]");
    for (const [column, weight] of rows) {
      // A line break in a unit must not end the comment.
      lines.push(quoted(column.name) + " = " + tomlNumber(weight) + "  # " + worth(column, weight).replace(/[\u0000-\u001f\u007f]/g, " "));
    }
  }
  const missing = report.columns.filter((column) => column.missing !== null);
  if (missing.length) lines.push("", "[missing]", ...missing.map((column) => quoted(column.name) + " = " + column.missing));
  const units = report.columns.filter((column) => column.unit);
  if (units.length) lines.push("", "[units]", ...units.map((column) => quoted(column.name) + " = " + quoted(column.unit)));
  const zeros = report.columns.filter((column, i) => column.reason !== null && weights[i] === 0);
  const reasons = [...new Set(zeros.map((column) => column.reason))];
  const listed = (reason) => zeros.filter((column) => column.reason === reason).map((column) => quoted(column.name));
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
