// In `risingsearch report --watch`: a page asks for news, and loads itself again when there is
// any and the user is at rest. What the user sees, has entered and chosen stays.

const PERIOD = 1000; // milliseconds between two questions
const PATIENCE = 1500; // after a key, a scroll, a click or a move of the pointer
const TOUCHES = ["keydown", "wheel", "pointerdown", "pointermove", "touchmove", "input"];
const FOCUSABLE = "a, button, canvas, input, select, summary, [tabindex]";
const BOXES = ".scroll, .chart";

let touched = -PATIENCE;
for (const kind of TOUCHES) {
  addEventListener(kind, () => { touched = performance.now(); }, { passive: true });
}

const entered = {}; // by the id of the field
addEventListener("input", ({ target }) => {
  entered[target.id] = target.type === "checkbox" ? target.checked : target.value;
});

const every = (selector) => [...document.querySelectorAll(selector)];
const isRun = typeof state !== "undefined"; // not the comparison

// The element that shows it has the focus: its number in the nearest one with an id.
function focused() {
  const element = document.querySelector(":focus-visible");
  const box = element && element.closest("[id]");
  return box && [box.id, [...box.querySelectorAll(FOCUSABLE)].indexOf(element)];
}

function remember() {
  sessionStorage.setItem(location.pathname, JSON.stringify({
    theme: document.documentElement.dataset.theme,
    entered,
    run: isRun && {
      arm: state.selected,
      kept: [...brushes].map(([axis, ends]) => [axis.name, ends]),
      sorted: [order.column.name, order.down],
      shown: order.shown,
      pointed: charts.map((chart) => chart.at),
    },
    opened: every("details").map((one) => one.open),
    scrolled: every(BOXES).map((box) => [box.scrollLeft, box.scrollTop]),
    focused: focused(),
    scroll: scrollY,
  }));
}

function recall() {
  const kept = JSON.parse(sessionStorage.getItem(location.pathname));
  if (!kept) return;
  const button = document.getElementById("theme");
  for (let turn = 0; kept.theme && turn < 2; turn++) {
    if (document.documentElement.dataset.theme !== kept.theme) button.click();
  }
  Object.entries(kept.entered).forEach(enter);
  if (isRun && kept.run) recallRun(kept.run);
  every("details").forEach((one, k) => { one.open = kept.opened[k]; });
  every(BOXES).forEach((box, k) => box.scrollTo(...(kept.scrolled[k] || [0, 0])));
  const [id, k] = kept.focused || [];
  const box = document.getElementById(id);
  if (box) (box.querySelectorAll(FOCUSABLE)[k] || box).focus({ preventScroll: true });
  scrollTo(0, kept.scroll);
  if (isRun && kept.run) charts.forEach((chart, n) => {
    const i = kept.run.pointed[n];
    if (chart.x[i] >= 0) chart.point(i); // it is still drawn
  });
}

function enter([id, value]) {
  const field = document.getElementById(id);
  const isGone = !field || (field.options && !field.options[value]);
  if (isGone) return;
  entered[id] = value;
  field[field.type === "checkbox" ? "checked" : "value"] = value;
  for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind));
}

function recallRun({ arm, kept, sorted: [name, down], shown }) {
  if (arm !== null) select(arm);
  for (const [on, ends] of kept) {
    const axis = axes.find((one) => one.name === on);
    if (axis) brushes.set(axis, ends);
  }
  if (brushes.size) brushed();
  const column = columns.find((one) => one.name === name);
  for (let turn = 0; column && turn < 2; turn++) {
    if (order.column !== column || order.down !== down) column.cell.firstChild.click();
  }
  order.shown = shown;
  fill();
}

async function ask() {
  if (document.hidden) return;
  const said = document.getElementById("said");
  try {
    const answer = await fetch("version", { cache: "no-store" });
    if (!answer.ok) throw new Error(answer.statusText);
    const now = await answer.json();
    if (said.textContent !== now.words) said.textContent = now.words;
    const isNew = now.version !== document.querySelector("meta[name=version]").content;
    const isAtRest = performance.now() - touched > PATIENCE && getSelection().isCollapsed;
    if (isNew && isAtRest) {
      remember();
      location.reload();
    }
  } catch {
    said.textContent = "no answer: risingsearch report has ended, or cannot be reached";
  }
}

history.scrollRestoration = "manual";
recall();
setInterval(ask, PERIOD);
ask();
