// Themes, printing, and the order in which the page is made.

function themes(redraw) {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const button = find("theme");
  const dark = () =>
    root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
  const refresh = () => {
    button.textContent = dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `switch to ${dark() ? "light" : "dark"} colours`);
    redraw();
  };
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    refresh();
  });
  system.addEventListener("change", refresh);
  let before = "";
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme || "";
    root.dataset.theme = "light";
    redraw();
  });
  window.addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before;
    else delete root.dataset.theme;
    redraw();
  });
  refresh();
}

// The clipboard is not there for every page; then the text is selected and copied.
async function copyBest() {
  try {
    await navigator.clipboard.writeText(data.bestParams);
  } catch {
    const field = make("textarea", { value: data.bestParams });
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    find("copy").focus();
  }
  find("copy").textContent = "Copied as JSON";
  setTimeout(() => { find("copy").textContent = "Copy the best parameters"; }, 2000);
}

function begin() {
  find("copy").hidden = data.bestArm === null;
  find("copy").addEventListener("click", copyBest);
  const [allocation, bought, table_] = document.querySelectorAll(".drawn");
  table_.hidden = false;
  table();
  let redraw = () => {};
  if (recorded.arm.length) {
    allocation.hidden = false;
    bought.hidden = !ranked.length;
    const best = data.bestArm === null ? `none has a finite ${score.name}` : `best is arm ${data.bestArm}`;
    const keys = "Arrow keys step through the epochs, Enter selects the arm.";
    stripLegend();
    chooseMetric();
    curvesLegend();
    const strip = new Chart(
      "strip",
      () => STRIP.top + STRIP.bottom + stripRows.length * stripRowHeight(),
      paintStrip,
      `When each of ${count(rowsOf.size, "arm")} trained; ${best}. ${keys}`,
    );
    new Chart(
      "curves",
      (width) => Math.max(300, Math.min(520, width * 0.55)),
      paintCurves,
      `Learning curves of ${count(rowsOf.size, "arm")}; ${best}. ${keys}`,
    );
    if (ranked.length > 1 && axes.length > 1) parallel();
    planes();
    redraw = () => {
      charts.forEach((chart) => chart.draw());
      ramps.forEach((paint) => paint(strip.colours.dark));
    };
    const watch = new ResizeObserver(() => {
      if (charts.some((chart) => chart.seen !== chart.box.clientWidth)) redraw();
    });
    charts.forEach((chart) => watch.observe(chart.box));
  }
  themes(redraw);
  performance.mark("drawn");
}
begin();
