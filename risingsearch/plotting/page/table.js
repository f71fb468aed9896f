// The table of all arms.

const columns = [
  { name: "arm", of: (arm) => arm },
  { name: "status", of: (arm) => at(arms.status, arm) },
  { name: `best ${score.name}`, of: (arm) => arms.best[arm], down: maximize },
  { name: "at epoch", of: (arm) => arms.bestEpoch[arm], down: true },
  { name: "epochs", of: (arm) => arms.epochs[arm], down: true },
  ...(data.hasPrior
    ? [{ name: "opened by prior", of: (arm) => (openedByPrior.has(arm) ? "yes" : null) }]
    : []),
  ...data.params.map((column) => ({
    name: column.name,
    of: (arm) => at(column, arm),
    long: column.distinct.some((value) => String(value).length > 24),
  })),
];
const reason = { name: "why it waits", of: (arm) => at(arms.why, arm) };
const AT_ONCE = 200;
const all = arms.epochs.map((_, arm) => arm);
const texts = all.map((arm) =>
  [...columns, reason].map((column) => show(column.of(arm))).join("\n").toLowerCase(),
);
for (const column of columns) {
  const kinds = new Set(all.map((arm) => typeof column.of(arm)));
  column.numeric = kinds.has("number") && !kinds.has("string");
}
const isOpened = (arm) => at(arms.status, arm) !== "unopened";
const nUnopened = all.filter((arm) => !isOpened(arm)).length;
const order = { column: columns[2], down: maximize, rows: all, shown: AT_ONCE, unopened: false };

function compare(a, b) {
  if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
  return typeof a === "number" ? -1 : 1;
}

// Sorted and filtered; what has no value stands last in either direction.
function arrange() {
  const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const { of } = order.column;
  const none = (arm) => of(arm) === null;
  const turn = order.down ? -1 : 1;
  order.rows = all
    .filter((arm) => order.unopened || isOpened(arm))
    .filter((arm) => words.every((word) => texts[arm].includes(word)))
    .filter((arm) => !brushes.size || (isOpened(arm) && isKept(arm)))
    .sort((a, b) => none(a) - none(b) || turn * compare(of(a), of(b)) || a - b);
  order.shown = AT_ONCE;
  fill();
}

function fill() {
  const { rows, shown } = order;
  find("arms").tBodies[0].replaceChildren(...rows.slice(0, shown).flatMap(rowsFor));
  const left = rows.length - Math.min(shown, rows.length);
  const visible = left ? `first ${count(shown)} of ` : "";
  const inSight = order.unopened ? all.length : all.length - nUnopened;
  const of = rows.length < inSight ? ` that match, of ${count(inSight, "arm")}` : "";
  const matching = of ? count(rows.length) + of : count(rows.length, "arm");
  find("count").textContent = visible + matching;
  find("more").hidden = !left;
  find("more").textContent = `Show ${count(Math.min(left, 1000))} more`;
}

// The row of an arm, and below it the reason why it waits.
function rowsFor(arm) {
  const row = make("tr");
  row.dataset.arm = arm;
  columns.forEach((column, k) => {
    const value = column.of(arm);
    const cell = make(k ? "td" : "th");
    if (k) {
      cell.textContent = show(value);
    } else {
      cell.scope = "row";
      const button = make("button", { type: "button" }, String(arm));
      button.title = "show in the figures";
      button.addEventListener("click", () => select(arm));
      cell.append(button);
    }
    if (k && typeof value === "number" && show(value) !== String(value)) {
      cell.title = String(value);
    }
    if (column.numeric || column.long) cell.className = column.numeric ? "number" : "long";
    row.append(cell);
  });
  mark(row);
  const why = make("td", { colSpan: columns.length }, make("div", {}, reason.of(arm)));
  return [row, make("tr", { className: "why" }, why)];
}

// As `risingsearch export` writes text: a spreadsheet runs none of it.
function inCsv(value) {
  if (value === null || typeof value === "number") return value ?? "";
  const text = /^[=+\-@\t\r']/.test(value) ? `'${value}` : value;
  return `"${text.replaceAll('"', '""')}"`;
}

function download() {
  const written = [...columns, reason];
  const lines = [
    written.map((column) => inCsv(column.name)),
    ...order.rows.map((arm) => written.map((column) => inCsv(column.of(arm)))),
  ];
  const file = new Blob([lines.join("\r\n"), "\r\n"], { type: "text/csv" });
  const link = make("a", { href: URL.createObjectURL(file), download: `${document.title}.csv` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function mark(row) {
  const chosen = Number(row.dataset.arm) === state.selected;
  row.classList.toggle("selected", chosen);
  row.querySelector("button").setAttribute("aria-pressed", chosen);
}

function table() {
  const head = find("arms").tHead.insertRow();
  const sort = () => {
    for (const column of columns) {
      const way = order.down ? "descending" : "ascending";
      column.cell.setAttribute("aria-sort", column === order.column ? way : "none");
    }
    arrange();
  };
  for (const column of columns) {
    const button = make("button", { type: "button" }, column.name);
    column.cell = make("th", { scope: "col" }, button);
    if (column.numeric) column.cell.className = "number";
    if (column.name.length > 24) column.cell.className = "long";
    button.addEventListener("click", () => {
      order.down = column === order.column ? !order.down : Boolean(column.down);
      order.column = column;
      sort();
    });
    head.append(column.cell);
  }
  find("filter").addEventListener("input", (event) => {
    state.filter = event.target.value;
    arrange();
  });
  find("csv").addEventListener("click", download);
  find("more").addEventListener("click", () => {
    order.shown += 1000;
    fill();
  });
  const [box, words] = find("unopened").children;
  find("unopened").hidden = !nUnopened;
  words.textContent = `${count(nUnopened)} never opened`;
  box.addEventListener("change", () => {
    order.unopened = box.checked;
    arrange();
  });
  sort();
}
