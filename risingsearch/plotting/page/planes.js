// Scores against parameters: every dot is an arm with its best score.

const PLANE = { left: 56, right: 14, top: 14, bottom: 40, height: 240 };
const DOT = 3.2;
const MOST_BINS = 40;
const SPREAD = 0.6; // of a category's room, over which its arms are drawn
const onScore = axes[axes.length - 1];
const onParams = axes.slice(0, -1).reverse(); // what matters most is first

const trainedShare = (arm) => Math.log1p(arms.epochs[arm]) / Math.log1p(longestTrained);
const scoreShare = (arm) => {
  const share = onScore.share(arms.best[arm]);
  return maximize ? share : 1 - share;
};

// Where an arm stands on an axis, from 0 to 1: equal categories beside each other.
function placeOn(axis, arm) {
  const value = axis.of(arm);
  if (value === null) return null;
  const beside = ((arm * 0.618) % 1) - 0.5;
  return axis.share(value) + (axis.apart ? beside * SPREAD * axis.apart : 0);
}

class PlaneChart extends Chart {
  // `across` and `up` are the axes, `shade` is the share of an arm's colour.
  constructor(id, facts, label) {
    super(id, () => PLANE.height, paintPlane, label);
    Object.assign(this, facts);
    this.emphasise = () => {};
  }

  placeOf(arm) {
    const x = placeOn(this.across, arm), y = placeOn(this.up, arm);
    return x === null || y === null ? null : [x, y];
  }
}

function paintPlane(chart, context, width, height) {
  const { left, right, top, bottom } = PLANE;
  const { colours } = chart;
  const x = (share) => left + share * (width - left - right);
  const y = (share) => height - bottom - share * (height - top - bottom);
  paintPlaneAxes(chart, context, x, y, width, height);
  const drawn = ranked.filter((arm) => isKept(arm) && chart.placeOf(arm));
  chart.order = () => drawn;
  const dot = (arm, colour, wider = 0) => {
    const [across, up] = chart.placeOf(arm).map((share) => Math.min(1, Math.max(0, share)));
    const i = bestRow(arm);
    chart.x[i] = x(across);
    chart.y[i] = y(up);
    context.fillStyle = colour;
    context.beginPath();
    if (chart.block) {
      const wide = x(chart.block[0]) - x(0), tall = y(0) - y(chart.block[1]);
      context.rect(chart.x[i] - wide / 2 + 0.5, chart.y[i] - tall / 2, wide - 1, Math.max(0.5, tall - (tall > 4)));
    } else {
      context.arc(chart.x[i], chart.y[i], DOT + wider, 0, 7);
    }
    context.fill();
  };
  const crowded = chart.block ? 1 : Math.max(0.55, Math.min(0.9, MANY / drawn.length));
  for (const arm of drawn.slice().reverse()) { // the best on top
    context.globalAlpha = crowded;
    dot(arm, ramp(chart.shade(arm), colours.dark));
  }
  context.globalAlpha = 1;
  for (const [arm, colour] of [[data.bestArm, colours.leads[0]], [state.selected, colours.ink]]) {
    if (drawn.includes(arm)) dot(arm, colour, 2);
  }
}

function paintPlaneAxes({ across, up, colours }, context, x, y, width, height) {
  const { left, right, top, bottom } = PLANE;
  context.textAlign = "right";
  for (const value of up.labels) {
    const at = y(up.share(value));
    context.fillStyle = colours.line;
    context.fillRect(left, Math.round(at), width - left - right, 1);
    context.fillStyle = colours.faint;
    context.fillText(cutTo(context, show(value, 4), left - 10), left - 6, at + 4);
  }
  context.textAlign = "center";
  let end = -Infinity;
  const room = across.apart ? across.apart * (width - left - right) - 6 : 70;
  for (const value of [...across.labels].sort((a, b) => across.share(a) - across.share(b))) {
    const text = cutTo(context, show(value, 4), Math.max(room, 24));
    const half = context.measureText(text).width / 2;
    const at = x(across.share(value));
    context.fillRect(Math.round(at), height - bottom, 1, 4);
    if (at - half < end + 6) continue;
    context.fillText(text, Math.min(at, width - half - 2), height - bottom + 17);
    end = at + half;
  }
  context.fillStyle = colours.ink;
  context.font = "bold 12px system-ui, sans-serif";
  context.fillText(cutTo(context, across.name, width - 20), (left + width - right) / 2, height - 6);
  context.save();
  context.translate(12, (top + height - bottom) / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(cutTo(context, up.name, height - bottom), 0, 0);
  context.restore();
  context.font = "12px system-ui, sans-serif";
}

// A histogram whose bars are made of arms, the longest trained at the bottom.
function spreadAxes() {
  const n = Math.max(5, Math.min(MOST_BINS, Math.ceil(2 * Math.sqrt(ranked.length))));
  const stacks = Array.from({ length: n }, () => []);
  const trained = ranked.slice().sort((a, b) => arms.epochs[b] - arms.epochs[a]);
  const place = new Map(trained.map((arm) => {
    const bin = Math.min(n - 1, Math.floor(onScore.share(arms.best[arm]) * n));
    return [arm, [(bin + 0.5) / n, stacks[bin].push(arm) - 0.5]];
  }));
  const most = stacks.reduce((a, { length }) => Math.max(a, length), 1);
  const up = { name: "arms", share: (k) => k / most, labels: ticks(0, most, 4, true) };
  const placeOf = (arm) => [place.get(arm)[0], up.share(place.get(arm)[1])];
  return { across: onScore, up, placeOf, block: [1 / n, 1 / most] };
}

function planes() {
  if (ranked.length < 2) return;
  const keys = "Arrow keys step through the arms, the best first; Enter selects one.";
  const arms_ = count(ranked.length, "arm");
  find("planes-section").hidden = false;
  const dot = make("b", { ariaHidden: "true" }, "●");
  dot.style.color = "var(--lead-0)";
  find("planes-legend").append(
    rampBar("epochs 1", count(longestTrained)),
    make("span", {}, dot, `best, arm ${data.bestArm}`),
  );
  if (ranked.some((arm) => onParams.some((axis) => axis.of(arm) === null))) {
    const words = "an arm without a parameter is not in its figure";
    find("planes-legend").append(make("span", {}, words));
  }
  onParams.forEach((across, k) => {
    find("slices").append(make("div", { className: "chart", id: `slice-${k}` }));
    const label = `${onScore.name} against ${across.name}, ${arms_}. ${keys}`;
    new PlaneChart(`slice-${k}`, { across, up: onScore, shade: trainedShare }, label);
  });
  const spread = `Distribution of the ${onScore.name} of ${arms_}. ${keys}`;
  new PlaneChart("spread", { ...spreadAxes(), shade: trainedShare }, spread);
  if (onParams.length > 1) map(keys);
}

function map(keys) {
  const [best, worst] = maximize ? [high, low] : [low, high];
  find("map-box").hidden = false;
  find("map-tools").append(rampBar(`${score.name} ${show(worst, 4)}`, show(best, 4)));
  const label = `The best score of every arm by two parameters. ${keys}`;
  const chart = new PlaneChart("map", { shade: scoreShare }, label);
  const order_ = onParams.slice().sort((a, b) => data.params.indexOf(a.column) - data.params.indexOf(b.column));
  [["across", 0], ["up", 1]].forEach(([way, k]) => {
    const choice = find(`map-${way}`);
    choice.append(...order_.map(({ name }, i) => make("option", { value: i }, name)));
    choice.value = order_.indexOf(onParams[k]);
    chart[way] = onParams[k];
    choice.addEventListener("change", () => {
      chart[way] = order_[choice.value];
      chart.draw();
    });
  });
}
