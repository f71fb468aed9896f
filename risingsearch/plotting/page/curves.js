// What they bought: the learning curves, and the ends that were expected.

const CURVES = { left: 62, right: 16, top: 14, bottom: 44 };
const lines = { projections: true };

// Only of the score an end is expected.
const projecting = () => lines.projections && state.metric === score;

// Projections widen the range of the scores, but not beyond a quarter of it.
function curveRange() {
  const [low, high] = state.metric.range;
  const reach = (high - low) / 4;
  const ends = data.projections
    .flatMap(([, , level, , end]) => [level, end])
    .filter((end) => projecting() && end >= low - reach && end <= high + reach);
  const from = ends.reduce((a, b) => Math.min(a, b), low);
  const to = ends.reduce((a, b) => Math.max(a, b), high);
  const margin = 0.06 * (to - from) || 0.05 * Math.abs(to) || 0.5;
  return [from - margin, to + margin];
}

function paintCurves(chart, context, width, height) {
  const { colours } = chart;
  const { left, right, top, bottom } = CURVES;
  const [from, to] = curveRange();
  const longest = recorded.epoch.reduce((a, b) => Math.max(a, b), 1);
  const last = data.projections.reduce((a, p) => Math.max(a, p[3]), longest);
  const end = projecting() ? last : longest;
  const wide = (width - left - right) / (end + 0.5);
  const x = (epoch) => left + epoch * wide;
  const tall = (height - top - bottom) / (to - from);
  const y = (score) => height - bottom - (score - from) * tall;
  chart.order = () => ranked;
  chart.emphasise = (front, arm) => {
    front.save();
    clip(front);
    curve(chart, front, arm, 3);
    front.restore();
    project(front, arm);
  };
  const clip = (on) => {
    on.beginPath();
    on.rect(left, top, width - left - right, height - top - bottom);
    on.clip();
  };
  const project = (on, arm) => {
    const projection = projectionOf.get(arm);
    if (!projection || !projecting()) return;
    const [, since, level, until, expected] = projection;
    on.save();
    clip(on);
    on.setLineDash([4, 3]);
    on.lineWidth = Math.min(on.lineWidth, 1.3);
    on.beginPath();
    on.moveTo(x(since), y(level));
    on.lineTo(x(until), y(expected));
    on.stroke();
    on.beginPath();
    on.arc(x(until), y(expected), 2.5, 0, 7);
    on.fill();
    on.restore();
  };
  for (let i = 0; i < chart.x.length; i++) {
    const value = state.metric.values[i];
    const inside = value !== null && value >= from && value <= to;
    chart.x[i] = inside ? x(recorded.epoch[i]) : NaN;
    chart.y[i] = y(value);
  }
  paintCurveAxes(context, colours, { x, y, from, to, end, width, height });
  context.save();
  clip(context);
  const style = (colour, thick) => {
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = thick;
  };
  const chosen = state.selected;
  const crowded = (few, least, most) =>
    Math.max(least, Math.min(most, few / rowsOf.size));
  for (const arm of rowsOf.keys()) {
    if (leaders.includes(arm) || arm === chosen) continue;
    style(colours.others, 0.8);
    context.globalAlpha = crowded(150, 0.3, 0.9);
    curve(chart, context, arm, 1.2);
    context.globalAlpha = crowded(30, 0.12, 0.6);
    project(context, arm);
  }
  context.globalAlpha = 1;
  for (const arm of leaders.slice().reverse()) {
    style(colours.leads[leaders.indexOf(arm)], arm === data.bestArm ? 2.6 : 1.5);
    curve(chart, context, arm, 2.2);
    project(context, arm);
  }
  if (rowsOf.has(chosen)) {
    style(colours.leads[leaders.indexOf(chosen)] ?? colours.ink, 3);
    curve(chart, context, chosen, 3);
    project(context, chosen);
  }
  context.restore();
  paintLost(context, colours, x, maximize ? height - bottom - 7 : top + 7);
}

function curve(chart, context, arm, dot) {
  context.beginPath();
  let down = false;
  const rows = rowsOf.get(arm);
  for (const i of rows) {
    const inside = chart.x[i] === chart.x[i];
    if (!inside) {
      down = false;
      continue;
    }
    if (down) context.lineTo(chart.x[i], chart.y[i]);
    else context.moveTo(chart.x[i], chart.y[i]);
    down = true;
  }
  context.stroke();
  for (const i of rows) {
    context.fillRect(chart.x[i] - dot, chart.y[i] - dot, 2 * dot, 2 * dot);
  }
}

function paintLost(context, colours, x, y) {
  context.strokeStyle = colours.bad;
  context.lineWidth = 1.5;
  context.beginPath();
  recorded.score.forEach((score, i) => {
    if (score === null) cross(context, x(recorded.epoch[i]), y, 3.5);
  });
  context.stroke();
}

function paintCurveAxes(context, colours, { x, y, from, to, end, width, height }) {
  const { left, right, bottom } = CURVES;
  context.textAlign = "right";
  for (const value of ticks(from, to, height / 70)) {
    context.fillStyle = colours.line;
    context.fillRect(left, Math.round(y(value)), width - left - right, 1);
    context.fillStyle = colours.faint;
    context.fillText(show(value, 5), left - 6, y(value) + 4);
  }
  context.textAlign = "center";
  for (const value of ticks(0, end, width / 90, true)) {
    context.fillRect(Math.round(x(value)), height - bottom, 1, 4);
    context.fillText(count(value), x(value), height - bottom + 16);
  }
  context.fillText("epochs of the arm", (left + width - right) / 2, height - 8);
  context.save();
  context.translate(14, (height - bottom) / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(state.metric.name, 0, 0);
  context.restore();
}

function curvesLegend() {
  const box = find("curves-legend");
  leaders.forEach((arm, i) => {
    const swatch = make("b", { ariaHidden: "true" }, "━");
    swatch.style.color = `var(--lead-${i})`;
    const best = `${show(arms.best[arm])} at epoch ${arms.bestEpoch[arm]}`;
    const text = `arm ${arm}${openedByPrior.has(arm) ? " ◆" : ""}: ${best}`;
    const button = make("button", { type: "button", value: arm }, swatch, " ", text);
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => select(arm));
    box.append(button);
  });
  const others = ranked.length - leaders.length;
  if (others > 0) box.append(make("span", {}, `${count(others, "other")} in grey`));
  if (data.projections.length) {
    const input = make("input", { id: "projected", type: "checkbox", checked: true });
    input.addEventListener("change", () => {
      lines.projections = input.checked;
      charts[1].draw();
    });
    box.append(make("label", {}, input, "╌ end expected at the arm's last choice"));
  }
}

function curvesNote() {
  const { name, values } = state.metric;
  const out = outside(state.metric);
  const lost = recorded.score.filter((value) => value === null).length;
  const lacking = values.filter((value, i) => value === null && recorded.score[i] !== null);
  const notes = [
    `${name}: ${count(recorded.arm.length, "epoch")} over ${count(rowsOf.size, "arm")}`,
  ];
  if (out) notes.push(`${count(out, "value")} far out and not drawn`);
  if (lost) notes.push(`${count(lost)} that failed (×)`);
  if (lacking.length) notes.push(`${count(lacking.length)} without this metric`);
  if (state.metric !== score) notes.push(`colours and order are those of ${score.name}`);
  const more = data.othersLeftOut;
  if (more) notes.push(`${count(more, "metric")} left out of this page for their size`);
  find("curves-note").textContent = `${notes.join(", ")}.`;
}

function chooseMetric() {
  const choice = find("metric");
  choice.append(...metrics.map(({ name }, k) => make("option", { value: k }, name)));
  choice.addEventListener("change", () => {
    state.metric = metrics[choice.value];
    if (data.projections.length) find("projected").disabled = state.metric !== score;
    curvesNote();
    charts[1].draw();
  });
  find("metrics").hidden = metrics.length === 1;
  curvesNote();
}
