// Any two people, of the table or typed: distance by column, scores and reasons.
import { onState, post, quietly, state } from "./api.js";
import { NEGLIGIBLE, byId, el, points, put, score, soft } from "./dom.js";

const SIDES = ["a", "b"];
let timer = 0, built = "";

export function buildPeople(panel) {
  panel.append(
    el("p", { class: "lead-small" }, "Choose two people by their number, or type any values. A field left empty is a value that is not known."),
    el("div", { class: "choose" }, SIDES.map((side) => el("div", {},
      el("label", { for: side + "-person" }, "Person " + side.toUpperCase()),
      el("input", { id: side + "-person", type: "text", inputmode: "numeric", autocomplete: "off", onchange: () => load(side) }),
      el("p", { class: "score", id: side + "-score", "aria-live": "polite" }),
      el("p", { class: "small", id: side + "-without" }),
      el("ul", { class: "reasons", id: side + "-reasons" })))),
    el("div", { class: "result" }, el("p", { class: "verdict", id: "people-verdict", "aria-live": "polite" }, "Two people, please."), el("p", { class: "small", id: "people-detail" })),
    el("div", { class: "scroll" }, el("table", { class: "compare" },
      el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Column"), el("th", { scope: "col" }, "Person A"), el("th", { scope: "col" }, "Person B"), el("th", { scope: "col", class: "num" }, "Distance"))),
      el("tbody", { id: "people-rows" }))));
  onState((part) => {
    if (part.columns) buildRows();
    if ("result" in part && !panel.hidden) later();
  });
}

export function showPeople() {
  if (!byId("a-person").value && state.columns) {
    const worst = state.result && state.result.today && state.result.today.worst[0];
    byId("a-person").value = worst ? worst.a : "1";
    byId("b-person").value = worst ? worst.b : "2";
    SIDES.forEach(load);
  } else later();
}

function buildRows() {
  const names = JSON.stringify(state.columns.map((column) => column.name));
  if (names === built) return;
  built = names;
  put(byId("people-rows"), state.columns.map((column, i) => el("tr", { id: "p" + i },
    el("th", { scope: "row", class: "data" }, soft(column.name), column.unit ? el("span", { class: "small block" }, column.unit) : null),
    SIDES.map((side) => el("td", {}, field(column, i, side))), el("td", { class: "num", id: "p" + i + "-points" }, ""))));
}

function field(column, i, side) {
  const id = "p" + i + side, label = column.name + " of person " + side.toUpperCase();
  if (column.kind === "numeric") return el("input", { type: "number", step: "any", id, "aria-label": label, oninput: later });
  if (column.n_levels > column.levels.length) return el("input", { type: "text", id, "aria-label": label, oninput: later });
  return el("select", { id, "aria-label": label, onchange: later }, el("option", { value: "" }, "not known"), column.levels.map((level) => el("option", { value: level }, level)));
}

async function load(side) {
  const found = await quietly(post("person", { label: byId(side + "-person").value.trim() }));
  if (!found) return;
  state.columns.forEach((column, i) => {
    const input = byId("p" + i + side), value = found.values[column.name];
    if (input.tagName === "SELECT" && ![...input.options].some((option) => option.value === value)) input.append(el("option", { value }, value));
    input.value = value;
  });
  later();
}

function later() {
  clearTimeout(timer);
  timer = setTimeout(() => quietly(compare()), 200);
}

const values = (side) => Object.fromEntries(state.columns.map((column, i) => [column.name, byId("p" + i + side).value]));

async function compare() {
  if (!byId("a-person").value) return;
  const found = await post("compare", { a: values("a"), b: values("b") });
  const table = state.table, [own, other] = found.scores;
  const what = table.task === "regression" ? "prediction" : "chance of “" + table.outcome + "”";
  SIDES.forEach((side, k) => {
    put(byId(side + "-score"), score(own.values[k], table) + " " + what);
    put(byId(side + "-without"), other ? score(other.values[k], table) + " by " + other.title : "");
    put(byId(side + "-reasons"), found.reasons[k] ? found.reasons[k].reasons.map((reason) => el("li", { class: "data" }, reason)) : []);
  });
  put(byId("people-verdict"), points(found.distance) + " apart by the weights, " + points(own.gap) + " apart by the model");
  const gap = other ? other.gap : null;
  put(byId("people-detail"), (found.distance >= 1 ? "From 100 points on, any difference is allowed. " : "The model can never put these two further apart than their distance. ") + (gap === null ? "" : "By " + other.title + ": " + points(gap) + (gap > found.distance + 1e-9 ? ", more than the distance." : ", within the distance.")));
  found.parts.forEach((part, i) => {
    put(byId("p" + i + "-points"), part.points > NEGLIGIBLE ? points(part.points) : "0");
    byId("p" + i).classList.toggle("counts", part.points > NEGLIGIBLE);
  });
}
