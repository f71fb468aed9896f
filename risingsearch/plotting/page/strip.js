// Where the epochs went: a row for every arm, a block for every epoch.

const stripRows = [...rowsOf.keys()].sort(
  (a, b) =>
    rowsOf.get(b).length - rowsOf.get(a).length ||
    (b === data.bestArm) - (a === data.bestArm) ||
    rowsOf.get(a)[0] - rowsOf.get(b)[0],
);
const DIGITS = String(arms.epochs.length).length;
const STRIP = { left: Math.max(42, 24 + 7 * DIGITS), right: 30, top: 40, bottom: 8 };
const SHORTEST = 15; // pixels of a row's label
const MOST_MARKS = 400; // more would hide the blocks: not shown until asked for
const marked = { [OPENED]: true, [BY_PRIOR]: true, [REVIVED]: true, [FAILED]: true };

function stripRowHeight() {
  const n = stripRows.length;
  return Math.min(Math.max(2.5, Math.min(15, 520 / n)), 8000 / n);
}

function paintStrip(chart, context, width, height) {
  const { colours } = chart;
  const { left, right, top } = STRIP;
  const step = (width - left - right) / recorded.arm.length;
  const tall = stripRowHeight();
  chart.tall = 3;
  chart.order = () => stripRows;
  chart.emphasise = (front, arm) => {
    const row = stripRows.indexOf(arm);
    front.strokeRect(left - 1, top + row * tall - 0.5, width - left - right + 2, tall + 1);
  };
  stripRows.forEach((arm, row) => {
    const rows = rowsOf.get(arm);
    const y = top + (row + 0.5) * tall;
    context.fillStyle = arm === state.selected ? colours.accent : colours.line;
    const end = rows[rows.length - 1];
    context.globalAlpha = arm === state.selected ? 1 : Math.min(1, tall / 9);
    context.fillRect(left + rows[0] * step, y - 0.5, (end - rows[0]) * step, 1);
    context.globalAlpha = 1;
    const thick = Math.max(1.5, tall * 0.8);
    for (const i of rows) {
      chart.x[i] = left + (i + 0.5) * step;
      chart.y[i] = y;
      if (recorded.score[i] === null) continue;
      context.fillStyle = ramp(shareOf(recorded.score[i]), colours.dark);
      context.fillRect(left + i * step, y - thick / 2, Math.max(step, 1.5), thick);
    }
  });
  paintMarks(chart, context, step, tall);
  paintStripAxes(context, colours, width, step, tall);
}

function paintMarks(chart, context, step, tall) {
  const { colours, x, y } = chart;
  const r = Math.max(2, Math.min(4, tall * 0.3, step * 1.2));
  const draw = (bit, colour, shape) => {
    if (!marked[bit]) return;
    context.beginPath();
    for (let i = 0; i < x.length; i++) {
      if (recorded.marks[i] & bit) shape(x[i], y[i], x[i] - step / 2);
    }
    context.strokeStyle = context.fillStyle = colour;
    context.lineWidth = 1.5;
  };
  draw(OPENED, colours.ink, (cx, cy, start) => {
    context.moveTo(start - 1, cy);
    context.arc(start - r - 1, cy, r, 0, 7);
  });
  context.fill();
  context.beginPath();
  draw(BY_PRIOR, colours.prior, (cx, cy, start) => {
    context.moveTo(start - 2 * r - 2, cy);
    context.lineTo(start - r - 1, cy - r - 1);
    context.lineTo(start, cy);
    context.lineTo(start - r - 1, cy + r + 1);
    context.closePath();
  });
  context.fill();
  context.beginPath();
  draw(REVIVED, colours.turn, (cx, cy, start) => {
    context.moveTo(start - r, cy - r);
    context.lineTo(start + r * 0.4, cy);
    context.lineTo(start - r, cy + r);
    context.closePath();
  });
  context.fill();
  context.beginPath();
  draw(FAILED, colours.bad, (cx, cy) => cross(context, cx, cy, r));
  context.stroke();
}

function paintStripAxes(context, colours, width, step, tall) {
  const { left, top } = STRIP;
  context.fillStyle = colours.faint;
  context.textAlign = "center";
  for (const value of ticks(0, recorded.arm.length, width / 90, true)) {
    context.fillText(count(value), left + value * step, top - 8);
    context.fillRect(left + value * step, top - 5, 1, 4);
  }
  context.textAlign = "left";
  context.fillText("epochs spent", left, 14);
  context.textAlign = "right";
  context.fillText("arm", left - 10, 14);
  const every = Math.ceil(SHORTEST / tall);
  const winner = stripRows.indexOf(data.bestArm);
  stripRows.forEach((arm, row) => {
    if (row !== winner && (row % every || Math.abs(row - winner) < every)) return;
    context.fillStyle = row === winner ? colours.leads[0] : colours.faint;
    context.font = `${row === winner ? "bold " : ""}12px system-ui, sans-serif`;
    context.fillText(arm, left - 14, top + (row + 0.5) * tall + 4);
  });
}

function stripLegend() {
  const box = find("strip-legend");
  const words = [
    [OPENED, "●", "ink", "opened"],
    ...(data.hasPrior ? [[BY_PRIOR, "◆", "prior", "opened by prior"]] : []),
    [REVIVED, "▶", "turn", "revived"],
    [FAILED, "×", "bad", "failed"],
  ];
  for (const [bit, sign, colour, word] of words) {
    const n = recorded.marks.filter((mark) => mark & bit).length;
    marked[bit] = n > 0 && (n <= MOST_MARKS || bit === FAILED);
    const input = make("input", { id: `marked-${bit}`, type: "checkbox" });
    Object.assign(input, { checked: marked[bit], disabled: !n });
    input.addEventListener("change", () => {
      marked[bit] = input.checked;
      charts[0].draw();
    });
    const drawn = make("b", { ariaHidden: "true" }, sign);
    drawn.style.color = `var(--${colour})`;
    box.append(make("label", {}, input, drawn, `${word} (${count(n)})`));
  }
  const [worst, best] = maximize ? [low, high] : [high, low];
  if (!ranked.length) return;
  const beyond = outside(score) ? (maximize ? "≤ " : "≥ ") : "";
  box.append(rampBar(`${score.name} ${beyond}${show(worst, 4)}`, show(best, 4)));
}
