// What the committee leaves with.
import { change, onState, quietly, state } from "./api.js";
import { button, byId, el, put } from "./dom.js";

const ABOUT = {
  "metric.toml": "the weights, with the minutes as comments", "model.skops": "the model, fitted to the whole table within them", "card.csv": "the model as a scorecard, for a spreadsheet",
  "card.json": "the same with all digits, for likewise verify-card", "report.html": "a page for people who are not engineers", "minutes.md": "who decided what, when and why", "answers.csv": "the answers about pairs",
};

export function buildOut(panel) {
  panel.append(
    el("p", { class: "lead-small" }, "Write the metric, the model, its card, a report, the answers and the minutes into the folder ", el("span", { class: "data", id: "folder" }), "."),
    el("div", { class: "chips" }, button("Write all files", () => quietly(change("export", { report: byId("with-report").checked })), { id: "export" }), el("label", { class: "small" }, el("input", { type: "checkbox", id: "with-report", checked: true }), " with the report, which may take a minute; you can go on working")),
    el("ul", { class: "log", id: "files", "aria-live": "polite" }),
    el("p", { class: "small" }, "The exported model is fitted to the whole table. ", el("span", { class: "live-note" })),
    el("h2", { class: "small-title spaced" }, "The same without this page"),
    el("p", { class: "small" }, "From metric.toml, once it is written, these commands make the same model, to the last bit. They replace no file."),
    el("pre", { id: "commands", tabindex: 0, "aria-label": "Commands" }));
  onState((part) => {
    if (part.exports) {
      put(byId("folder"), state.folder);
      put(byId("commands"), state.commands.join("\n"));
    }
    if (part.exports || "job" in part) showFiles();
    if ("job" in part) byId("export").disabled = Boolean(state.job);
  });
}

function showFiles() {
  const writing = state.job && state.job.writes ? state.job.writes : [];
  const there = state.exports.filter((file) => !writing.includes(file)).map((file) => el("li", {}, el("a", { href: "/files/" + file, download: file }, file), el("span", { class: "small" }, " " + ABOUT[file])));
  const coming = writing.map((file) => el("li", { class: "muted coming" }, el("span", {}, file), el("span", { class: "small" }, "is being written…")));
  put(byId("files"), there.length || coming.length ? [there, coming] : el("li", { class: "muted" }, "Nothing is written yet."));
}
