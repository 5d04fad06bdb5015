// Weights in natural units: a slider, a number to type, a lock and a price for each column.
import { act, change, fail, onState, quietly, state } from "./api.js";
import { NEGLIGIBLE, button, byId, el, plain, points, put, soft, worth } from "./dom.js";
import { buildFigures, showFigures, showShapes } from "./figures.js";

const TOP = 1, STEPS = 200; // a slider at its end: a typical difference allows any difference
const rows = new Map();
const waiting = new Map();

export function buildWeights(panel) {
  panel.append(
    el("div", { class: "start", id: "start" },
      el("h2", { class: "small-title" }, "Start from"),
      el("div", { class: "chips" },
        button("Designed", () => begin("designed"), { id: "start-designed", title: "The least loss for the distance it allows" }),
        button("Revealed", () => begin("revealed"), { id: "start-revealed", title: "The distance that a model respects already" }),
        button("Judged", () => begin("judged"), { id: "start-judged", title: "The middle of what your answers leave" }),
        button("Judged, near these", () => begin("near"), { id: "start-near", title: "As close to the present weights as your answers allow" }),
        button("Judged, strict", () => begin("strict"), { id: "start-strict", title: "The lower end of every range" }),
        el("label", { class: "file-button" }, "A file…", el("input", { type: "file", accept: ".toml", class: "hidden", id: "start-file", onchange: takeFile })),
        button("All 0", () => begin("zero"), { id: "start-zero", title: "Nothing may matter yet" })),
      el("p", { class: "small", id: "how" })),
    el("div", { class: "bench" },
      el("div", { class: "controls" },
        el("div", { class: "head-line" }, el("h2", { class: "small-title" }, "Weights"),
          el("span", { class: "tools" },
            el("label", { class: "small" }, "All × ", el("input", { type: "number", id: "factor", min: 0.01, max: 100, step: "any", value: 1.25, "aria-label": "Factor for all weights" })),
            button("Scale", () => quietly(change("scale", { by: Number(byId("factor").value) })), { id: "scale" }),
            button("Round all", () => quietly(change("round", {})), { id: "round", title: "To numbers that people say, never looser" }))),
        el("ul", { class: "weights-list", id: "weights-list" }),
        el("p", { class: "running", id: "running", "aria-hidden": "true" })),
      buildFigures()),
    el("div", { id: "shapes", class: "shapes" }));
  onState((part) => {
    if (part.columns) showColumns();
    if ("how" in part) put(byId("how"), state.how || "Nothing may matter yet: every weight is 0. Lock what the law protects, then start from a designed metric or move a slider.");
    if (part.columns || "result" in part) { showFigures(); showPrices(); }
    if ("result" in part) { showShapes(byId("shapes")); drawn(); }
    if (part.columns && !("result" in part)) showFigures();
  });
}

// For measurements: how long it took from a change until its figures were drawn.
function drawn() {
  const event = state.result && state.result.event;
  requestAnimationFrame(() => requestAnimationFrame(() => {
    if (event !== null && document.documentElement.dataset.drawn !== String(event)) {
      document.documentElement.dataset.drawn = String(event);
      if (performance.getEntriesByName("change").length) performance.measure("refit and redraw", "change");
    }
    document.documentElement.dataset.done = state.result && state.result.done ? String(event) : "";
  }));
}

const begin = (from) => quietly(change("start", { from }));

async function takeFile(event) {
  const file = event.target.files[0];
  event.target.value = "";
  if (!file) return;
  if (file.size > 900000) { fail(file.name + " is too large for a metric file."); return; }
  const text = await file.text();
  await quietly(change("start", { from: "file", text, title: file.name }));
}

// -- rows --------------------------------------------------------------------------------------------------------------

function showColumns() {
  const list = byId("weights-list");
  const names = state.columns.map((column) => column.name);
  if (names.some((name) => !rows.has(name)) || rows.size !== names.length) {
    rows.clear();
    put(list, state.columns.map((column, i) => build(column, i)));
  }
  for (const column of state.columns) show(column);
}

function build(column, i) {
  const id = "w" + i, name = column.name;
  const row = { id };
  row.slider = el("input", { type: "range", id, min: 0, max: STEPS, step: 1, "aria-label": "Weight of " + name, oninput: () => slide(name), onchange: () => commit(name) });
  row.before = el("span", { class: "unit" });
  row.number = el("input", { type: "number", min: 0, step: "any", id: id + "-number", onchange: () => typed(name), onkeydown: (event) => { if (event.key === "Enter") event.target.blur(); } });
  row.after = el("span", { class: "unit" });
  row.blank = el("input", { type: "number", min: 0, max: 100, step: "any", id: id + "-blank", "aria-label": name + ", not known: points", onchange: () => typedBlank(name) });
  row.blankLine = el("label", { class: "blank small" }, "not known = ", row.blank, " points");
  row.lock = button("Lock", () => toggle(name), { id: id + "-lock", class: "lock" });
  row.price = el("span", { class: "price small", id: id + "-price" });
  row.loosen = button("+10%", () => set(name, (weightOf(name) * 1.1)), { class: "loosen", id: id + "-loosen", "aria-label": "Make " + name + " 10% looser" });
  row.item = el("li", { "data-column": name },
    el("label", { class: "name data", for: id }, soft(name)), row.lock, row.slider,
    el("span", { class: "amount" }, row.before, row.number, row.after),
    el("span", { class: "cost" }, row.price, row.loosen), row.blankLine);
  rows.set(name, row);
  return row.item;
}

const columnOf = (name) => state.columns.find((column) => column.name === name);
const weightOf = (name) => columnOf(name).weight;
const inPoints = (column) => column.kind !== "numeric" || column.one;

// The slider's position is the cube root of what a typical difference counts: small weights get the finest steps.
const toPosition = (column, weight) => Math.round(STEPS * Math.cbrt(Math.min(1, weight * column.typical / TOP)));
const toWeight = (column, position) => Number((TOP * Math.pow(position / STEPS, 3) / (column.typical || 1)).toPrecision(3));
const toField = (column, weight) => (weight < NEGLIGIBLE ? "" : inPoints(column) ? plain(100 * weight) : plain(0.01 / weight * column.factor));

function show(column, weight = column.weight) {
  const row = rows.get(column.name);
  const words = column.locked ? "must not matter" : worth(column, weight);
  if (document.activeElement !== row.slider || !waiting.has(column.name)) row.slider.value = toPosition(column, weight);
  row.slider.setAttribute("aria-valuetext", words);
  if (document.activeElement !== row.number) row.number.value = toField(column, weight);
  row.number.placeholder = weight ? "blanks" : "–";
  row.number.setAttribute("aria-label", column.name + ": " + (inPoints(column) ? "points" : "amount worth one point, empty if it is not used"));
  put(row.before, column.kind !== "numeric" ? "any difference =" : column.one ? column.one + " =" : "1 point = " + column.prefix);
  put(row.after, inPoints(column) ? "points" : column.suffix.trim().replace("percentage points", "% points"));
  row.after.title = column.suffix.trim();
  row.item.classList.toggle("zero", !weight);
  row.item.classList.toggle("locked", column.locked);
  for (const control of [row.slider, row.number, row.loosen]) control.disabled = column.locked;
  row.lock.setAttribute("aria-pressed", String(column.locked));
  put(row.lock, column.locked ? "Locked" : "Lock");
  row.lock.setAttribute("aria-label", (column.locked ? "Unlock " : "Lock ") + column.name + (column.locked ? ", which must not matter" : " at 0"));
  row.blankLine.hidden = column.missing === null || !weight;
  if (column.missing !== null && document.activeElement !== row.blank) row.blank.value = plain(100 * column.missing, 3);
}

function showPrices() {
  const prices = state.result && state.result.prices;
  const dear = Math.max(0, ...Object.values(prices || {}));
  for (const [name, row] of rows) {
    const column = columnOf(name);
    if (!prices && column.weight && !column.locked) continue;  // not measured yet: the price until now stays
    const price = (prices && prices[name]) || 0;
    const shown = price >= 5e-6;
    const capped = column.capped_at !== null;
    put(row.price, !column.weight || column.locked ? "" : shown ? "price " + price.toFixed(5) : capped ? "held at " + points(column.capped_at) + " by “not known”" : "free");
    row.price.title = shown ? "What the model would gain in training loss, at most, if this weight alone were 10% looser" : capped ? "Two people who have it are each within " + points(column.missing) + " of one who does not, so it can make twice that at most. Raise “not known” for this weight to count in full" : "Loosening this weight would gain nothing";
    row.item.classList.toggle("dear", shown && price >= 0.5 * dear);
    row.loosen.hidden = !shown || column.locked;
  }
}

function slide(name) {
  const row = rows.get(name), column = columnOf(name);
  clearTimeout(waiting.get(name));
  waiting.set(name, 0);
  show(column, toWeight(column, Number(row.slider.value)));
  row.slider.value = row.slider.value;
}

// A key press is a change of its own; several in a row are one decision.
function commit(name) {
  const row = rows.get(name), position = Number(row.slider.value);
  clearTimeout(waiting.get(name));
  waiting.set(name, setTimeout(() => {
    waiting.delete(name);
    const column = columnOf(name);
    if (toPosition(column, column.weight) === position) { show(column); return; }
    set(name, toWeight(column, position));
  }, 250));
}

function set(name, weight) {
  const column = columnOf(name);
  const section = column.kind === "numeric" ? "numeric" : "categorical";
  const value = section === "categorical" ? Math.min(1, weight) : weight;
  return act("weights", { set: { [section]: { [name]: Number(value.toPrecision(6)) } } }).catch(() => show(columnOf(name)));
}

function typed(name) {
  const row = rows.get(name), column = columnOf(name), text = row.number.value.trim(), value = Number(text);
  if (!row.number.checkValidity() || !Number.isFinite(value) || value < 0) {
    fail(name + " needs a number, or nothing if it is not to be used.");
    row.number.value = toField(column, column.weight);
    return;
  }
  if (text === toField(column, column.weight)) return;
  const weight = text === "" || value === 0 ? 0 : inPoints(column) ? value / 100 : 0.01 * column.factor / value;
  if (column.kind !== "numeric" && weight > 1) { fail(name + " can be worth at most 100 points, which allows any difference."); row.number.value = toField(column, column.weight); return; }
  set(name, weight);
}

function typedBlank(name) {
  const value = Number(rows.get(name).blank.value);
  quietly(act("weights", { set: { missing: { [name]: Number((value / 100).toPrecision(6)) } } }));
}

async function toggle(name) {
  const column = columnOf(name);
  if (column.locked && !byId("reason").value.trim()) {
    byId("reason").focus();
    fail("Say why " + name + " may matter, in the field “Why”, then unlock it.");
    return;
  }
  await quietly(act(column.locked ? "unlock" : "lock", { column: name }));
}
