// Four steps on the bundled mortgages.
import { state } from "./api.js";
import { button, byId, el, put } from "./dom.js";

const STEPS = [
  ["weights", "#weights-list", "1 of 4: lock what must not matter. Write your name at the top. Race and sex stand at the end of the list: lock them. Then press Designed: in half a minute there is a metric that loses least for the distance it allows."],
  ["weights", "#figures", "2 of 4: move a weight. The figures, the prices and the shapes are those of a model fitted anew. A weight with a high price holds the model back: make it 10% looser and look what it buys."],
  ["pairs", "#question", "3 of 4: judge pairs. Ask for a question and answer it; then write another name and answer as somebody else. What cannot be reconciled appears as a question to discuss."],
  ["out", "#export", "4 of 4: leave with it. Save a version, look at the record, and write all files. The commands below make the same model without this page."],
];

export function startTour(select) {
  if (!state.table.tour || sessionStorage.getItem("tour") === "done") return;
  let step = Number(sessionStorage.getItem("tour") || 0);
  const box = byId("tour");
  const end = () => { sessionStorage.setItem("tour", "done"); box.hidden = true; mark(null); };
  const mark = (selector) => {
    document.querySelectorAll(".toured").forEach((node) => node.classList.remove("toured"));
    if (selector) document.querySelector(selector).classList.add("toured");
  };
  const go = (to) => {
    if (to >= STEPS.length) { end(); return; }
    step = to;
    sessionStorage.setItem("tour", String(step));
    const [tab, selector, text] = STEPS[step];
    select(tab);
    mark(selector);
    put(box, el("p", {}, text), el("div", { class: "chips" }, button(step + 1 < STEPS.length ? "Next" : "Done", () => go(step + 1), { id: "tour-next" }), step ? button("Back", () => go(step - 1), { class: "quiet" }) : null, button("Leave the tour", end, { class: "quiet", id: "tour-end" })));
    box.hidden = false;
  };
  go(step);
}
