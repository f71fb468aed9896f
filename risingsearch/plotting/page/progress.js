// The best score so far against epochs and time: steps over common axes.

const SIZE = { width: 420, height: 260, left: 58, right: 24, top: 12, bottom: 44 };
const DASHES = ["none", "6 3", "2 3"];

const NAMESPACE = document.querySelector(".progress svg").namespaceURI;

function svg(tag, facts, ...children) {
  const element = document.createElementNS(NAMESPACE, tag);
  for (const [name, value] of Object.entries(facts)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

function stepLine(d, number) {
  return svg("path", {
    d, class: `rs-lead-${number % 5}`, fill: "none", "stroke-width": 2,
    "stroke-dasharray": DASHES[Math.floor(number / 5) % DASHES.length],
  });
}

function progressChart({ x, y, limits, lines }) {
  const { width, height, left, right, top, bottom } = SIZE;
  const last = Math.max(...lines.flat().map((point) => point[0])) || 1;
  const margin = 0.05 * (limits[1] - limits[0]) || 0.05 * Math.abs(limits[1]) || 0.5;
  const [from, to] = [limits[0] - margin, limits[1] + margin];
  const across = (value) => left + (width - left - right) * value / last;
  const up = (value) => {
    const share = (Math.min(to, Math.max(from, value)) - from) / (to - from);
    return height - bottom - (height - top - bottom) * share;
  };
  const chart = svg("svg", {
    class: "rs-chart", viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${y}, over ${x}`, "font-size": 12, fill: "currentColor",
  });
  const text = (words, facts) => chart.append(svg("text", facts, words));
  for (const value of ticks(from, to, 6)) {
    const at = up(value);
    chart.append(svg("path", {
      d: `M${left} ${at}H${width - right}`, stroke: "currentColor", "stroke-opacity": 0.2,
    }));
    text(String(Number(value.toPrecision(5))), { x: left - 6, y: at + 4, "text-anchor": "end" });
  }
  for (const value of ticks(0, last, 5)) {
    const rounded = Number(value.toPrecision(6));
    const words = Math.abs(rounded) < 1 ? String(rounded) : rounded.toLocaleString("en");
    text(words, { x: across(value), y: height - bottom + 16, "text-anchor": "middle" });
  }
  text(x, { x: (left + width - right) / 2, y: height - 8, "text-anchor": "middle" });
  const middle = (top + height - bottom) / 2;
  text(y, { transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" });
  lines.forEach((points, number) => {
    const corners = points.map(([a, b], k) => (k ? `H${across(a)}V` : `M${across(a)} `) + up(b));
    if (points.length === 1) corners.push("h2");
    if (points.length) chart.append(stepLine(corners.join(""), number));
  });
  return make("figure", {}, chart);
}

function progressLegend(names) {
  const items = names.map((name, number) => {
    const swatch = svg("svg", { viewBox: "0 0 24 10", width: 24, height: 10 });
    swatch.append(stepLine("M0 5H24", number));
    return make("li", {}, swatch, ` ${name}`);
  });
  return make("ul", { className: "rs-legend" }, ...items);
}

if (!data.progress.length) find("no-progress").hidden = false;
for (const { names, charts: drawn } of data.progress) {
  const figures = make("div", { className: "figures" }, ...drawn.map(progressChart));
  const legend = names.length > 1 ? [progressLegend(names)] : [];
  document.querySelector(".progress").append(...legend, figures);
}
