// What the weights do: figures, models beside it, the frontier and the shapes.
import { change, quietly, state } from "./api.js";
import { button, byId, el, figure, percent, put, soft, svg, whole, withError } from "./dom.js";

const number = (id, caption) => el("div", { class: "number" }, el("span", { class: "big", id }, "…"), el("span", { class: "caption", id: id + "-caption" }, caption));

export function buildFigures() {
  return el("div", { class: "figures", id: "figures" },
    el("h2", { class: "small-title" }, "What they do"),
    el("div", { class: "numbers live", "aria-live": "polite" },
      number("f-loss", ""), number("f-second", ""), number("f-distance", "mean distance of two people"), number("f-bound", "of pairs are bound: distance below 1"),
      number("f-today", "")),
    el("div", { id: "beside" }), el("p", { class: "small live-note" }), el("div", { id: "frontier" }));
}

export function showFigures() {
  const result = state.result;
  byId("figures").classList.toggle("stale", !isFresh());
  if (!result) return;
  const figures = result.figures, own = figures && figures.rows[0];
  const digits = figures && figures.titles[0] === "Brier score" ? 4 : null;
  put(byId("f-loss"), own ? withError(own.loss, own.loss_se, digits) : "–");
  put(byId("f-loss-caption"), figures ? figures.titles[0] + ", lower is better" : "too few people to hold any out");
  put(byId("f-second"), own ? withError(own.second, own.second_se, 3) : "–");
  put(byId("f-second-caption"), figures ? figures.titles[1] + ", higher is better" : "");
  put(byId("f-distance"), figure(result.mean_distance));
  put(byId("f-bound"), percent(result.bound_share, result.bound_share > 0.995 && result.bound_share < 1 ? 1 : 0));
  const today = result.today;
  put(byId("f-today"), today ? whole(today.violations) : "…");
  put(byId("f-today-caption"), today ? "of " + whole(today.n_pairs) + " pairs exceed their distance under " + today.title : "measuring models without a guarantee");
  put(byId("running"), [own && figures.titles[0] + " " + withError(own.loss, null, digits), own && own.second !== null && figures.titles[1] + " " + own.second.toFixed(3), "distance " + figure(result.mean_distance, 2), percent(result.bound_share) + " bound"].filter(Boolean).map((text) => el("span", {}, text)));
  showBeside(figures, digits);
  showFrontier(own);
}

export const isFresh = () => {
  const last = state.record && state.record.find((event) => ["weights", "start", "lock", "unlock", "unit", "undo", "redo"].includes(event.kind));
  return Boolean(state.result) && state.result.event === (last ? last.n : 0);
};

function showBeside(figures, digits) {
  if (!figures) { put(byId("beside")); return; }
  const rows = figures.rows;
  const low = Math.min(...rows.map((row) => row.loss - (row.loss_se || 0))), high = Math.max(...rows.map((row) => row.loss + (row.loss_se || 0)));
  const place = (value) => (4 + 92 * (value - low) / (high - low || 1)).toFixed(1) + "%";
  const dots = (row, own) => svg("svg", { class: "dots", width: "100%", height: 18, "aria-hidden": "true" },
    svg("line", { class: "track", x1: "0%", x2: "100%", y1: 9, y2: 9 }),
    svg("line", { class: "reach", x1: place(row.loss - (row.loss_se || 0)), x2: place(row.loss + (row.loss_se || 0)), y1: 9, y2: 9 }),
    svg("circle", { class: own ? "own" : row.guarantee ? "kept" : "free", cx: place(row.loss), cy: 9, r: 5 }));
  const people = figures.n === figures.of ? "each of " + whole(figures.n) + " people held out once" : whole(figures.n) + " people held out so far, of " + whole(figures.of);
  put(byId("beside"), el("div", { class: "scroll" }, el("table", { class: "costs" },
    el("caption", { class: "small" }, "On " + people + (figures.pending ? "; models without a guarantee are being measured" : "") + ". " + figures.caveat),
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Model"), el("th", { scope: "col", class: "plot-cell" }, el("span", { class: "hidden" }, "Picture")), el("th", { scope: "col", class: "num" }, figures.titles[0]), el("th", { scope: "col", class: "num" }, figures.titles[1]))),
    el("tbody", {}, rows.map((row, k) => el("tr", { class: k === 0 ? "own" : "" },
      el("th", { scope: "row" }, row.title), el("td", { class: "plot-cell" }, dots(row, k === 0)),
      el("td", { class: "num", "data-label": figures.titles[0] + " " }, withError(row.loss, row.loss_se, digits)),
      el("td", { class: "num", "data-label": figures.titles[1] + " " }, withError(row.second, row.second_se, 3))))))));
}

// Three to six round numbers that hold two values.
function roundTicks(low, high) {
  const span = high - low || Math.abs(high) || 1, power = Math.pow(10, Math.floor(Math.log10(span / 3)));
  const step = [1, 2, 5, 10].map((k) => k * power).find((size) => span / size <= 4);
  const first = Math.floor(low / step + 1e-9), last = Math.max(first + 1, Math.ceil(high / step - 1e-9));
  return Array.from({ length: last - first + 1 }, (_, k) => (first + k) * step);
}

// -- the frontier: loss by mean distance -------------------------------------------------------------------------------

function showFrontier(own) {
  const frontier = state.frontier, box = byId("frontier");
  if (!frontier) {
    put(box, el("h3", {}, "The frontier"), el("p", { class: "small" }, "Design metrics to see the least loss at each mean distance, and where you are beside it."));
    return;
  }
  const width = 460, height = 230, left = 58, right = 16, top = 14, bottom = 44;
  const here = own && state.result.mean_distance > 0 ? { x: state.result.mean_distance, y: own.loss } : null;
  const xs = frontier.points.map((point) => point.mean_distance).concat(here ? [here.x] : []);
  const ys = frontier.points.flatMap((point) => [point.loss - point.loss_se, point.loss + point.loss_se]).concat(here ? [here.y] : []);
  const [x0, x1] = [Math.log(Math.min(...xs)), Math.log(Math.max(...xs))], ticks = roundTicks(Math.min(...ys), Math.max(...ys));
  const [y0, y1] = [ticks[0], ticks[ticks.length - 1]];
  const x = (value) => left + (Math.log(value) - x0) / (x1 - x0 || 1) * (width - left - right);
  const y = (value) => top + (y1 - value) / (y1 - y0 || 1) * (height - top - bottom);
  const ends = [Math.exp(x0), Math.exp((x0 + x1) / 2), Math.exp(x1)];
  const line = frontier.points.map((point, k) => (k ? "L" : "M") + x(point.mean_distance).toFixed(1) + " " + y(point.loss).toFixed(1)).join("");
  const words = frontier.points.map((point) => "mean distance " + figure(point.mean_distance) + ": " + figure(point.loss, 4)).join("; ");
  const chart = svg("svg", { class: "chart", viewBox: "0 0 " + width + " " + height, role: "img", "aria-label": frontier.loss_name + " by mean distance. " + words + (here ? ". You are at " + figure(here.x) + ": " + figure(here.y, 4) : "") },
    ticks.map((tick) => [svg("line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) }), svg("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, figure(tick))]),
    ends.map((end, k) => svg("text", { x: x(end), y: height - bottom + 18, "text-anchor": ["start", "middle", "end"][k] }, figure(end, 2))),
    svg("text", { x: width - right, y: height - 6, "text-anchor": "end" }, "mean distance: strict to loose"),
    svg("path", { class: "line after", d: line }),
    frontier.points.map((point) => [svg("line", { class: "error", x1: x(point.mean_distance), x2: x(point.mean_distance), y1: y(point.loss + point.loss_se), y2: y(point.loss - point.loss_se) }), svg("circle", { class: point.best ? "point best" : "point", cx: x(point.mean_distance), cy: y(point.loss), r: point.best ? 5.5 : 4 })]),
    here ? [svg("path", { class: "here", d: "M" + x(here.x) + " " + (y(here.y) - 8) + "l8 8l-8 8l-8 -8z" }),
      svg("text", { class: "here-text", x: Math.min(Math.max(x(here.x), left + 44), width - 60), y: y(here.y) > height - bottom - 26 ? y(here.y) - 13 : y(here.y) + 22, "text-anchor": "middle" }, "you are here")] : null);
  put(box, el("h3", {}, "The frontier: " + frontier.loss_name + " at each mean distance"),
    frontier.stale ? el("p", { class: "small warning-text" }, "Designed with " + (frontier.locked.length ? frontier.locked.join(", ") + " locked" : "nothing locked") + ", unlike now. Design again to redraw it.") : null,
    chart,
    el("div", { class: "chips", role: "group", "aria-label": "Take a designed metric" }, el("span", { class: "small" }, "Take:"), frontier.points.map((point, k) => button(figure(point.mean_distance, 2), () => quietly(change("start", { from: "point", point: k })), { class: point.best ? "chip best" : "chip", title: "mean distance " + figure(point.mean_distance) + ", " + frontier.loss_name + " " + figure(point.loss, 4), "aria-label": "Take the metric with mean distance " + figure(point.mean_distance) + (point.best ? ", the strictest that keeps 95% of the best skill" : "") }))));
}

// -- the shapes of the card --------------------------------------------------------------------------------------------

export function showShapes(box) {
  const result = state.result;
  if (!result) { put(box, el("p", { class: "muted" }, "Fitting…")); return; }
  if (!result.shapes) {
    put(box, el("h2", {}, "The model"), el("p", { class: "muted" }, "No column may matter yet, so everybody gets the same score. Start from a designed metric, or move a slider."));
    return;
  }
  const shapes = result.shapes;
  const rises = state.table.task === "regression" ? "raises the prediction" : "makes “" + state.table.outcome + "” more likely";
  put(box, el("h2", {}, "The model"),
    el("p", { class: "lead-small" }, "Each column adds points: up " + rises + ". The shaded fan is what the weights allow. Where a line is ", el("span", { class: "held-word" }, "orange"), ", a weight holds the model back."),
    el("div", { class: "shape-grid" }, shapes.first.map((shape) => panel(shape, shapes))),
    shapes.others.length ? el("details", {}, el("summary", {}, shapes.others.length + " more"), el("div", { class: "shape-grid" }, shapes.others.map((shape) => panel(shape, shapes)))) : null,
    el("p", { class: "small" }, result.guarantee));
}

function panel(shape, shapes) {
  const clip = "clip-" + shape.id;
  const drawn = shape.fan
    ? [svg("path", { class: "fan", d: shape.fan }), svg("line", { class: "zero", x1: 0, x2: 240, y1: shapes.zero, y2: shapes.zero }), svg("path", { class: "curve", d: shape.line }), shape.held ? svg("path", { class: "held", d: shape.held }) : null]
    : [svg("rect", { class: "fan", y: shape.band[0], width: 240, height: Math.max(0, shape.band[1] - shape.band[0]) }), svg("line", { class: "zero", x1: 0, x2: 240, y1: shapes.zero, y2: shapes.zero }),
      shape.stems.map(([x, y, binds]) => svg("g", { class: binds ? "bound" : "free" }, svg("line", { x1: x, x2: x, y1: shapes.zero, y2: y }), svg("circle", { cx: x, cy: y, r: 4 })))];
  return el("figure", { class: "shape" },
    el("figcaption", { class: "data" }, soft(shape.name)),
    svg("svg", { viewBox: "-40 -6 286 " + (shape.fan ? 128 : 112), role: "img", "aria-label": "Points of " + shape.name },
      svg("defs", {}, svg("clipPath", { id: clip }, svg("rect", { width: 240, height: 100 }))),
      shapes.ticks.map(([y, label]) => [svg("line", { class: "grid", x1: 0, x2: 240, y1: y, y2: y }), svg("text", { x: -6, y: y + 4, "text-anchor": "end" }, label)]),
      svg("g", { "clip-path": "url(#" + clip + ")" }, drawn),
      (shape.states || []).map(([name, y, said]) => [svg("path", { class: "absent", d: "M240 " + (y - 4) + "l4 4l-4 4l-4 -4z" }), svg("text", { class: "missing", x: 232, y: Math.min(Math.max(y - 6, 10), 96), "text-anchor": "end" }, name + ": " + said)]),
      shape.fan ? [svg("text", { x: 0, y: 116 }, shape.ends[0]), svg("text", { x: 240, y: 116, "text-anchor": "end" }, shape.ends[1])] : null),
    shape.levels.length ? el("p", { class: "small levels data" }, shape.levels.join(" · ")) : null);
}
