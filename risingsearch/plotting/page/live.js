"use strict";

// Keeps a page up to date. A newer one is loaded behind the one that is seen, made to
// look alike (what was typed, chosen, unfolded, scrolled to), and takes its place.

const PERIOD = 500; // milliseconds between two questions
const PATIENCE = 800; // after a key or a scroll, before a page takes another's place

const frames = document.getElementById("frames");
const said = document.getElementById("said");
const dot = document.getElementById("dot");
let seen = null; // the frame that is seen
let version = null; // of its page
let loading = false;
let touched = 0; // when the page was last typed in or scrolled
let held = false; // a button of the pointer is down
let pointer = null; // where the pointer is over a figure

const wait = (time) => new Promise((resolve) => setTimeout(resolve, time));

function say(state, words) {
  dot.dataset.state = state;
  if (said.textContent !== words) said.textContent = words;
}

// ------------------------------------------------------------- what is to stay as it is

// Where an element is, below the closest one with a name.
function pathOf(element) {
  if (element.id) return `#${CSS.escape(element.id)}`;
  const parent = element.parentElement;
  if (!parent) return ":root";
  const place = [...parent.children].indexOf(element) + 1;
  return `${pathOf(parent)} > :nth-child(${place})`;
}

const all = (page, selector) => [...page.querySelectorAll(selector)];
const ofPath = (page, selector, fact) =>
  all(page, selector).map((element) => [pathOf(element), fact(element)]);

// The heading or box that is closest to the top of the window, and how far from it.
function anchorOf(page) {
  const far = (element) => element.getBoundingClientRect().top;
  const named = all(page, "main [id]").filter((element) => element.offsetParent);
  const closest = named.reduce(
    (a, b) => (a && Math.abs(far(a)) <= Math.abs(far(b)) ? a : b), null);
  return closest && { path: pathOf(closest), top: far(closest) };
}

function lookOf(page) {
  const sorted = page.querySelector("th[aria-sort]:not([aria-sort='none'])");
  const chosen = page.querySelector("tr.selected[data-arm], [data-arm][aria-pressed='true']");
  const pressed = page.querySelector("#curves-legend [aria-pressed='true']");
  const focused = page.activeElement;
  const typing = focused && "selectionStart" in focused;
  return {
    theme: page.documentElement.dataset.theme,
    arm: chosen ? chosen.dataset.arm : pressed && pressed.value,
    sort: sorted && { path: pathOf(sorted), way: sorted.getAttribute("aria-sort") },
    rows: all(page, "#arms tbody tr").length,
    fields: ofPath(page, "input, select", (field) =>
      field.type === "checkbox" ? field.checked : field.value),
    folds: ofPath(page, "details", (fold) => fold.open),
    scrolls: ofPath(page, ".scroll, .chart", (box) => [box.scrollLeft, box.scrollTop]),
    focus: focused && focused !== page.body && pathOf(focused),
    range: typing ? [focused.selectionStart, focused.selectionEnd] : null,
    anchor: page.defaultView.scrollY > 0 ? anchorOf(page) : null,
  };
}

// --------------------------------------------------------------------- and made so again

function setFields(page, fields) {
  for (const [path, value] of fields) {
    const field = page.querySelector(path);
    if (!field) continue;
    const name = field.type === "checkbox" ? "checked" : "value";
    if (field[name] === value) continue;
    if (field.tagName === "SELECT" && ![...field.options].some((o) => o.value === value)) {
      continue;
    }
    field[name] = value;
    for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind));
  }
}

function setSort(page, { path, way }) {
  const head = page.querySelector(path);
  for (let turn = 0; head && turn < 2 && head.getAttribute("aria-sort") !== way; turn++) {
    head.querySelector("button").click();
  }
}

function setRows(page, rows) {
  const more = page.getElementById("more");
  const shown = () => all(page, "#arms tbody tr").length;
  for (let before = -1; more && !more.hidden && shown() < rows && shown() > before; ) {
    before = shown();
    more.click();
  }
}

function setFocus(page, path, range) {
  const focused = page.querySelector(path);
  if (!focused) return;
  focused.focus({ preventScroll: true });
  if (range && range[0] !== null && focused.setSelectionRange) focused.setSelectionRange(...range);
}

function setLook(page, look) {
  const theme = page.documentElement.dataset;
  const button = page.getElementById("theme");
  if (look.theme && button && theme.theme !== look.theme) {
    button.click();
    if (theme.theme !== look.theme) button.click();
  }
  setFields(page, look.fields);
  if (look.sort) setSort(page, look.sort);
  setRows(page, look.rows);
  if (look.arm !== null && page.defaultView.select) page.defaultView.select(Number(look.arm));
  for (const [path, open] of look.folds) {
    const fold = page.querySelector(path);
    if (fold) fold.open = open;
  }
  for (const [path, [left, top]] of look.scrolls) {
    const box = page.querySelector(path);
    if (box) Object.assign(box, { scrollLeft: left, scrollTop: top });
  }
  if (look.anchor) {
    const anchor = page.querySelector(look.anchor.path);
    const now = anchor ? anchor.getBoundingClientRect().top : look.anchor.top;
    page.defaultView.scrollBy(0, now - look.anchor.top);
  }
  if (look.focus) setFocus(page, look.focus, look.range);
}

// What the pointer points at is told of in the new page as well.
function pointAgain(page) {
  if (!pointer) return;
  const under = page.elementFromPoint(pointer.clientX, pointer.clientY);
  if (under) under.dispatchEvent(new PointerEvent("pointermove", { ...pointer, bubbles: true }));
}

// ------------------------------------------------------------ one page after the other

// Whether the user is at something that a new page would interrupt.
function isBusy(page) {
  const selection = page.getSelection();
  const selects = selection && !selection.isCollapsed;
  return held || selects || performance.now() - touched < PATIENCE;
}

function listen(page) {
  const touch = () => { touched = performance.now(); };
  page.addEventListener("keydown", touch, true);
  page.addEventListener("scroll", touch, true);
  page.addEventListener("wheel", touch, { capture: true, passive: true });
  page.addEventListener("pointerdown", () => { held = true; touch(); }, true);
  for (const kind of ["pointerup", "pointercancel", "pointerleave", "blur"]) {
    page.addEventListener(kind, () => { held = false; }, true);
  }
  page.addEventListener("pointermove", ({ target, clientX, clientY, buttons }) => {
    pointer = target.closest(".chart") ? { clientX, clientY } : null;
    held = buttons > 0;
  }, true);
  page.addEventListener("pointerleave", () => { pointer = null; });
  const root = page.documentElement;
  const theme = () => {
    if (root.dataset.theme) document.documentElement.dataset.theme = root.dataset.theme;
    else delete document.documentElement.dataset.theme;
  };
  new page.defaultView.MutationObserver(theme).observe(root, { attributeFilter: ["data-theme"] });
}

async function load(wanted) {
  const frame = document.createElement("iframe");
  frame.className = "coming";
  frame.title = document.title;
  frame.src = `page?version=${encodeURIComponent(wanted)}`;
  const loaded = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
  frames.append(frame);
  await loaded;
  const page = frame.contentDocument;
  if (!page || !page.querySelector("main")) {
    frame.remove(); // the server is gone, or says no
    return false;
  }
  while (seen && isBusy(seen.contentDocument)) await wait(100);
  listen(page);
  if (seen) setLook(page, lookOf(seen.contentDocument));
  frame.className = "";
  if (seen) seen.remove();
  seen = frame;
  pointAgain(page);
  touched = 0; // the scrolling was ours
  return true;
}

async function ask() {
  const answer = await fetch("version", { cache: "no-store" });
  if (!answer.ok) throw new Error(answer.statusText);
  const now = await answer.json();
  if (now.version !== version && (await load(now.version))) version = now.version;
  say(now.state, now.words);
}

async function keepUp() {
  if (loading || document.hidden) return;
  loading = true;
  try {
    await ask();
  } catch {
    say("lost", "no answer: risingsearch serve has ended, or cannot be reached");
  }
  loading = false;
}

setInterval(keepUp, PERIOD);
document.addEventListener("visibilitychange", keepUp);
keepUp();
