// Elements and words. Text from the table or from people is only ever set as text.
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "class") node.setAttribute("class", value);
    else if (key in node && typeof value === "boolean") node[key] = value;
    else node.setAttribute(key, String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false).map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

export const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
export const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
// A name that may break after an underscore.
export const soft = (name) => name.split(/(?<=_)/).flatMap((part) => [part, el("wbr")]).slice(0, -1);
export const byId = (id) => document.getElementById(id);
export const button = (text, onclick, more = {}) => el("button", { type: "button", onclick, ...more }, text);

// Replace the content of an element unless it is the same already, so that focus and selection survive.
export function put(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false).map((child) => (child instanceof Node ? child : document.createTextNode(String(child)))));
  return node;
}

export const whole = (n) => (n === null || n === undefined ? "–" : Number(n).toLocaleString("en-US"));

export function figure(x, digits = 3) {
  if (x === null || x === undefined) return "–";
  if (x === 0) return "0";
  const rounded = Number(x.toPrecision(digits));
  if (Math.abs(rounded) < 1e-6 || Math.abs(rounded) >= 1e12) return rounded.toExponential().replace("e+", "e");
  return rounded.toLocaleString("en-US", { maximumSignificantDigits: digits });
}

// A number for a field: digits without separators.
export const plain = (x, digits = 4) => (x >= 1e9 ? Number(x.toPrecision(3)).toExponential() : String(Number(x.toPrecision(digits))));

export function points(share) {
  const value = 100 * share;
  if (share > NEGLIGIBLE && value < 0.005) return "under 0.01 points";
  const text = Number(value.toFixed(Math.abs(value) >= 1 ? 1 : 2)).toLocaleString("en-US");
  return text + (text === "1" ? " point" : " points");
}

export const percent = (share, digits = 0) => (share === null || share === undefined ? "–" : (100 * share).toFixed(digits) + "%");

export function withError(value, error, digits) {
  if (value === null || value === undefined) return "–";
  const text = digits === null ? figure(value, 4) : value.toFixed(digits);
  if (error === null || error === undefined) return text;
  return text + " ± " + (digits === null ? figure(error, 2) : error.toFixed(digits));
}

// Below this weight no number makes a difference: only whether the number is known counts.
export const NEGLIGIBLE = 1e-30;

// What a weight is worth, in the words of metric files.
export function worth(column, weight) {
  if (!weight) return "not used"; // only a lock says that a column must not matter
  if (weight < NEGLIGIBLE) return "only whether it is known";
  if (column.kind !== "numeric") return "any difference = " + points(weight);
  if (column.one) return column.one + " = " + points(weight);
  return "1 point = " + column.prefix + figure(0.01 / weight * column.factor) + column.suffix;
}

export function score(share, table) {
  if (!table.range) return percent(share, 1);
  return figure(table.range[0] + share * (table.range[1] - table.range[0]), 4);
}
