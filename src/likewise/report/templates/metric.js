// The distance between people and its words: the same arithmetic as in metrics/base.py and words.py.
const report = JSON.parse(document.getElementById("data").textContent);
const P = report.p === "inf" ? Infinity : report.p;
const byId = (id) => document.getElementById(id);

// Distance per unit of a column, for a weight.
function perUnit(column, weight) {
  return !column.is_number || P === Infinity ? weight : Math.pow(weight, 1 / P);
}

// Share of the weight between two categories; a missing one is as far from all.
function shareBetween(column, a, b) {
  return column.shares === null || a === null || b === null ? 1 : column.shares[a][b];
}

// What each column adds to the distance between two rows, and the distance. Rows hold numbers and positions among
// the options, null where missing. Undefined (NaN) where a number is missing on one side and the metric refuses that.
function compare(weights, a, b) {
  const parts = new Array(weights.length).fill(0);
  const numeric = [];
  let mismatch = 0;
  for (let i = 0; i < weights.length; i++) {
    const column = report.columns[i];
    if (!column.is_number) {
      parts[i] = a[i] === b[i] ? 0 : weights[i] * shareBetween(column, a[i], b[i]);
      mismatch += parts[i];
    } else if ((a[i] === null) !== (b[i] === null)) {
      parts[i] = weights[i] === 0 ? 0 : column.missing !== null ? column.missing : NaN;
      mismatch += parts[i];
    } else if (a[i] !== null) {
      parts[i] = perUnit(column, weights[i]) * Math.abs(a[i] - b[i]);
      numeric.push(i);
    }
  }
  const largest = numeric.reduce((most, i) => Math.max(most, parts[i]), 0);
  let norm = largest;
  if (P === 1) {
    norm = numeric.reduce((sum, i) => sum + parts[i], 0);
  } else if (largest > 0) {
    // Shares of the norm, so that the parts add up to the distance for every p.
    const powers = numeric.map((i) => (P === Infinity ? +(parts[i] === largest) : Math.pow(parts[i] / largest, P)));
    const sum = powers.reduce((total, power) => total + power, 0);
    if (P !== Infinity) norm = largest * Math.pow(sum, 1 / P);
    numeric.forEach((i, k) => { parts[i] = norm * (powers[k] / sum); });
  }
  return { parts, distance: norm + mismatch };
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

function worth(column, weight) {
  const scale = perUnit(column, weight);
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
