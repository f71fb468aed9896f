// In `risingsearch serve`: a page asks for news, and loads itself again when there is
// any and the user is at rest. Theme, scroll position, filter and selection stay.

const PERIOD = 1000; // milliseconds between two questions
const PATIENCE = 1500; // after a key, a scroll or a click

let touched = -PATIENCE;
for (const kind of ["keydown", "wheel", "pointerdown", "input"]) {
  addEventListener(kind, () => { touched = performance.now(); }, { passive: true });
}

function remember() {
  const filter = document.getElementById("filter");
  sessionStorage.setItem(location.pathname, JSON.stringify({
    theme: document.documentElement.dataset.theme,
    scroll: scrollY,
    filter: filter && filter.value,
    arm: typeof state === "undefined" ? null : state.selected,
  }));
}

function recall() {
  const kept = JSON.parse(sessionStorage.getItem(location.pathname));
  if (!kept) return;
  const button = document.getElementById("theme");
  for (let turn = 0; kept.theme && turn < 2; turn++) {
    if (document.documentElement.dataset.theme !== kept.theme) button.click();
  }
  const filter = document.getElementById("filter");
  if (filter && kept.filter) {
    filter.value = kept.filter;
    filter.dispatchEvent(new Event("input"));
  }
  if (kept.arm !== null && typeof select === "function") select(kept.arm);
  scrollTo(0, kept.scroll);
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
    said.textContent = "no answer: risingsearch serve has ended, or cannot be reached";
  }
}

history.scrollRestoration = "manual";
recall();
setInterval(ask, PERIOD);
ask();
