// The state of the workbench, as the server tells it, and requests to change it.
import { byId, put } from "./dom.js";

export const state = {};
const listeners = [];
export const onState = (listener) => listeners.push(listener);

// Tells this browser's changes from others'; lives as long as the tab.
export const browser = sessionStorage.getItem("browser") || Math.random().toString(36).slice(2, 12);
sessionStorage.setItem("browser", browser);

export function fail(text) {
  byId("error").hidden = !text;
  put(byId("error"), text || "");
}

function receive(part) {
  // An older state that arrives late must not replace a newer one.
  if ("last" in part && "last" in state && part.last < state.last) return;
  Object.assign(state, part);
  for (const listener of listeners) listener(part);
}

export function name() {
  const text = byId("name").value.trim();
  if (!text) {
    byId("name").focus();
    fail("Enter your name first: the record names who decided what.");
    throw new Error("no name");
  }
  return text;
}

export async function post(route, given = {}) {
  let answer;
  try {
    answer = await fetch("/api/" + route, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ browser, seen: state.last, ...given }),
    });
  } catch {
    fail("The workbench does not answer. Is it still running in the terminal? Nothing that was shown here is lost.");
    throw new Error("no answer");
  }
  const found = await answer.json().catch(() => ({ error: "The workbench refused this request (" + answer.status + "). Open the address in the terminal again." }));
  if (!answer.ok) {
    fail(found.error);
    throw new Error(found.error);
  }
  fail("");
  if (found.overrode && found.overrode.length) fail("You have just replaced what was set by " + found.overrode.join(", ") + ". Both are in the record.");
  return found;
}

// A change that is recorded, with the name and the reason at the top of the page.
export async function change(route, given) {
  const who = name();
  performance.clearMarks("change");
  performance.mark("change");
  const found = await post(route, { name: who, reason: byId("reason").value, ...given });
  byId("reason").value = "";
  return found;
}

export const act = (kind, given = {}) => change("act", { kind, ...given });
export const quietly = (promise) => promise.catch(() => undefined); // the error is on the page

export function connect() {
  const source = new EventSource("/api/events");
  source.onmessage = (message) => {
    document.body.classList.remove("offline");
    receive(JSON.parse(message.data));
  };
  source.onerror = () => {
    document.body.classList.add("offline");
    put(byId("status"), "Not connected");
  };
}
