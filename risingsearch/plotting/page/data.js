"use strict";

// What the page holds, read once.

const data = JSON.parse(document.getElementById("data").textContent);
const { arms, told, maximize } = data;
const OPENED = 1, REVIVED = 2, FAILED = 4;
const LEADERS = 5;

const at = (column, i) => column.distinct[column.at[i]];
const find = (id) => document.getElementById(id);
const count = (n, what = "") =>
  n.toLocaleString("en") + (what && ` ${what}${n === 1 ? "" : "s"}`);
const goodness = (score) => (maximize ? score : -score);

function show(value, digits = 6) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return value;
  const rounded = Number(value.toPrecision(digits));
  const tiny = rounded !== 0 && Math.abs(rounded) < 1e-3;
  return tiny ? rounded.toExponential() : String(rounded);
}

function make(tag, facts = {}, ...children) {
  const element = Object.assign(document.createElement(tag), facts);
  element.append(...children);
  return element;
}

// The rows told of every arm, in the order told.
const rowsOf = new Map();
told.arm.forEach((arm, i) => {
  if (!rowsOf.has(arm)) rowsOf.set(arm, []);
  rowsOf.get(arm).push(i);
});
const projectionOf = new Map(data.projections.map((p) => [p[0], p]));
const ranked = [...rowsOf.keys()]
  .filter((arm) => arms.best[arm] !== null)
  .sort((a, b) => goodness(arms.best[b]) - goodness(arms.best[a]));
const first = ranked.indexOf(data.bestArm);
if (first > 0) ranked.unshift(...ranked.splice(first, 1));
const leaders = ranked.slice(0, LEADERS);

// The range of the scores without those far out at the bad end, which would flatten
// all others: beyond Tukey's outer fence.
function scoreRange() {
  const scores = told.score.filter((score) => score !== null).sort((a, b) => a - b);
  if (!scores.length) return [0, 1];
  const quarter = scores[Math.floor(scores.length / 4)];
  const threeQuarters = scores[Math.floor((3 * scores.length) / 4)];
  const reach = 3 * (threeQuarters - quarter);
  const kept = scores.filter(
    (s) => !reach || (maximize ? s >= quarter - reach : s <= threeQuarters + reach),
  );
  return [kept[0], kept[kept.length - 1]];
}
const [low, high] = scoreRange();
const outside = () =>
  told.score.filter((s) => s !== null && (s < low || s > high)).length;

function paramsOf(arm) {
  return data.params
    .map((column) => [column.name, at(column, arm)])
    .filter(([, value]) => value !== null);
}
