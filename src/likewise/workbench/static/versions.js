// Named versions, and two of them side by side.
import { act, change, onState, post, quietly, state } from "./api.js";
import { button, byId, el, figure, percent, put, soft, whole, withError, worth } from "./dom.js";

export function buildVersions(panel) {
  const title = el("input", { id: "version-title", type: "text", maxlength: 80, placeholder: "strict, as agreed in May, …" });
  panel.append(
    el("form", { class: "line-form", onsubmit: async (event) => { event.preventDefault(); if (await quietly(act("version", { title: title.value }))) title.value = ""; } },
      el("label", {}, "Save the present weights as ", title), el("button", { type: "submit", id: "version-save" }, "Save version")),
    el("ul", { class: "log", id: "version-list" }),
    el("h2", { class: "small-title spaced" }, "Side by side"),
    el("div", { class: "line-form" },
      el("label", {}, "One ", el("select", { id: "one" })), el("label", {}, "Other ", el("select", { id: "other" })), button("Compare", () => quietly(compare()), { id: "compare-versions" })),
    el("div", { id: "side-by-side", "aria-live": "polite" }));
  onState((part) => { if (part.versions) show(); });
}

function show() {
  put(byId("version-list"), state.versions.length ? state.versions.map((title) => el("li", {}, el("span", { class: "data" }, title), button("Go back to it", () => quietly(change("start", { from: "version", title })), { class: "quiet", "aria-label": "Go back to the version " + title }))) : el("li", { class: "muted" }, "No version is saved yet."));
  for (const id of ["one", "other"]) {
    const kept = byId(id).value;
    put(byId(id), state.versions.map((title) => el("option", { value: title }, title)), el("option", { value: "" }, "now"));
    byId(id).value = [...byId(id).options].some((option) => option.value === kept) && kept ? kept : id === "one" && state.versions.length ? state.versions[0] : "";
  }
}

async function compare() {
  put(byId("side-by-side"), el("p", { class: "muted" }, "Measuring…"));
  const found = await post("versions", { one: byId("one").value, other: byId("other").value }).catch((error) => { put(byId("side-by-side")); throw error; });
  const [a, b] = found.versions, digits = a.titles && a.titles[0] === "Brier score" ? 4 : null;
  const line = (title, one, other) => el("tr", { class: one === other ? "zero" : "" }, el("th", { scope: "row" }, soft(title)), el("td", {}, one), el("td", {}, other));
  const figures = a.figures && b.figures ? [line(a.titles[0], withError(a.figures.loss, a.figures.loss_se, digits), withError(b.figures.loss, b.figures.loss_se, digits)), line(a.titles[1], withError(a.figures.second, a.figures.second_se, 3), withError(b.figures.second, b.figures.second_se, 3))] : [];
  const by = new Map(state.columns.map((column) => [column.name, column]));
  const words = (version, name) => (version.locked.includes(name) ? "must not matter (locked)" : worth(by.get(name), version.weights[name]));
  const model = (a.today || b.today || {}).title;
  const names = Object.keys(a.weights).sort((x, y) => (a.weights[x] === b.weights[x]) - (a.weights[y] === b.weights[y]));
  put(byId("side-by-side"), el("div", { class: "scroll" }, el("table", { class: "versions" },
    el("thead", {}, el("tr", {}, el("td", {}), el("th", { scope: "col", class: "data" }, a.title), el("th", { scope: "col", class: "data" }, b.title))),
    el("tbody", {}, figures,
      line("mean distance", figure(a.mean_distance), figure(b.mean_distance)), line("pairs that are bound", percent(a.bound_share, 1), percent(b.bound_share, 1)),
      model ? line("pairs that exceed their distance under " + model + (state.has_scores || String(a.locked) === String(b.locked) ? "" : ", each without its locked columns"), ...[a, b].map((version) => whole(version.today && version.today.violations))) : null,
      names.map((name) => line(name, words(a, name), words(b, name)))))));
}
