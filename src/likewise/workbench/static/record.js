// The record: who decided what, when and why; and the minutes.
import { act, onState, quietly, state } from "./api.js";
import { button, byId, el, put } from "./dom.js";

export function buildRecord(panel) {
  const note = el("input", { id: "note", type: "text", maxlength: 2000, placeholder: "what was discussed or agreed" });
  panel.append(
    el("form", { class: "line-form", onsubmit: async (event) => { event.preventDefault(); if (await quietly(act("note", { text: note.value }))) note.value = ""; } },
      el("label", {}, "Note ", note), el("button", { type: "submit", id: "note-save" }, "Add to the record")),
    el("ol", { class: "log events", id: "events", reversed: true }),
    el("details", { id: "minutes-box" }, el("summary", {}, "The minutes, as Markdown"), el("label", { class: "hidden", for: "minutes" }, "Minutes"), el("textarea", { id: "minutes", rows: 16, readonly: true })));
  onState((part) => {
    if (part.record) show();
    if ("minutes" in part) byId("minutes").value = state.minutes;
  });
}

function show() {
  if (byId("events").contains(document.activeElement) && document.activeElement.tagName === "INPUT") return; // somebody is typing a reason
  put(byId("events"), state.record.length ? state.record.map((event) => {
    const item = el("li", { value: event.n },
      el("span", { class: "small when" }, event.time.replace("T", " ").replace("+00:00", " UTC")), " ",
      el("span", { class: "data" }, el("strong", {}, event.name), " " + event.text),
      event.reasons.map((reason) => el("span", { class: "reason data" }, "“" + reason + "”")));
    item.append(button("Add a reason", () => explain(item, event), { class: "quiet", "aria-label": "Add a reason to no. " + event.n }));
    return item;
  }) : el("li", { class: "muted" }, "Nothing has been decided yet."));
}

function explain(item, event) {
  const text = el("input", { type: "text", maxlength: 2000, "aria-label": "Reason for no. " + event.n });
  const form = el("form", { class: "line-form", onsubmit: async (submitted) => { submitted.preventDefault(); text.blur(); await quietly(act("explain", { of: event.n, text: text.value })); } }, text, el("button", { type: "submit" }, "Add"));
  item.lastChild.replaceWith(form);
  text.focus();
}
