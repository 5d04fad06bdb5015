// Four steps on the bundled mortgages.
import { state } from "./api.js";
import { button, byId, el, put } from "./dom.js";

const STEPS = [
  ["weights", "#weights-list", "1 of 4: lock what must not matter. Write your name at the top, then lock race and sex at the end of the list. Press Designed: in about half a minute you have the metric with the least loss for the distance it allows."],
  ["weights", "#figures", "2 of 4: move a weight. The model is fitted again at once, and figures, prices and shapes follow. A weight with a high price holds the model back: make it 10% looser and see what that gains."],
  ["pairs", "#question", "3 of 4: judge pairs. Ask for a question and answer it. Then change the name at the top and answer as somebody else. Different answers about the same pair, and answers that cannot all hold, appear as questions to discuss."],
  ["out", "#export", "4 of 4: take the results with you. Write all files: the metric, the model and its card, the report and the minutes. The commands below make the same model without this page."],
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
