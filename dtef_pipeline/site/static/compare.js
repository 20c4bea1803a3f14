// Two chosen models: ranks, the tested difference of each family, and the items on which they differ most.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const {make} = dtef, out = document.getElementById("compared");
  const {families} = JSON.parse(document.getElementById("manifest").textContent);
  const choice = document.getElementById("choice"), fields = {a: document.getElementById("model-a"), b: document.getElementById("model-b")};
  const MOST = 25;
  choice.hidden = false;
  const names = [...fields.a.options].map((one) => one.value);
  const company = (one) => families.reduce((sum, {places}) => sum + (places[one] ? Object.keys(places).length - 1 : 0), 0);
  fields.a.value = names.includes(dtef.recall("a")) ? dtef.recall("a") : [...names].sort((x, y) => company(y) - company(x))[0];
  const alike = (one, other) => families.filter(({places}) => places[one] && places[other]).length;
  const beside = names.filter((one) => one !== fields.a.value).sort((x, y) => alike(fields.a.value, y) - alike(fields.a.value, x));
  fields.b.value = names.includes(dtef.recall("b")) ? dtef.recall("b") : beside[0] ?? names[0];
  const number = (value, sign) => value === null || value === undefined ? "–" : (sign && value > 0 ? "+" : "") + value.toFixed(3);
  const cell = (text, kind, key) => make("td", {class: kind || "score", "data-key": key ?? text}, text);

  function tested(family, a, b) {
    const rows = family.tested.flatMap(([one, other, ends, verdict, setting]) => {
      if (one === a && other === b) return [[setting, ends, verdict]];
      if (one === b && other === a) {
        const turned = ends && [-ends[0], ends[2] === null ? null : -ends[2], ends[1] === null ? null : -ends[1]];
        return [[setting, turned, {better: "worse", worse: "better"}[verdict] || verdict]];
      }
      return [];
    });
    if (!rows.length) return make("p", {class: "soft"}, "The difference between these two is not tested.");
    const words = (ends, verdict, setting) => {
      const interval = ends && ends[1] !== null ? ` (${number(ends[1], true)} to ${number(ends[2], true)})` : "";
      const said = {better: `${a} is better than ${b}`, worse: `${a} is worse than ${b}`, equivalent: `${a} and ${b} are equivalent`,
        undecided: `The data do not decide between ${a} and ${b}`, "no clear difference": `There is no clear difference between ${a} and ${b}`};
      return `${said[verdict] || `The difference between ${a} and ${b} is not tested`}: ${number(ends && ends[0], true)}${interval}${setting ? " · " + setting : ""}`;
    };
    return make("ul", {}, ...rows.map(([setting, ends, verdict]) => make("li", {}, make("bdi", {}, words(ends, verdict, setting)))));
  }

  async function items(family, a, b) {
    if (!family.files[a] || !family.files[b]) return null;
    const [all, one, other] = await Promise.all([family.items, family.files[a], family.files[b]].map(dtef.load));
    const scores = new Map(other.at.map((at, place) => [at, other.score[place]]));
    const both = one.at.flatMap((at, place) => scores.has(at) ? [[at, one.score[place], scores.get(at)]] : []);
    const wins = both.filter(([, x, y]) => x > y).length, losses = both.filter(([, x, y]) => x < y).length;
    const differ = both.filter(([, x, y]) => x !== y).sort((x, y) => Math.abs(y[1] - y[2]) - Math.abs(x[1] - x[2]));
    const link = (page) => dtef.root + page + (page.includes("#") ? `&${new URLSearchParams({a, b})}` : "");
    const rows = differ.slice(0, MOST).map(([at, x, y]) => make("tr", {},
      make("th", {scope: "row", class: "long"}, all.page[at] ? make("a", {href: link(all.page[at])}, make("bdi", {}, all.label[at])) : make("bdi", {}, all.label[at])),
      cell(number(x), "score", x), cell(number(y), "score", y), cell(number(x - y, true), "score", x - y)));
    const box = make("div", {class: "table", id: `items-${family.name}`},
      make("p", {}, `Of ${both.length.toLocaleString("en")} items with scores for both, ${a} is better on ${wins.toLocaleString("en")}, ${b} on ${losses.toLocaleString("en")}; on ${(both.length - wins - losses).toLocaleString("en")} they are equal.` + (differ.length > MOST ? ` The ${MOST} largest differences:` : "")),
      family.note ? make("p", {class: "soft"}, family.note) : null,
      make("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": "Items"}, make("table", {},
        make("caption", {}, "Items, largest difference first"),
        make("thead", {}, make("tr", {}, ...["Item", a, b, "A minus B"].map((text, at) => make("th", {scope: "col", class: at ? "score" : "long"}, text)))),
        make("tbody", {}, ...rows))));
    if (rows.length) dtef.setUp(box);
    return rows.length ? box : box.querySelector("p");
  }

  let turn = 0;
  async function show() {
    const [a, b] = [fields.a.value, fields.b.value], mine = ++turn;
    dtef.remember("a", a);
    dtef.remember("b", b);
    if (a === b) { out.replaceChildren(make("p", {}, "Choose two different models.")); return; }
    const parts = [];
    for (const family of families) {
      if (!family.places[a] || !family.places[b]) continue;
      const place = (name) => `${name}: ${family.places[name][0] ? "rank " + family.places[name][0] + ", " : ""}${number(family.places[name][1][0])}`;
      const found = await items(family, a, b).catch((error) => make("p", {class: "alarm"}, String(error.message)));
      parts.push(make("section", {}, make("h2", {}, family.title), make("p", {class: "answer"}, `${place(a)}; ${place(b)}.`), tested(family, a, b), found));
    }
    if (mine === turn) out.replaceChildren(...(parts.length ? parts : [make("p", {}, "No family has scores for both models.")]));
  }
  fields.a.addEventListener("change", show);
  fields.b.addEventListener("change", show);
  show();
});
