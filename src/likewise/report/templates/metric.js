// The distance between people, of columns as `BoundMetric.to_dict` describes them: the arithmetic of
// likewise.kernel.distance; and the words of report/text.py.
const report = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

// What is no number in a column of numbers: a blank, or a special code, with its distance from any number.
function stateOf(column, x) {
  return x === null ? { weight: column.missing } : (column.special || []).find((code) => code.value === x);
}

// What one column adds. Undefined (NaN) where a number is missing on one side and the metric refuses that.
function difference(column, weight, a, b) {
  if (a === b || weight === 0) return 0;
  if (column.kind !== "numeric") {
    const place = (x) => (x === null ? column.categories.length : x);
    return weight * (column.distances ? column.distances[place(a)][place(b)] : 1);
  }
  const states = [stateOf(column, a), stateOf(column, b)].filter((state) => state !== undefined);
  if (!states.length) return weight * Math.abs(a - b);
  return Math.max(...states.map((state) => (state.weight === null ? NaN : state.weight)));
}

// What each column adds to the distance between two rows, and the distance. Rows hold numbers and positions among
// the options, null where missing.
function compare(weights, a, b) {
  const parts = report.columns.map((column, i) => difference(column, weights[i], a[i], b[i]));
  return { parts, distance: parts.reduce((sum, part) => sum + part, 0) };
}

function figure(x) {
  if (x === 0) return "0";
  if (!Number.isFinite(x)) return "∞";
  const rounded = Number(x.toPrecision(3));
  if (Math.abs(rounded) < 1e-6 || Math.abs(rounded) >= 1e12) return rounded.toExponential().replace("e+", "e");
  return rounded.toLocaleString("en-US", { maximumSignificantDigits: 3 });
}

function pointFigure(x) {
  if (!Number.isFinite(x)) return "∞";
  const value = 100 * x;
  if (value > 0 && value < 0.005) return "under 0.01";
  const digits = Math.abs(value) >= 1 ? 1 : 2;
  return Number(value.toFixed(digits)).toLocaleString("en-US", { maximumFractionDigits: digits });
}

function points(x) {
  if (report.range) return figure(x * (report.range[1] - report.range[0]));
  const text = pointFigure(x);
  return text + (text === "1" ? " point" : " points");
}

// What two scores differ by: in total variation over several outcomes, or as a share of a range.
function gapOf(a, b) {
  const sum = a.reduce((total, x, k) => total + Math.abs(x - b[k]), 0);
  return a.length === 1 ? sum : sum / 2;
}

function score(outputs) {
  const x = outputs[report.shown];
  return report.range ? figure(report.range[0] + x * (report.range[1] - report.range[0])) : (100 * x).toFixed(1) + "%";
}

function worth(column, scale) {
  if (scale === 0) return column.weight === 0 ? column.zero : "weight 0";
  if (column.kind !== "numeric") return (column.distances ? "at most " : "any difference = ") + points(scale);
  if (scale < 1e-30) return "only blanks matter";
  if (column.one) return column.one + " = " + points(scale);
  const amount = figure(0.01 / scale * column.factor);
  const size = column.prefix + amount + (amount === "1" ? column.suffix_of_one : column.suffix);
  return report.range ? size + " = " + points(0.01) : "1 point = " + size;
}

// The weights in use: those of the report until a slider moves.
const weights = report.columns.map((column) => column.weight);
const isEdited = () => report.columns.some((column, i) => weights[i] !== column.weight);
const onWeights = [];
