// What the figures share: the selection, colours, ticks, and pointing at an epoch.

const state = { selected: null, filter: "", metric: score };
const charts = [];

function select(arm) {
  state.selected = state.selected === arm ? null : arm;
  charts.forEach((chart) => chart.draw());
  for (const row of find("arms").querySelectorAll("[data-arm]")) mark(row);
  for (const button of find("curves-legend").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", Number(button.value) === state.selected);
  }
}

// The colours as they are now, for the canvas.
function palette() {
  const probe = make("span");
  document.body.append(probe);
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const names = ["paper", "ink", "faint", "line", "others", "accent", "bad", "turn", "prior"];
  const colours = Object.fromEntries(names.map((name) => [name, colour(name)]));
  colours.leads = Array.from({ length: LEADERS }, (_, i) => colour(`lead-${i}`));
  const [red] = colours.paper.match(/\d+/g);
  colours.dark = Number(red) < 128;
  probe.remove();
  return colours;
}

// Cividis, which is told apart with any colour vision. The better stands out more; on
// white the worse is darkened, so that it is seen.
const DARKER = 0.4;
const CIVIDIS = [
  [0, 34, 78], [18, 53, 112], [59, 73, 108], [87, 93, 109], [112, 113, 115],
  [138, 134, 120], [165, 156, 116], [195, 179, 105], [225, 204, 85], [253, 231, 55],
];
function ramp(share, dark) {
  const place = (dark ? 0.3 + 0.7 * share : 1 - share) * (CIVIDIS.length - 1);
  const i = Math.min(CIVIDIS.length - 2, Math.max(0, Math.floor(place)));
  const light = dark ? 1 : 1 - DARKER * (1 - share);
  const mix = CIVIDIS[i].map((c, k) => light * (c + (place - i) * (CIVIDIS[i + 1][k] - c)));
  return `rgb(${mix.map(Math.round)})`;
}

// A bar of the colours between the two ends of what they stand for.
const ramps = [];
function rampBar(worst, best) {
  const bar = make("canvas", { className: "ramp", width: 100, height: 1 });
  ramps.push((dark) => {
    const context = bar.getContext("2d");
    for (let x = 0; x < 100; x++) {
      context.fillStyle = ramp(x / 99, dark);
      context.fillRect(x, 0, 1, 1);
    }
  });
  return make("span", { className: "key" }, worst, bar, best);
}

function shareOf(score) {
  const share = high > low ? (score - low) / (high - low) : 1;
  return Math.min(1, Math.max(0, maximize || high === low ? share : 1 - share));
}

// A canvas with a second one over it for what the pointer is near to. `paint` draws,
// and sets the chart's points: `x` and `y` by recorded row, NaN where there is none.
class Chart {
  constructor(id, height, paint, label) {
    this.box = find(id);
    this.height = height;
    this.paint = paint;
    this.canvas = make("canvas", { tabIndex: 0 });
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", label);
    this.over = make("canvas", { className: "over" });
    this.box.append(this.canvas, this.over);
    this.x = new Float32Array(recorded.arm.length);
    this.y = new Float32Array(recorded.arm.length);
    this.at = null;
    const move = (event) => this.point(this.nearest(event));
    this.canvas.addEventListener("pointermove", move);
    this.canvas.addEventListener("pointerdown", move);
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    this.canvas.addEventListener("blur", () => this.point(null));
    this.canvas.addEventListener("click", (event) => {
      const i = this.nearest(event);
      if (i === null) return;
      select(recorded.arm[i]);
      this.point(i); // also after a tap, which has left the canvas by now
    });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    charts.push(this);
  }

  context(canvas, width, height) {
    const most = Math.min(16000 / height, Math.sqrt(16e6 / (width * height)));
    const ratio = Math.min(window.devicePixelRatio || 1, most);
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.font = "12px system-ui, sans-serif";
    return context;
  }

  room(width) {
    return width;
  }

  draw() {
    this.seen = this.box.clientWidth;
    if (!this.seen) return;
    const width = this.width = this.room(this.seen);
    const height = this.height(width);
    this.x.fill(NaN);
    this.colours = palette();
    this.paint(this, this.context(this.canvas, width, height), width, height);
    this.front = this.context(this.over, width, height);
    this.point(this.x[this.at] >= 0 ? this.at : null); // where it is still drawn
  }

  nearest(event) {
    const { x, y } = this;
    let best = null, least = 40 * 40;
    for (let i = 0; i < x.length; i++) {
      const dx = x[i] - event.offsetX, dy = (y[i] - event.offsetY) * (this.tall || 1);
      const distance = dx * dx + dy * dy;
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  // Left and right: the arm's epochs; up and down: the arms; Enter: select.
  key(event) {
    const order = this.order();
    const arm = this.at === null ? order[0] : recorded.arm[this.at];
    const rows = (rowsOf.get(arm) || []).filter((i) => this.x[i] === this.x[i]);
    const here = rows.indexOf(this.at);
    const place = order.indexOf(arm);
    const other = (step) => {
      const next = order[Math.min(order.length - 1, Math.max(0, place + step))];
      return rowsOf.get(next).find((i) => this.x[i] === this.x[i]);
    };
    const moves = {
      ArrowRight: () => rows[Math.min(rows.length - 1, here + 1)],
      ArrowLeft: () => rows[Math.max(0, here - 1)],
      ArrowDown: () => (this.at === null ? rows[0] : other(1)),
      ArrowUp: () => (this.at === null ? rows[0] : other(-1)),
    };
    if (event.key === "Enter" && this.at !== null) {
      const kept = this.at;
      select(arm);
      this.point(kept);
    } else if (event.key === "Escape") {
      this.point(null);
    } else if (moves[event.key] && arm !== undefined) {
      event.preventDefault();
      this.point(moves[event.key]() ?? null);
      if (this.at !== null) this.reveal();
    }
  }

  // Scroll to the point, which the keyboard may have moved out of sight.
  reveal() {
    const { box } = this;
    const y = this.y[this.at];
    const seen = y > box.scrollTop + 20 && y < box.scrollTop + box.clientHeight - 20;
    if (!seen) box.scrollTop = y - box.clientHeight / 2;
    box.scrollLeft = this.x[this.at] - box.clientWidth / 2;
    this.tell(this.at);
    find("tip").scrollIntoView({ block: "nearest" });
  }

  point(i) {
    if (!this.front) return;
    if (i === null && this.at !== null) find("tip").hidden = true;
    this.at = i;
    this.front.clearRect(0, 0, this.width, this.over.height);
    if (i === null) return;
    const { front, colours } = this;
    front.strokeStyle = colours.ink;
    front.fillStyle = colours.ink;
    front.lineWidth = 1.5;
    this.emphasise(front, recorded.arm[i]);
    front.beginPath();
    front.arc(this.x[i], this.y[i], 5, 0, 7);
    front.stroke();
    this.tell(i);
  }

  tell(i) {
    const tip = find("tip");
    const arm = recorded.arm[i];
    const lines = paramsOf(arm).map(([name, value]) => `${name}: ${show(value)}`);
    const facts = [`epoch ${recorded.epoch[i]}`, `${score.name} ${show(recorded.score[i])}`];
    const { name, values } = state.metric;
    if (state.metric !== score) facts.push(`${name} ${show(values[i])}`);
    if (recorded.marks[i] & FAILED) facts.push("failed");
    if (recorded.marks[i] & OPENED) facts.push("opened");
    if (recorded.marks[i] & REVIVED) facts.push("revived");
    if (openedByPrior.has(arm)) facts.push("opened by prior");
    const projection = projectionOf.get(arm);
    if (projection) {
      const [, epoch, , end, score] = projection;
      lines.push(
        `at its last choice, after epoch ${epoch}: ${show(score, 4)} expected at ${end}`,
      );
    }
    lines.push(`epoch ${count(i + 1)} of the search`);
    tip.replaceChildren(
      make("strong", {}, `arm ${arm}, ${facts.join(", ")}`),
      ...lines.slice(0, 12).map((line) => make("span", {}, line)),
    );
    tip.hidden = false;
    const place = this.canvas.getBoundingClientRect();
    const room = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const x = place.left + this.x[i], y = place.top + this.y[i];
    const left = x + 14 < room ? x + 14 : x - tip.offsetWidth - 14;
    const below = y + 14 + tip.offsetHeight < window.innerHeight;
    const top = below ? y + 14 : Math.max(4, y - tip.offsetHeight - 14);
    tip.style.left = `${Math.max(4, Math.min(left, room)) + window.scrollX}px`;
    tip.style.top = `${top + window.scrollY}px`;
  }
}

function cross(context, x, y, r) {
  context.moveTo(x - r, y - r);
  context.lineTo(x + r, y + r);
  context.moveTo(x - r, y + r);
  context.lineTo(x + r, y - r);
}
