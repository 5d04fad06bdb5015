// Questions about pairs of people: answers by name, ranges, conflicts, and cases of a model in use.
import { act, name, onState, post, quietly, state } from "./api.js";
import { button, byId, el, points, put, soft, worth } from "./dom.js";

let question = null, asked = 0;

export function buildPairs(panel) {
  panel.append(
    el("p", { class: "lead-small" }, "Two people, shown only where they differ. Your answers narrow the weights; locked columns are not shown. Each person answers under their own name."),
    el("div", { class: "bench" },
      el("div", {},
        el("div", { class: "chips" },
          button("Ask how far apart", () => ask(false), { id: "ask" }),
          button("Ask which pair is more alike", () => ask(true), { id: "ask-compare" })),
        el("div", { id: "question", class: "result", "aria-live": "polite" }, el("p", { class: "muted" }, "No question yet. Ask for one: it is the pair whose distance your answers so far leave most open.")),
        el("h3", { class: "spaced" }, "Cases"),
        el("p", { class: "small", id: "cases-title" }),
        el("ul", { class: "cases", id: "cases" })),
      el("div", {},
        el("div", { id: "conflicts" }),
        el("h3", {}, "What the answers leave"), el("div", { id: "ranges" }),
        el("h3", { class: "spaced" }, "Answers"), el("ul", { class: "log", id: "answers" }))));
  onState((part) => {
    if (part.answers) showAnswers();
    if ("judged" in part) showJudged();
    if ("result" in part) showCases();
  });
}

async function ask(compare) {
  let who;
  try { who = name(); } catch { return; }
  put(byId("question"), el("p", { class: "muted" }, "Looking for the pair that would settle most…"));
  const turn = (asked += 1);
  const found = await quietly(post("question", { name: who, compare }));
  if (turn !== asked) return;  // somebody else asked meanwhile
  question = found ? found.question : null;
  showQuestion(found ? (compare ? "There are no two pairs left to compare." : "Of the pairs that differ in few columns, every distance is known to a point, or was asked about.") : "No question could be asked.");
}

async function askPair(a, b) {
  const turn = (asked += 1);
  const found = await quietly(post("pair", { a, b }));
  if (!found || turn !== asked) return;
  question = found.question;
  showQuestion("");
  byId("question").scrollIntoView({ block: "nearest" });
}

const cell = (text) => (text === "" ? el("span", { class: "muted" }, "not known") : text);

function pairTable(differences, a, b) {
  return el("table", {},
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Differs in"), el("th", { scope: "col" }, "Person " + a), el("th", { scope: "col" }, "Person " + b))),
    el("tbody", {}, differences.map((line) => el("tr", {}, el("th", { scope: "row", class: "data" }, soft(line.column)), el("td", { class: "data" }, cell(line.a)), el("td", { class: "data" }, cell(line.b))))));
}

function showQuestion(nothing) {
  const box = byId("question");
  if (!question) { put(box, el("p", { class: "muted" }, nothing)); return; }
  if (question.c !== undefined) {
    const answer = (kind, a, b, c, d) => save([kind === "skip" ? { kind: "skip", a: question.a, b: question.b } : { kind, a, b, c, d }]);
    put(box, el("p", { class: "verdict" }, "Which pair is more alike?"),
      el("div", { class: "worst-grid" }, el("div", {}, el("h4", {}, "First pair"), pairTable(question.differences, question.a, question.b)), el("div", {}, el("h4", {}, "Second pair"), pairTable(question.others, question.c, question.d))),
      el("div", { class: "chips answers" },
        button("The first", () => answer("closer", question.a, question.b, question.c, question.d), { id: "answer-first" }),
        button("The second", () => answer("closer", question.c, question.d, question.a, question.b), { id: "answer-second" }),
        button("Skip", () => answer("skip"), { id: "answer-skip" })));
    return;
  }
  const most = el("input", { type: "number", id: "answer-most", min: 0, max: 100, step: "any", required: true });
  const least = el("input", { type: "number", id: "answer-least", min: 0, max: 100, step: "any" });
  const form = el("form", { class: "answer-form", onsubmit: (event) => {
    event.preventDefault();
    const pair = { a: question.a, b: question.b };
    const rows = [];
    if (least.value !== "") rows.push({ kind: "at_least", ...pair, points: Number(least.value) });
    if (most.value !== "") rows.push({ kind: "at_most", ...pair, points: Number(most.value) });
    if (rows.length === 2 && rows[0].points > rows[1].points) { most.setCustomValidity("At most must not be below what is fine."); most.reportValidity(); return; }
    save(rows);
  } },
    el("label", {}, "At most ", most, " points apart"),
    el("label", {}, "and up to ", least, " points are fine (may stay empty)"),
    el("div", { class: "chips answers" }, el("button", { type: "submit", id: "answer-save" }, "Save answer"), button("Skip", () => save([{ kind: "skip", a: question.a, b: question.b }]), { id: "answer-skip" })));
  most.addEventListener("input", () => most.setCustomValidity(""));
  put(box, el("p", { class: "verdict" }, "At most how far apart may these two be treated?"),
    pairTable(question.differences, question.a, question.b),
    el("p", { class: "small" }, (question.n_same ? "The same in " + question.n_same + " other column" + (question.n_same === 1 ? "" : "s") + ". " : "") + "0 points: exactly alike. 100 points: any difference is fine."),
    form);
  most.focus({ preventScroll: true });
}

async function save(rows) {
  const compared = question.c !== undefined;
  const done = await quietly(act("answer", { rows }));
  if (done) await ask(compared);
}

const answered = (answer, text) => el("li", {}, el("span", { class: "data" }, el("strong", {}, answer.name), ": " + text + " "),
  button("Withdraw", () => quietly(act("withdraw", { of: answer.n })), { class: "quiet", "aria-label": "Withdraw answer no. " + answer.n + " of " + answer.name }));

function showAnswers() {
  put(byId("answers"), state.answers.length ? state.answers.slice().reverse().map((answer) => answered(answer, answer.texts.join(" and "))) : el("li", { class: "muted" }, "Nobody has answered yet."));
}

function showJudged() {
  const judged = state.judged;
  if (!judged) { put(byId("conflicts")); put(byId("ranges"), el("p", { class: "muted" }, "Being worked out…")); return; }
  const by = new Map(state.columns.map((column) => [column.name, column]));
  const discuss = (title, said) => el("div", { class: "note warning conflict" }, el("h3", {}, "To discuss: " + title), el("ul", {}, said.map((each) => answered(each, each.text))));
  put(byId("conflicts"),
    judged.conflicts.map((said) => discuss(said.length > 1 ? "these cannot all hold. Which one gives way?" : "this cannot hold, as the two do not differ in a column that may matter.", said)),
    judged.disagreements.map((said) => discuss("different answers to the same question. Which one stands?", said)));
  if (judged.error) { put(byId("ranges"), el("p", { class: "muted" }, judged.error)); return; }
  put(byId("ranges"), judged.ranges.length ? el("div", { class: "scroll" }, el("table", { class: "ranges" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Column"), el("th", { scope: "col" }, "Strictest"), el("th", { scope: "col" }, "Loosest"), el("th", { scope: "col", class: "num" }, "Answers"))),
    el("tbody", {}, judged.ranges.map((range) => {
      const column = by.get(range.column), blank = range.kind === "missing";
      const words = (weight) => (weight === null ? "no limit" : blank || !weight ? points(weight) : worth(column, weight));
      return el("tr", {}, el("th", { scope: "row" }, soft(range.column), blank ? ", not known" : null), el("td", {}, words(range.low)), el("td", {}, words(range.high)), el("td", { class: "num" }, range.n_answers));
    })))) : el("p", { class: "muted" }, "No limits yet. Ranges appear with the first answer in points."));
}

function showCases() {
  const today = state.result && state.result.today;
  put(byId("cases-title"), !today ? "Measuring models without a guarantee…" : today.worst.length ? "The pairs furthest beyond their distance under " + today.title + ". Discuss one: is the model wrong, or the weights?" : "Under " + today.title + ", no pair exceeds its distance.");
  put(byId("cases"), today ? today.worst.map((pair) => el("li", {}, el("span", { class: "data" }, "Person " + pair.a + " and " + pair.b + ": " + points(pair.gap) + " apart, " + points(pair.distance) + " allowed"), button("Ask", () => askPair(pair.a, pair.b), { class: "quiet", "aria-label": "Ask about person " + pair.a + " and " + pair.b }))) : []);
}
