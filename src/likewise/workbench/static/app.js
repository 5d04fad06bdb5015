// The page: tabs, what is going on, and undo.
import { act, connect, fail, onState, quietly, state } from "./api.js";
import { button, byId, el, put, whole } from "./dom.js";
import { isFresh } from "./figures.js";
import { buildOut } from "./out.js";
import { buildPairs } from "./pairs.js";
import { buildPeople, showPeople } from "./people.js";
import { buildRecord } from "./record.js";
import { startTour } from "./tour.js";
import { buildVersions } from "./versions.js";
import { buildWeights } from "./weights.js";

const TABS = { weights: ["Weights", buildWeights], pairs: ["Pairs", buildPairs], people: ["People", buildPeople], versions: ["Versions", buildVersions], record: ["Record", buildRecord], out: ["Export", buildOut] };

function select(key, focus = false) {
  for (const each of Object.keys(TABS)) {
    const tab = byId("tab-" + each);
    tab.setAttribute("aria-selected", String(each === key));
    tab.tabIndex = each === key ? 0 : -1;
    byId("panel-" + each).hidden = each !== key;
  }
  if (focus) byId("tab-" + key).focus();
  if (key === "people") showPeople();
  history.replaceState(null, "", "#" + key);
}

function onArrow(event) {
  const keys = Object.keys(TABS), at = keys.indexOf(event.target.id.slice(4));
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: keys.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  select(keys[(to + keys.length) % keys.length], true);
}

for (const [key, [title, build]] of Object.entries(TABS)) {
  byId("tabs").append(button(title, () => select(key), { id: "tab-" + key, role: "tab", "aria-controls": "panel-" + key, onkeydown: onArrow }));
  build(byId("panel-" + key));
}
select(location.hash.slice(1) in TABS ? location.hash.slice(1) : "weights");

byId("name").value = sessionStorage.getItem("name") || "";
byId("name").addEventListener("change", () => { sessionStorage.setItem("name", byId("name").value); fail(""); });
byId("undo").addEventListener("click", () => quietly(act("undo")));
byId("redo").addEventListener("click", () => quietly(act("redo")));
document.addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
  if (event.target.matches("input:not([type=range]), textarea")) return; // there it undoes typing
  event.preventDefault();
  if (event.shiftKey ? state.redo : state.undo) quietly(act(event.shiftKey ? "redo" : "undo"));
});

let toured = false;
onState((part) => {
  if (part.table) {
    const table = state.table;
    document.title = table.name + " – workbench";
    put(byId("table-name"), table.name);
    const facts = { Outcome: table.task === "regression" ? table.target : table.target + " (shown: chance of “" + table.outcome + "”)", People: whole(table.n) + (table.n_live < table.n ? "; live figures of an even sample of " + whole(table.n_live) : ""), Record: table.state };
    const note = "Live figures use at most " + table.knots + " knots per column and penalties chosen once, so figures of the exported model can differ slightly.";
    document.querySelectorAll(".live-note").forEach((node) => put(node, note));
    put(byId("about"), Object.entries(facts).map(([title, text]) => el("div", {}, el("dt", {}, title), el("dd", { class: "data" }, text))));
  }
  if ("undo" in part) { byId("undo").disabled = !state.undo; byId("redo").disabled = !state.redo; }
  const trouble = state.trouble || {};
  if (part.trouble && (trouble.job || trouble.live)) fail(trouble.job || trouble.live);
  const busy = state.job ? state.job.title + "…" : !isFresh() ? "Fitting…" : state.result.done ? "Up to date" : "Holding out more people…";
  document.body.classList.toggle("busy", Boolean(state.job) || !isFresh());
  if (byId("status").textContent !== busy) put(byId("status"), busy);
  if (!toured) { toured = true; startTour(select); }
});

connect();
