"use strict";

// What all programs share: the data of the page, elements, ticks of axes.

const data = JSON.parse(document.getElementById("data").textContent);
const find = (id) => document.getElementById(id);

function make(tag, facts = {}, ...children) {
  const element = Object.assign(document.createElement(tag), facts);
  element.append(...children);
  return element;
}

function ticks(from, to, n, whole = false) {
  const rough = (to - from) / Math.max(1, n);
  const power = 10 ** Math.floor(Math.log10(rough));
  let step = [1, 2, 5, 10].find((s) => s * power >= rough) * power;
  if (whole) step = Math.max(1, Math.round(step));
  const values = [];
  for (let k = Math.ceil(from / step); k * step <= to + step * 1e-9; k++) {
    values.push(k * step);
  }
  return values.length < 50 ? values : [];
}
