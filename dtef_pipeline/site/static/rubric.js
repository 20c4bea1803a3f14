// Rubrics: the weight of similarity, and responses side by side with their verdicts, which are loaded when a prompt is opened.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const {make} = dtef, digits = (value, n = 2) => value === null || value === undefined ? "–" : value.toFixed(n);

  // --- the weight of similarity: scores, ranks and order follow it
  const weight = document.querySelector("[data-weight]");
  function weigh(beta) {
    const body = document.querySelector("#weights tbody"), ranked = (row) => row.dataset.ranked !== undefined;
    const score = (row) => Number(row.dataset.at) + beta * Number(row.dataset.slope);
    const rows = [...body.rows].sort((a, b) => ranked(b) - ranked(a) || score(b) - score(a));
    rows.forEach((row, at) => {
      row.cells[1].textContent = ranked(row) ? at + 1 : "–";
      row.cells[2].textContent = digits(score(row), 3);
    });
    body.append(...rows);
    weight.querySelector("output").textContent = beta.toFixed(2);
  }
  if (weight) {
    const slider = weight.querySelector("input"), usual = weight.querySelector("button");
    const set = (beta) => { slider.value = beta; weigh(beta); dtef.remember("beta", beta === Number(usual.dataset.beta) ? "" : String(beta)); };
    weight.hidden = false;
    slider.addEventListener("input", () => set(Number(slider.value)));
    usual.addEventListener("click", () => set(Number(usual.dataset.beta)));
    if (dtef.recall("beta")) weight.closest("details").open = true;
    if (dtef.recall("beta")) set(Math.min(Math.max(Number(dtef.recall("beta")) || 0, 0), 1));
  }

  // --- responses side by side
  const said = (text) => make("div", {class: "said", dir: "auto"}, text || "No text.");
  const badge = (score) => make("span", {class: `badge s${score === null ? "" : Math.min(9, Math.floor(score * 10 + 1e-9))}`}, digits(score));
  function verdict(data, at, point) {
    const [words, unwanted] = data.criteria[at], [score, state, explained, judgements] = point;
    return make("li", {}, badge(score), " ", unwanted ? make("span", {class: "flag"}, "should not") : null, make("bdi", {}, ` ${at + 1}. ${words}`),
      ...[state, explained].filter(Boolean).map((text) => make("p", {class: "soft"}, make("bdi", {}, text))),
      make("ul", {}, ...judgements.map(([judge, class_, value, reason]) => make("li", {},
        make("bdi", {class: "soft"}, judge), ": ", make("strong", {}, class_), value === null ? "" : ` ${digits(value)}`,
        reason ? make("span", {class: "reason"}, make("bdi", {}, " " + reason)) : null))));
  }
  function card(data, one) {
    const turns = one.turns.length ? make("details", {}, make("summary", {}, "Whole conversation"),
      ...one.turns.flatMap(([role, text]) => [make("p", {class: "turn"}, role), said(text)])) : null;
    const verdicts = one.points.flatMap((point, at) => point ? [verdict(data, at, point)] : []);
    return make("article", {}, make("h4", {}, make("bdi", {}, one.label)),
      make("p", {class: "soft"}, one.scores.map(([name, value]) => `${name} ${digits(value)}`).join(" · ")),
      ...one.states.map((text) => make("p", {class: "alarm"}, make("bdi", {}, text))), said(one.text), turns,
      verdicts.length ? make("ol", {class: "verdicts"}, ...verdicts) : null);
  }
  function sideBySide(box, data) {
    const count = data.responses.length, all = data.responses.map((one) => one.label), prompt = box.dataset.prompt;
    const [open, ...kept] = dtef.recall("responses").split(".");
    const placed = (wanted, name) => wanted.map((one) => data.responses.findIndex((other) => other[name] === one)).filter((at) => at >= 0);
    let chosen = open === prompt ? placed(kept, "id") : placed(dtef.compared(), "model");
    if (!chosen.length) chosen = count > 1 ? [0, count - 1] : [0];
    const tools = make("div", {class: "tools"}), cards = make("div", {class: "side-by-side", "aria-live": "polite"});
    function show(remembered) {
      tools.replaceChildren(...chosen.map((at, place) => {
        const field = make("select", {}, ...all.map((label, option) => make("option", {value: option, selected: option === at}, label)));
        field.addEventListener("change", () => { chosen[place] = Number(field.value); show(true); });
        return make("label", {}, `Response ${place + 1} `, field);
      }));
      const more = make("button", {type: "button", onclick: () => { chosen.push(all.findIndex((_, at) => !chosen.includes(at))); show(true); }}, "Add one");
      const less = make("button", {type: "button", onclick: () => { chosen.pop(); show(true); }}, "Remove last");
      if (chosen.length < count) tools.append(more);
      if (chosen.length > 1) tools.append(less);
      cards.replaceChildren(...chosen.map((at) => card(data, data.responses[at])));
      if (remembered) dtef.remember("responses", [prompt, ...chosen.map((at) => data.responses[at].id)].join("."));
    }
    show(false);
    box.replaceChildren(make("h3", {}, `${all.length} responses, side by side`), tools, cards);
  }
  for (const box of document.querySelectorAll("[data-responses]")) {
    const part = box.closest("details");
    let asked = false;
    const load = () => {
      if (!part.open || asked) return;
      asked = true;
      dtef.load(box.dataset.responses).then((data) => sideBySide(box, data), (error) => box.replaceChildren(make("p", {class: "alarm"}, error.message)));
    };
    part.addEventListener("toggle", load);
    load();
  }

  // --- a link to a prompt opens it
  function openTo() {
    const prompt = dtef.recall("responses").split(".")[0] || dtef.recall("prompt");
    const target = document.getElementById(prompt ? `prompt-${prompt}` : location.hash.slice(1));
    const part = target && target.closest("details.prompt");
    if (part) { part.open = true; part.scrollIntoView(); }
  }
  window.addEventListener("hashchange", openTo);
  openTo();
});
