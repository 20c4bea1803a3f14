"use strict";
// Sorting and searching; scripts of chapters follow. Without this script the page can still be read.

const all = (selector, root) => [...(root || document).querySelectorAll(selector)];
const words = text => text.toLowerCase().split(/\s+/).filter(Boolean);

// ---- tables: a press on a heading sorts by that column; what is unknown stays last ----

function numberIn(cell) {
  const text = cell.textContent.trim().replace("−", "-");
  const found = /^[<≈ ]*([+-]?[\d,]*\.?\d+|-?∞)/.exec(text);
  if (!found) return NaN;
  if (found[1].includes("∞")) return found[1][0] === "-" ? -1e308 : 1e308;
  return parseFloat(found[1].replace(/,/g, ""));
}

function sortBy(head) {
  const table = head.closest("table"), body = table.tBodies[0], at = head.cellIndex;
  const isText = head.classList.contains("text");
  const unsorted = !head.hasAttribute("aria-sort");
  // The first press shows the greatest number, the first word, the best rank.
  const down = unsorted ? !isText && head.textContent !== "Rank" : head.getAttribute("aria-sort") === "ascending";
  const key = row => isText ? row.cells[at].textContent.trim().toLowerCase() : numberIn(row.cells[at]);
  const isMissing = value => value === "" || value === "–" || Number.isNaN(value);
  const rows = [...body.rows].map(row => [key(row), row]);
  rows.sort(([a], [b]) => {
    if (isMissing(a) || isMissing(b)) return isMissing(a) - isMissing(b);
    return (down ? -1 : 1) * (a < b ? -1 : a > b ? 1 : 0);
  });
  all("th[aria-sort]", table).forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows.map(([, row]) => row));
}

all("table.sortable thead button").forEach(button => button.addEventListener("click", () => sortBy(button.closest("th"))));

function filterRows(input) {
  const wanted = words(input.value);
  const rows = [...document.getElementById(input.dataset.filters).tBodies[0].rows];
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !wanted.every(word => text.includes(word));
  }
  const left = rows.filter(row => !row.hidden).length;
  const count = document.querySelector(`[data-counts="${input.dataset.filters}"]`);
  const noun = count.textContent.split(" ").pop();
  count.textContent = `${left} of ${rows.length} ${noun}`;
}

all("input[data-filters]").forEach(input => input.addEventListener("input", () => filterRows(input)));

// ---- tables wider than their box say that there is more; those of more than two screens get a box ----

function hintAtMore() {
  all(".scroll").forEach(box => {
    box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 4);
    box.classList.toggle("tall", box.firstElementChild.offsetHeight > 2 * innerHeight);
  });
}
addEventListener("resize", hintAtMore);
document.addEventListener("toggle", hintAtMore, true);
hintAtMore();

// ---- folds: paper shows everything ----

let closed = [];
addEventListener("beforeprint", () => {
  closed = all("details:not([open])");
  closed.forEach(fold => { fold.open = true; });
});
addEventListener("afterprint", () => closed.forEach(fold => { fold.open = false; }));
