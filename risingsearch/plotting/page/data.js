// What the page holds, read once.

const { arms, recorded, maximize } = data;
const OPENED = 1, REVIVED = 2, FAILED = 4, BY_PRIOR = 8; // of a recorded row
const LEADERS = 5;

const at = (column, i) => column.distinct[column.at[i]];
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

recorded.marks = Array.from(recorded.marks, (mark) => parseInt(mark, 16));

// The recorded rows of every arm, in the order recorded.
const rowsOf = new Map();
recorded.arm.forEach((arm, i) => {
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

const openedByPrior = new Set(recorded.arm.filter((_, i) => recorded.marks[i] & BY_PRIOR));

// The range of values without those far out, which would flatten all others: beyond
// Tukey's outer fence. Of scores, only those at the bad end are: `sides` says which.
function rangeOf(given, sides) {
  const values = given.filter((value) => value !== null).sort((a, b) => a - b);
  if (!values.length) return [0, 1];
  const quarter = values[Math.floor(values.length / 4)];
  const threeQuarters = values[Math.floor((3 * values.length) / 4)];
  const reach = 3 * (threeQuarters - quarter) || Infinity;
  const least = sides.low ? quarter - reach : -Infinity;
  const most = sides.high ? threeQuarters + reach : Infinity;
  const kept = values.filter((value) => value >= least && value <= most);
  return [kept[0], kept[kept.length - 1]];
}
const score = {
  name: data.metric,
  values: recorded.score,
  range: rangeOf(recorded.score, { low: maximize, high: !maximize }),
};
const [low, high] = score.range;
const metrics = [
  score,
  ...data.others.map(({ name, values }) => ({
    name, values, range: rangeOf(values, { low: true, high: true }),
  })),
];
const outside = ({ values, range: [from, to] }) =>
  values.filter((value) => value !== null && (value < from || value > to)).length;

function paramsOf(arm) {
  return data.params
    .map((column) => [column.name, at(column, arm)])
    .filter(([, value]) => value !== null);
}
