// All arms at a glance: a line for every arm, through its parameters to its score.

const PARALLEL = { side: 78, top: 34, bottom: 24, apart: 96, most: 12 };
const MOST_CATEGORIES = 15; // labels on an axis; of more, only the ends
const FEW_NUMBERS = 8; // that are labels themselves
const MANY = 120; // arms; of more, every line is fainter
const NEAR = 14; // pixels from an axis within which dragging selects on it

// A scale from 0, at the bottom, to 1. What has no value is below.
function axisOf(column, scale) {
  const opened = ranked.map((arm) => at(column, arm)).filter((value) => value !== null);
  if (scale === "categories") {
    const distinct = [...new Set(opened)].sort((a, b) => compare(b, a));
    const place = new Map(distinct.map((value, k) => [value, (k + 0.5) / distinct.length]));
    const few = distinct.length <= MOST_CATEGORIES;
    const labels = few ? distinct : [distinct[0], distinct[distinct.length - 1]];
    return { share: (value) => place.get(value), labels, apart: 1 / distinct.length };
  }
  const onScale = scale === "log" ? Math.log10 : (value) => value;
  const values = opened.map(onScale);
  const from = values.reduce((a, b) => Math.min(a, b), Infinity);
  const to = values.reduce((a, b) => Math.max(a, b), -Infinity);
  const share = (value) => (to > from ? (onScale(value) - from) / (to - from) : 0.5);
  const distinct = [...new Set(opened)];
  const few = distinct.length <= FEW_NUMBERS;
  const labels = few ? distinct : scale === "log" ? decades(from, to) : ticks(from, to, 5);
  return { share, labels };
}

function decades(from, to) {
  const whole = ticks(from, to, 6, true).map((power) => 10 ** power);
  return whole.length > 1 ? whole : [10 ** from, 10 ** to];
}

// The axes from left to right: what matters most is next to the score.
const axes = (() => {
  const important = (column) => data.mattering.indexOf(column.name);
  const shown = data.params
    .map((column, k) => ({ column, ...axisOf(column, data.scales[k]), name: column.name }))
    .filter(({ column }) => new Set(ranked.map((arm) => at(column, arm))).size > 1)
    .sort((a, b) => (important(a.column) + 1 || 999) - (important(b.column) + 1 || 999));
  const drawn = shown.slice(0, PARALLEL.most).reverse();
  for (const axis of drawn) axis.of = (arm) => at(axis.column, arm);
  const bests = ranked.map((arm) => arms.best[arm]);
  const [from, to] = rangeOf(bests, { low: maximize, high: !maximize });
  const onScore = {
    name: `best ${score.name}`,
    of: (arm) => arms.best[arm],
    share: (best) => (to > from ? Math.min(1, Math.max(0, (best - from) / (to - from))) : 0.5),
    labels: to > from ? ticks(from, to, 5) : [from],
  };
  return Object.assign([...drawn, onScore], { leftOut: shown.length - drawn.length });
})();
const brushes = new Map(); // by axis, from and to, as shares
const longestTrained = arms.epochs.reduce((a, b) => Math.max(a, b), 1);

function isKept(arm) {
  return [...brushes].every(([axis, [from, to]]) => {
    const value = axis.of(arm);
    const share = value === null ? -1 : axis.share(value);
    return share >= from && share <= to;
  });
}

class ParallelChart extends Chart {
  constructor() {
    super("parallel", () => 380, paintParallel, "Parameters and best score of every arm.");
    this.order = () => ranked.filter(isKept);
    this.canvas.addEventListener("pointerdown", (event) => this.drag(event));
  }

  // As wide as its axes need; the box scrolls.
  room(width) {
    return Math.max(width, 2 * PARALLEL.side + PARALLEL.apart * (axes.length - 1));
  }

  // The arm whose line passes nearest to the pointer, by the epoch of its best score.
  nearest(event) {
    if (this.dragging) return null;
    let best = null, least = 30;
    for (const [arm, points] of this.lines) {
      const k = Math.min(points.length - 1, points.findIndex(([x]) => x >= event.offsetX));
      const [x, y] = points[Math.max(0, k)], [x0, y0] = points[Math.max(0, k - 1)];
      const along = x > x0 ? Math.min(1, Math.max(0, (event.offsetX - x0) / (x - x0))) : 1;
      const distance = Math.abs(y0 + along * (y - y0) - event.offsetY);
      if (distance < least) [best, least] = [arm, distance];
    }
    return best === null ? null : bestRow(best);
  }

  // Dragging along an axis keeps the arms that pass there; a click there keeps all.
  drag(event) {
    const axis = axes.find((one) => Math.abs(one.x - event.offsetX) < NEAR);
    if (!axis || event.pointerType === "touch") return;
    const share = ({ offsetY }) => (this.bottom - offsetY) / (this.bottom - PARALLEL.top);
    const from = share(event);
    this.canvas.setPointerCapture(event.pointerId);
    const move = (moved) => {
      const ends = [from, share(moved)].sort((a, b) => a - b);
      this.dragging = ends[1] - ends[0] > 0.02;
      if (this.dragging) brushes.set(axis, ends);
      else brushes.delete(axis);
      brushed();
    };
    const end = () => {
      this.canvas.removeEventListener("pointermove", move);
      if (!this.dragging && brushes.delete(axis)) brushed();
      setTimeout(() => { this.dragging = false; }); // after the click that this makes
    };
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerup", end, { once: true });
  }
}

const bestRow = (arm) => rowsOf.get(arm).find((i) => recorded.epoch[i] === arms.bestEpoch[arm]);

function brushed() {
  const kept = ranked.filter(isKept).length;
  find("brushed").hidden = !brushes.size;
  find("brushed").textContent = `${count(kept)} of ${count(ranked.length, "arm")}: show all`;
  charts.slice(2).forEach((chart) => chart.draw());
  arrange();
}

function paintParallel(chart, context, width, height) {
  const { colours } = chart;
  const { side, top, bottom } = PARALLEL;
  const apart = (width - 2 * side) / Math.max(1, axes.length - 1);
  chart.bottom = height - bottom;
  const up = (share) => chart.bottom - share * (chart.bottom - top);
  axes.forEach((axis, k) => {
    axis.x = side + apart * k;
  });
  chart.lines = new Map(chart.order().map((arm) => [arm, lineOf(arm, up, height)]));
  for (const [arm, points] of chart.lines) {
    const i = bestRow(arm);
    [chart.x[i], chart.y[i]] = points[points.length - 1];
  }
  const path = (on, points) => {
    on.beginPath();
    points.forEach(([x, y], k) => (k ? on.lineTo(x, y) : on.moveTo(x, y)));
    on.stroke();
  };
  chart.emphasise = (front, arm) => {
    front.lineWidth = 3;
    path(front, chart.lines.get(arm));
  };
  context.lineWidth = 1.2;
  context.globalAlpha = 0.08;
  context.strokeStyle = colours.others;
  for (const arm of ranked) if (!chart.lines.has(arm)) path(context, lineOf(arm, up, height));
  const crowded = Math.max(0.4, Math.min(1, MANY / chart.lines.size));
  for (const arm of [...chart.lines.keys()].reverse()) { // the best on top
    const share = axes[axes.length - 1].share(arms.best[arm]);
    context.strokeStyle = ramp(maximize ? share : 1 - share, colours.dark);
    context.globalAlpha = crowded * (0.45 + 0.55 * (arms.epochs[arm] / longestTrained));
    path(context, chart.lines.get(arm));
  }
  context.globalAlpha = 1;
  for (const [arm, colour] of [[data.bestArm, colours.leads[0]], [state.selected, colours.ink]]) {
    if (!chart.lines.has(arm)) continue;
    context.strokeStyle = colour;
    context.lineWidth = 2.6;
    path(context, chart.lines.get(arm));
  }
  axes.forEach((axis) => paintAxis(context, colours, axis, up, apart));
}

function lineOf(arm, up, height) {
  return axes.map((axis) => {
    const value = axis.of(arm);
    return [axis.x, value === null ? height - 6 : up(axis.share(value))];
  });
}

function paintAxis(context, colours, axis, up, apart) {
  const { side, top } = PARALLEL;
  context.fillStyle = colours.faint;
  context.fillRect(axis.x - 0.5, top, 1, up(0) - top);
  context.textAlign = axis === axes[axes.length - 1] ? "left" : "right";
  const away = context.textAlign === "left" ? 6 : -6;
  for (const value of axis.labels) {
    const y = up(axis.share(value));
    context.fillRect(axis.x - 3, y - 0.5, 6, 1);
    label(context, colours, cutTo(context, show(value, 4), side - 10), axis.x + away, y + 4);
  }
  context.textAlign = "center";
  context.font = "bold 12px system-ui, sans-serif";
  label(context, colours, cutTo(context, axis.name, Math.min(2 * side, apart) - 8), axis.x, 16);
  context.font = "12px system-ui, sans-serif";
  if (!brushes.has(axis)) return;
  const [from, to] = brushes.get(axis);
  context.fillStyle = colours.accent;
  context.globalAlpha = 0.35;
  context.fillRect(axis.x - 6, up(to), 12, up(from) - up(to));
  context.globalAlpha = 1;
}

// A text that stays readable over lines.
function label(context, colours, text, x, y) {
  context.lineWidth = 3;
  context.lineJoin = "round";
  context.strokeStyle = colours.paper;
  context.strokeText(text, x, y);
  context.fillStyle = colours.ink;
  context.fillText(text, x, y);
}

function cutTo(context, text, width) {
  let cut = String(text);
  for (let n = cut.length - 1; n > 0 && context.measureText(cut).width > width; n--) {
    cut = `${String(text).slice(0, n)}…`;
  }
  return cut;
}

function parallel() {
  const notes = [
    "A line is an arm, coloured by its best score: the fainter, the fewer epochs it has trained, so the less its score says.",
    "What matters most is next to the score.",
    "Drag along an axis to keep the arms that pass there, here and in the table; click on it to keep all.",
  ];
  if (ranked.some((arm) => axes.some((axis) => axis.of(arm) === null))) {
    notes.push("Below an axis is an arm that does not have the parameter.");
  }
  if (axes.leftOut) notes.push(`${count(axes.leftOut, "parameter")} left out.`);
  find("parallel-note").textContent = notes.join(" ");
  find("parallel-section").hidden = false;
  find("brushed").addEventListener("click", () => {
    brushes.clear();
    brushed();
  });
  return new ParallelChart();
}
