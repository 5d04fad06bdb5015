// Two people side by side.
const sides = { a: { person: byId("a-person"), row: [] }, b: { person: byId("b-person"), row: [] } };
const field = (side, i) => byId(side + i);

function fill(side) {
  const chosen = sides[side].person ? sides[side].person.value : "";
  if (chosen === "") return;
  report.people[Number(chosen)].values.forEach((value, i) => { field(side, i).value = value === null ? "" : value; });
}

// The values of one side. Of an untouched person they are the report's own numbers, to the last digit.
function read(side) {
  const chosen = sides[side].person ? sides[side].person.value : "";
  if (chosen !== "") return report.people[Number(chosen)].values;
  return report.columns.map((_, i) => (field(side, i).value === "" ? null : Number(field(side, i).value)));
}

const scored = (side) => (sides[side].person && sides[side].person.value !== "" ? report.people[Number(sides[side].person.value)] : null);

function verdict(result) {
  const wrong = report.columns.filter((_, i) => ["a", "b"].some((side) => field(side, i).validity && field(side, i).validity.badInput));
  if (wrong.length) return ["Not a number.", "Please check " + wrong[0].column + "."];
  if (Number.isNaN(result.distance)) {
    const unknown = report.columns[result.parts.findIndex((part) => Number.isNaN(part))];
    return ["The distance is not defined.", unknown.column + " is missing for one of the two, and the metric does not say what that counts."];
  }
  const first = result.distance >= 1
    ? "These two may differ freely: their distance is " + points(result.distance) + "."
    : result.distance === 0
      ? "These two count as the same person: their scores may not differ."
      : "These two may differ by at most " + points(result.distance) + ".";
  const details = [];
  const one = scored("a"), other = scored("b");
  if (one && other) {
    for (const [name, when] of [["before", report.plain], ["after", one.before === null ? "Their scores" : "This model"]]) {
      if (one[name] === null) continue;
      const over = gapOf(one[name], other[name]) - Math.min(1, result.distance);
      let end = "within their distance";
      if (over > TOLERANCE) {
        end = points(over) + " above their distance";
        if (name === "after" && report.promised && !isEdited() && over <= report.epsilon + TOLERANCE) end += ", within the error that the promise allows";
      }
      details.push(when + ": " + score(one[name]) + " and " + score(other[name]) + ", " + end + ".");
    }
  } else if (result.distance < 1 && report.promised && !isEdited()) {
    details.push("The promise covers them although nobody computed their scores" + (report.epsilon > 0 ? ", up to its error of " + points(report.epsilon) : "") + ".");
  }
  return [first, details.join(" ")];
}

// Allowed and actual differences as bars on one scale.
function drawGaps(distance) {
  const one = scored("a"), other = scored("b");
  byId("gaps").hidden = !one || !other || one.before === null && one.after === null || Number.isNaN(distance);
  if (byId("gaps").hidden) return;
  const gaps = { allowed: Math.min(1, distance) };
  for (const name of ["before", "after"]) gaps[name] = one[name] === null ? null : gapOf(one[name], other[name]);
  const widest = Math.max(gaps.allowed, gaps.before, gaps.after) || 1;
  for (const [name, gap] of Object.entries(gaps)) {
    if (gap === null) continue;
    const row = byId("gap-" + name);
    row.querySelector(".value").textContent = points(gap);
    row.querySelector("rect:last-child").setAttribute("width", 100 * gap / widest + "%");
  }
}

// The score of each person, and what moves it most away from the average.
function describe(side) {
  if (!sides[side].person) return;
  const person = scored(side);
  const shown = person && (person.after || person.before);
  byId(side + "-score").textContent = shown ? (report.range ? "Prediction " : "Score ") + score(shown) : "";
  byId(side + "-why").hidden = !person || !person.reasons.length;
  byId(side + "-reasons").replaceChildren(...(person ? person.reasons : []).map((reason) => {
    const item = document.createElement("li");
    item.textContent = reason;
    return item;
  }));
}

const SVG = "http://www.w3.org/2000/svg";
function draw(result) {
  const picture = byId("contributions");
  picture.replaceChildren();
  const parts = result.parts.map((part, i) => [i, part]).filter(([, part]) => part > 0).sort((x, y) => y[1] - x[1]);
  const total = parts.reduce((sum, [, part]) => sum + part, 0);
  let x = 0;
  parts.forEach(([i, part], k) => {
    const share = 100 * part / total;
    const box = document.createElementNS(SVG, "svg");
    box.setAttribute("x", x + "%");
    box.setAttribute("width", share + "%");
    box.setAttribute("height", "28");
    const rect = document.createElementNS(SVG, "rect");
    rect.setAttribute("class", "part" + (k % 2));
    rect.setAttribute("width", "100%");
    rect.setAttribute("height", "28");
    const title = document.createElementNS(SVG, "title");
    title.textContent = report.columns[i].column + ": " + points(part);
    box.append(title, rect);
    if (share >= 12) {
      const text = document.createElementNS(SVG, "text");
      text.setAttribute("x", "8");
      text.setAttribute("y", "19");
      text.setAttribute("class", "part" + (k % 2));
      text.textContent = report.columns[i].column;
      box.append(text);
    }
    picture.append(box);
    x += share;
  });
  picture.toggleAttribute("hidden", !parts.length || Number.isNaN(total));
}

function update() {
  const result = compare(weights, read("a"), read("b"));
  const [first, detail] = verdict(result);
  byId("verdict").textContent = first;
  byId("verdict-detail").textContent = detail;
  byId("edited-note").hidden = !isEdited();
  result.parts.forEach((part, i) => {
    byId("c" + i).textContent = Number.isNaN(part) ? "unknown" : points(part);
    byId("c" + i).closest("tr").classList.toggle("counts", part > 0);
  });
  byId("distance").textContent = Number.isNaN(result.distance) ? "not defined" : points(result.distance);
  byId("distance").dataset.value = String(result.distance);
  drawGaps(result.distance);
  draw(result);
  describe("a");
  describe("b");
}

byId("compare-form").addEventListener("input", (event) => {
  const side = event.target.dataset.side;
  if (side) {
    // A value typed by hand makes this somebody who is not in the sample.
    if (sides[side].person) sides[side].person.value = "";
  } else {
    fill(event.target === sides.a.person ? "a" : "b");
  }
  update();
});
byId("compare-form").addEventListener("submit", (event) => event.preventDefault());
onWeights.push(update);

if (sides.a.person) {
  const [first, second] = report.first;
  sides.a.person.value = String(first);
  sides.b.person.value = String(second);
  fill("a");
  fill("b");
} else {
  report.columns.forEach((_, i) => { field("a", i).value = ""; field("b", i).value = ""; });
}
update();

// Browsers that print what is folded need no help; the others unfold it for the while.
const folded = () => document.querySelectorAll("details:not([open]):not(#compare):not(#toml-box)");
let unfolded = [];
addEventListener("beforeprint", () => { unfolded = [...folded()]; unfolded.forEach((box) => { box.open = true; }); });
addEventListener("afterprint", () => { unfolded.forEach((box) => { box.open = false; }); unfolded = []; });

// Where the reader is, in the contents that stay in sight.
const links = [...document.querySelectorAll("nav a")];
const places = links.map((link) => document.querySelector(link.hash));
function mark() {
  const here = Math.max(0, places.findLastIndex((place) => place.getBoundingClientRect().top < 100));
  if (links[here].hasAttribute("aria-current")) return;
  links.forEach((link, i) => { if (i === here) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current"); });
  const bar = links[here].closest("ol");
  bar.scrollLeft = links[here].offsetLeft - bar.clientWidth / 2;
}
addEventListener("scroll", mark, { passive: true });
mark();
