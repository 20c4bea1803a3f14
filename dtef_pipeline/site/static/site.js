// Tables that sort and filter, charts, data that is loaded when it is needed, and a state of the page that a link can carry.
"use strict";
const dtef = (() => {
  const root = document.body.dataset.root || "";

  // --- the state of the page, in its address: #table.sort=-score&table.q=kenya
  const state = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  function remember(name, value) {
    if (value) state.set(name, value); else state.delete(name);
    const text = state.toString();
    history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
  }
  const recall = (name) => state.get(name) || "";
  // the two models that the reader compares, whose responses then come first
  const compared = () => ["a", "b"].map(recall).filter(Boolean);
  function comparedFirst(rows, nameOf, names = compared()) {
    const place = (row) => names.includes(nameOf(row)) ? names.indexOf(nameOf(row)) : names.length;
    return [...rows].sort((x, y) => place(x) - place(y));
  }
  window.addEventListener("hashchange", () => {
    if (!location.hash.includes("=")) return;
    for (const name of [...state.keys()]) state.delete(name);
    new URLSearchParams(location.hash.slice(1)).forEach((value, name) => state.set(name, value));
  });

  // --- data files: each calls receive with its path and its compressed JSON
  const waiting = new Map(), received = new Map();
  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), (one) => one.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  }
  function receive(path, packed) { received.set(path, packed); }
  function load(path) {
    if (!waiting.has(path)) waiting.set(path, new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.src = root + path;
      script.onload = () => unpack(received.get(path)).then(resolve, reject);
      script.onerror = () => reject(new Error("cannot load " + path));
      document.head.append(script);
    }));
    return waiting.get(path);
  }

  // an invisible character is shown as its number, as in make_visible in dtef_pipeline/text/visible.py
  const UNSEEN = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}\u{e0100}-\u{e01ef}]/gu;
  const visible = (text) => text.replaceAll("\r\n", "\n").replace(UNSEEN, (one) => `⟨U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

  // --- elements: make("p", {class: "soft"}, "text", child); texts are never read as HTML
  const SHOWN_ATTRIBUTES = ["title", "aria-label"];
  function make(name, attributes = {}, ...children) {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value === true ? "" : SHOWN_ATTRIBUTES.includes(key) ? visible(value) : value);
    }
    element.append(...children.filter((one) => one !== null && one !== undefined).map((one) => typeof one === "string" ? visible(one) : one));
    return element;
  }

  // --- tables
  const key = (cell) => cell ? cell.dataset.key ?? cell.textContent.trim() : "";
  function compare(a, b) {
    const [x, y] = [Number(a), Number(b)];
    if (a === "" || b === "") return (a === "") - (b === "") || 0;
    return Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, undefined, {numeric: true}) : x - y;
  }
  function sort(box, place, direction) {
    const body = box.querySelector("tbody");
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [key(a.cells[place]), key(b.cells[place])];
      const order = compare(x, y);
      return x === "" || y === "" ? order : direction === "ascending" ? order : -order;
    });
    body.append(...rows);
    box.querySelectorAll("thead th").forEach((head, at) => {
      if (at === place) head.setAttribute("aria-sort", direction); else head.removeAttribute("aria-sort");
    });
  }
  function filter(box, words) {
    const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = [...box.querySelectorAll("tbody tr")];
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !wanted.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    const count = box.querySelector("[data-count]");
    if (count) count.textContent = wanted.length ? `${shown} of ${rows.length}` : "";
  }
  // All rows and columns, with the full digits of numbers. A text that a spreadsheet would take for a formula gets an apostrophe.
  function download(box) {
    const text = (cell) => cell.dataset.key && !Number.isNaN(Number(cell.dataset.key)) ? cell.dataset.key : cell.textContent.trim();
    const safe = (value) => /^[=+@\t\r-]/.test(value) && Number.isNaN(Number(value)) ? "'" + value : value;
    const line = (row) => [...row.cells].map((cell) => `"${safe(text(cell)).replaceAll('"', '""')}"`).join(",");
    const lines = [...box.querySelectorAll("thead tr, tbody tr")].map(line);
    const link = make("a", {href: URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], {type: "text/csv"})), download: box.id + ".csv"});
    link.click();
    URL.revokeObjectURL(link.href);
  }
  function toggle(box, button, cls, name) {
    const show = (on) => {
      box.classList.toggle(cls, on);
      narrow(box);
      button.setAttribute("aria-pressed", String(on));
    };
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      show(on);
      remember(`${box.id}.${name}`, on ? "1" : "");
    });
    show(recall(`${box.id}.${name}`) === "1");
  }
  // On a phone a table that is too wide becomes a card for each row, with the heading before each value.
  const ROLES = {table: "table", thead: "rowgroup", tbody: "rowgroup", tr: "row", "thead th": "columnheader", "tbody th": "rowheader", td: "cell"};
  const widths = new WeakMap();
  function narrow(box, columnsChanged = true) {
    const scroll = box.querySelector(".scroll");
    if (!columnsChanged && widths.get(box) === scroll.clientWidth) return;
    widths.set(box, scroll.clientWidth);
    scroll.classList.remove("stacked");
    if (innerWidth > 600 || scroll.scrollWidth <= scroll.clientWidth) return;
    const titles = [...box.querySelectorAll("thead th")].map((head) => head.textContent);
    box.querySelectorAll("tbody td").forEach((cell) => { cell.dataset.title = titles[cell.cellIndex]; });
    // Cells that are no longer displayed as a table lose their roles for screen readers, unless they are stated.
    for (const [selector, role] of Object.entries(ROLES)) scroll.querySelectorAll(selector).forEach((one) => one.setAttribute("role", role));
    scroll.classList.add("stacked");
  }
  const columnName = (head) => head.dataset.name ?? head.textContent;
  function setUp(box) {
    const tools = box.querySelector(".tools");
    const all = box.querySelector("[data-all]");
    if (all) toggle(box, all, "all-rows", "rows");
    box.querySelectorAll("thead th").forEach((head, at) => {
      const button = make("button", {type: "button"}, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const direction = head.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
        sort(box, at, direction);
        remember(`${box.id}.sort`, (direction === "descending" ? "-" : "") + columnName(head));
      });
    });
    const [, sign, name] = /^(-?)(.*)$/.exec(recall(`${box.id}.sort`));
    const sorted = [...box.querySelectorAll("thead th")].findIndex((head) => columnName(head) === name);
    if (sorted >= 0) sort(box, sorted, sign ? "descending" : "ascending");
    narrow(box);
    // A fold opens, a phone is turned, or a script puts the table on its page.
    new ResizeObserver(() => requestAnimationFrame(() => narrow(box, false))).observe(box.querySelector(".scroll"));
    if (!tools) return;
    const field = tools.querySelector("[data-filter]");
    if (field) {
      field.value = recall(`${box.id}.q`);
      field.addEventListener("input", () => {
        box.classList.toggle("all-rows", Boolean(field.value) || recall(`${box.id}.rows`) === "1");
        filter(box, field.value);
        remember(`${box.id}.q`, field.value);
      });
      if (field.value) { box.classList.add("all-rows"); filter(box, field.value); }
    }
    tools.append(make("button", {type: "button", "data-csv": true, onclick: () => download(box)}, "CSV"));
    const more = tools.querySelector("[data-more]"), references = tools.querySelector("[data-references]");
    if (more) toggle(box, more, "wide", "more");
    if (references) toggle(box, references, "all", "baselines");
  }

  // --- charts
  function theme() {
    const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(name).trim();
    const text = {labelColor: of("--ink"), titleColor: of("--soft"), labelFontSize: 12, titleFontSize: 12};
    return {
      background: "transparent", font: "system-ui, sans-serif", view: {stroke: null},
      axis: {...text, gridColor: of("--rule"), domainColor: of("--soft"), tickColor: of("--soft")}, header: text,
      // On a phone the labels of the axis leave the legend no room to its right.
      legend: {...text, layout: {bottom: {anchor: window.innerWidth < 500 ? "end" : "start", direction: "vertical"}}},
      mark: {color: of("--accent")}, text: {color: of("--soft")}, rule: {color: of("--soft")},
      range: {category: [of("--warm"), of("--good"), of("--accent"), of("--bad"), of("--soft")]},
    };
  }
  // What the library draws: without layers that have no data, as high as its rows need.
  function definitionOf(figure) {
    const {rows, lines} = JSON.parse(figure.querySelector("script").textContent);
    const cell = (name, value) => name === "href" ? root + value : typeof value === "string" ? visible(value) : value;
    const shown = (row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, cell(name, value)]));
    const definition = structuredClone(dtef.charts[figure.dataset.chart]);
    const hasEnds = rows.some(({low}) => typeof low === "number");
    const hasData = ({data, encoding}) => data && data.name === "lines" ? lines.length : hasEnds || !(encoding && encoding.x2);
    if (definition.layer) definition.layer = definition.layer.filter(hasData);
    if (definition.height.step) definition.height = definition.height.step * new Set(rows.map(({label, row}) => label ?? row)).size;
    return {...definition, datasets: {rows: rows.map(shown), lines: lines.map(shown)}};
  }
  function drawAll() {
    if (!window.vegaEmbed) return;
    const definitions = new Map();
    const seen = new IntersectionObserver((entries) => entries.filter(({isIntersecting}) => isIntersecting).forEach(({target}) => {
      seen.unobserve(target);
      const options = {renderer: "svg", actions: {export: true, source: false, compiled: false, editor: false}, config: theme(), loader: {target: "_self"}};
      vegaEmbed(target.querySelector(".canvas"), definitions.get(target), options);
    }), {rootMargin: "400px"});
    document.querySelectorAll("figure[data-chart]").forEach((figure) => {
      const definition = definitionOf(figure);
      definitions.set(figure, definition);
      // Room for the chart with its axis and legend, so that nothing jumps when it is drawn.
      figure.querySelector(".canvas").style.minHeight = `${definition.height + 40 + 16 * definition.datasets.lines.length}px`;
      seen.observe(figure);
    });
  }

  function openTarget() {
    const target = document.getElementById(location.hash.slice(1));
    if (target) target.querySelectorAll(":scope > .folded").forEach((fold) => { fold.open = true; });
  }
  function start() {
    openTarget();
    addEventListener("hashchange", openTarget);
    document.querySelectorAll("div.table").forEach(setUp);
    drawAll();
    addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((fold) => { fold.open = true; }));
    document.addEventListener("keydown", (event) => {
      if (event.key !== "/" || /^(input|select|textarea)$/i.test(event.target.tagName)) return;
      const field = document.querySelector("[data-filter]");
      if (field) { event.preventDefault(); field.focus(); }
    });
  }
  document.addEventListener("DOMContentLoaded", start);
  return {root, load, receive, make, visible, remember, recall, compared, comparedFirst, setUp, charts: {}};
})();
