// The distance between people and its words: the same arithmetic as in metrics/base.py and words.py.
const report = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);

// Share of the weight between two categories; a missing one is as far from all.
function shareBetween(column, a, b) {
  return column.shares === null || a === null || b === null ? 1 : column.shares[a][b];
}

// What each column adds to the distance between two rows, and the distance. Rows hold numbers and positions among
// the options, null where missing. Undefined (NaN) where a number is missing on one side and the metric refuses that.
function compare(weights, a, b) {
  const parts = report.columns.map((column, i) => {
    if (!column.is_number) return a[i] === b[i] ? 0 : weights[i] * shareBetween(column, a[i], b[i]);
    if (a[i] !== null && b[i] !== null) return weights[i] * Math.abs(a[i] - b[i]);
    if (a[i] === b[i] || weights[i] === 0) return 0;
    return column.missing !== null ? column.missing : NaN;
  });
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
  if (!column.is_number) return (column.shares === null ? "any difference = " : "at most ") + points(scale);
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
