// The explorer of a suite: a list of all items with filters, and the opened item with what every model answered.
"use strict";
document.addEventListener("DOMContentLoaded", async () => {
  const box = document.getElementById("explorer");
  if (!box) return;
  const {make, remember, recall} = dtef, folder = box.dataset.folder, LISTED = 100, LETTERS = "ABCDEFGHIJ";
  const byId = (name) => document.getElementById(`item-${name}`), list = byId("list"), more = byId("more"), article = document.getElementById("item");
  const field = Object.fromEntries(["q", "part", "model", "outcome", "measure"].map((name) => [name, byId(name)]));
  const index = await dtef.load(`${folder}/index.js`).catch((error) => { box.replaceWith(make("p", {class: "alarm"}, String(error.message))); });
  if (!index) return;
  const plain = (word) => String(word).replace(/_/g, " "), bdi = (text) => make("bdi", {}, text), soft = (...parts) => make("span", {class: "soft"}, ...parts);
  const STATES = {unparseable: "could not be read", missing: "nothing to score", no_call: "does not call the function", multi: "names several options", judge_failed: "the judge failed"};
  const state = (word) => STATES[word] || plain(word);
  const number = (value) => value === undefined || value === null ? "–" : Number(value.toFixed(3)).toString();
  const said = (text, kind) => text === undefined ? null : make("div", {class: `said ${kind || ""}`, dir: "auto", tabindex: "0"}, text);
  const fold = (title, ...parts) => make("details", {}, make("summary", {}, title), ...parts);
  let texts = null, wanted = [], listed = LISTED, chosen = null, turn = 0;

  const keep = (name, value) => { if (recall(name) !== value) remember(name, value); };

  // --- which items are wanted
  const measure = () => Math.max(0, index.measures.findIndex(([id]) => id === field.measure.value));
  const scoreOf = (model, at) => index.scores[measure()]?.[model]?.[at] ?? null;
  const outcomeOf = (score) => score === null ? "" : score === -2 ? "none" : score === -1 ? "unread" : score >= 0.5 ? "right" : "wrong";
  const isWrong = (outcome) => outcome === "wrong" || outcome === "unread";
  function fits(at, outcome, model) {
    const all = index.models.map((_, one) => outcomeOf(scoreOf(one, at)));
    const own = model < 0 ? all.filter(Boolean) : all.slice(model, model + 1).filter(Boolean);
    if (!own.length) return false;
    if (outcome === "right") return own.every((one) => one === "right");
    if (outcome === "wrong") return own.every(isWrong);
    if (outcome !== "differ") return own.includes(outcome);
    const others = all.filter((one, other) => other !== model && (one === "right" || isWrong(one))), right = others.filter((one) => one === "right").length;
    if (model < 0) return right > 0 && right < others.length;
    return own[0] === "right" ? right * 2 < others.length : isWrong(own[0]) && right * 2 > others.length;
  }
  async function choose() {
    const mine = ++turn, words = field.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    const part = index.parts.findIndex(([key]) => key === field.part.value), model = index.models.indexOf(field.model.value), outcome = field.outcome.value;
    if (words.length && !texts) texts = (await dtef.load(`${folder}/words.js`)).map((text, at) => `${index.ids[at]} ${text}`.toLowerCase());
    if (mine !== turn) return;
    wanted = index.ids.map((_, at) => at).filter((at) => (part < 0 || index.part[at] === part) && (!outcome || fits(at, outcome, model))
      && words.every((word) => texts[at].includes(word)));
    listed = LISTED;
    for (const name in field) keep(name, name === "measure" && measure() === 0 ? "" : field[name].value);
    byId("count").textContent = `${wanted.length.toLocaleString("en")} of ${index.ids.length.toLocaleString("en")} items`;
    showList();
    if (!wanted.includes(chosen)) await open(wanted[0] ?? null); else if (chosen !== null) await open(chosen);
  }

  // --- the list
  function verdict(at) {
    const model = index.models.indexOf(field.model.value);
    if (model >= 0) return {right: "right", wrong: "wrong", unread: "not read", none: "no score"}[outcomeOf(scoreOf(model, at))] || "not asked";
    const outcomes = index.models.map((_, one) => outcomeOf(scoreOf(one, at))).filter((one) => one && one !== "none");
    return outcomes.length ? `${outcomes.filter((one) => one === "right").length} of ${outcomes.length} right` : "no score";
  }
  function row(at) {
    const button = make("button", {type: "button", "data-at": at, "aria-current": at === chosen ? "true" : null, onclick: () => open(at, true)},
      bdi(index.lines[at]), make("span", {class: "soft"}, bdi(index.ids[at]), ` · ${verdict(at)}`));
    return make("li", {}, button);
  }
  function showList() {
    list.replaceChildren(...wanted.slice(0, listed).map(row));
    more.hidden = wanted.length <= listed;
    more.textContent = `Show ${Math.min(LISTED, wanted.length - listed)} more`;
  }

  // --- the opened item
  async function open(at, isAsked) {
    chosen = at;
    if (isAsked) keep("item", index.ids[at]);
    list.querySelectorAll("button").forEach((one) => one.toggleAttribute("aria-current", Number(one.dataset.at) === at));
    if (at === null) { article.replaceChildren(make("p", {class: "soft"}, "No item matches.")); return; }
    const file = Math.floor(at / index.size);
    const data = await dtef.load(`${folder}/items-${file + 1}.js`);
    if (chosen !== at) return;
    show(data.items[at - file * index.size], at, data.documents);
    if (isAsked) article.scrollIntoView({block: "nearest"});
  }
  function show(item, at, documents) {
    const place = wanted.indexOf(at);
    const step = (words, other) => make("button", {type: "button", disabled: other === undefined, onclick: () => open(other, true)}, words);
    const facts = [index.parts.length > 1 ? index.parts[index.part[at]][1] : "", item.id, item.type, item.source_line ? `line ${item.source_line} of the file` : "", ...(item.flags || []).map(plain)];
    const responses = dtef.comparedFirst(item.said || [], (one) => one.model, [field.model.value, ...dtef.compared()]);
    const several = new Set(responses.map((one) => one.snapshot)).size > 1;
    article.replaceChildren(...[
      make("p", {class: "tools"}, step("Previous", wanted[place - 1]), step("Next", place < 0 ? undefined : wanted[place + 1])),
      make("h3", {}, place < 0 ? "Item" : `Item ${place + 1} of ${wanted.length}`), make("p", {class: "soft"}, bdi(facts.filter(Boolean).join(" · "))),
      said(item.text, item.type), options(item), make("h4", {}, "Expected"), expected(item),
      item.solution ? fold("Worked answer from the file", said(item.solution, item.type)) : null,
      item.quotes ? fold("Evidence named in the file", ...item.quotes.map((one) => make("p", {}, make("q", {}, bdi(one.text)), " ", soft(bdi(one.file))))) : null,
      ...(item.asked || []).map((asked) => context(asked, responses, documents)),
      make("h4", {}, `Responses (${responses.length})`),
      item.left_out && responses.length ? make("p", {class: "soft"}, "The texts of these responses are not in the sample; the table qa_responses has them.") : null,
      make("div", {class: "side-by-side"}, ...responses.map((one) => response(one, item, several))),
    ].filter(Boolean));
  }
  function options(item) {
    const asked = (item.asked || []).filter((one) => one.order);
    const shown = (at) => asked.map((one) => `${LETTERS[one.order.indexOf(at)] ?? "–"} in “${one.condition || "asked directly"}”`).join(", ");
    return item.options ? make("ol", {type: "A"}, ...item.options.map((text, at) => make("li", {}, bdi(text),
      item.type === "choice" && item.expected === LETTERS[at] ? make("strong", {}, " ✓ expected") : null, asked.length ? soft(` (shown as ${shown(at)})`) : null))) : null;
  }
  function expected(item) {
    if (item.expected === undefined) return make("p", {class: "soft"}, "No expected answer is stored.");
    const option = item.type === "choice" ? item.options?.[LETTERS.indexOf(item.expected)] : undefined;
    return said(option === undefined ? item.expected : `${item.expected}: ${option}`, item.type);
  }

  // --- passages, with quotations marked where responses found them; places count characters
  function marked(text, spans) {
    const letters = Array.from(text);
    const edges = [...new Set([0, letters.length, ...spans.flatMap((one) => [one.begin, one.end])])].filter((at) => at >= 0 && at <= letters.length).sort((a, b) => a - b);
    return edges.slice(1).map((end, at) => {
      const over = spans.filter((one) => one.begin <= edges[at] && one.end >= end), piece = letters.slice(edges[at], end).join("");
      return over.length ? make("mark", {title: `quoted by ${over.map((one) => one.who).join(", ")}`}, piece) : piece;
    });
  }
  function context(asked, responses, documents) {
    if (!asked.chunks && !asked.problem) return null;
    const passages = (asked.chunks || []).map((chunk) => {
      const spans = responses.filter((one) => one.condition === asked.condition).flatMap((one) => (one.quoted || [])
        .filter((quote) => quote.doc_id === chunk.doc_id && quote.begin !== undefined).map((quote) => ({begin: quote.begin, end: quote.end, who: one.model})));
      const known = documents[chunk.doc_id] || {}, text = chunk.page_content ?? known.text;
      const notes = [chunk.contains_quote ? "contains evidence" : "", spans.length ? "quoted" : ""].filter(Boolean).join(" · ");
      return fold(make("span", {}, `${chunk.rank ?? 0}: `, bdi(chunk.doc_id), soft(notes ? ` ${notes} ` : " ", known.about ? bdi(known.about) : null)),
        text === undefined ? make("p", {class: "soft"}, "Its text is not stored.") : make("div", {class: "said", dir: "auto", tabindex: "0"}, ...marked(text, spans)));
    });
    return make("div", {}, make("h4", {}, "Passages shown", index.conditions > 1 ? soft(` ${asked.condition || ""}`) : null),
      asked.problem ? make("p", {class: "alarm"}, `Retrieval failed: ${asked.problem}`) : null, ...passages);
  }

  // --- one response: what was written, how it was read, programs, quotations, judges
  function readAs(detail) {
    try {
      const held = JSON.parse(detail);
      if (held && typeof held === "object" && !Array.isArray(held)) {
        return Object.entries(held).map(([name, value]) => `${plain(name)}: ${typeof value === "string" ? value : value === null ? "none" : JSON.stringify(value)}`).join("; ");
      }
    } catch { /* shown as it is */ }
    return detail;
  }
  function score(one, isRun) {  // a program's result is above its score
    const notes = [one.status ? state(one.status) : "", one.read_by && !isRun ? `read by ${plain(one.read_by)}` : "", ...(one.flags || []).map(state)].filter(Boolean).join(" · ");
    return make("li", {}, `${one.metric} `, make("strong", {}, number(one.score)), soft(notes ? ` ${notes}` : ""),
      one.detail && !isRun ? make("div", {}, bdi(readAs(one.detail))) : null, one.reason && !isRun ? make("div", {class: "soft"}, bdi(one.reason)) : null, make("div", {class: "soft"}, one.measured_by));
  }
  function judge(one) {
    const notes = [one.score === undefined ? `no score: ${plain(one.reason || "unknown")}` : "", one.attempts > 1 ? "second attempt" : "", one.self_judged ? "judge and model have the same maker" : ""];
    return make("li", {}, make("strong", {}, number(one.score)), ` ${plain(one.evaluator || "judge")} `, soft(bdi(one.judge_model || ""), ` ${notes.filter(Boolean).join(" · ")}`),
      one.explanation ? make("div", {}, bdi(one.explanation)) : null, one.error ? make("div", {class: "soft"}, bdi(one.error)) : null,
      one.raw ? fold("What the judge wrote", ...one.raw.map((text) => said(text))) : null);
  }
  function quotation(one) {
    const state = one.exact ? "found exactly" : one.relaxed ? "found except for case, punctuation or spaces" : plain(one.reason || "not found");
    return make("li", {}, one.quote === undefined ? make("em", {}, "nothing quoted") : make("q", {}, bdi(one.quote)), soft(` ${state} · source ${one.source_index ?? "none"}`));
  }
  function run(one) {
    const facts = [one.isolation, one.python ? `Python ${one.python}` : "", one.wall_s === undefined ? "" : `${number(one.wall_s)} s`];
    return make("div", {}, make("strong", {}, plain(one.verdict || "no verdict")), soft(` ${facts.filter(Boolean).join(" · ")}`), said(one.message));
  }
  function response(one, item, several) {
    const facts = [index.conditions > 1 ? one.condition : "", several ? one.snapshot : "", one.draw ? `draw ${one.draw}` : "", one.ended ? `ended: ${one.ended}` : ""];
    const rows = (title, values, shown) => values ? make("div", {}, make("h6", {}, title), make("ul", {}, ...values.map(shown))) : null;
    return make("div", {class: "card"}, make("h5", {}, bdi(one.model)), make("p", {class: "soft"}, facts.filter(Boolean).join(" · ")),
      one.state ? make("p", {class: "alarm"}, `${plain(one.state)}: no response`) : said(one.text, item.type),
      one.length && one.text ? make("p", {class: "soft"}, `The first ${[...one.text].length.toLocaleString("en")} of ${one.length.toLocaleString("en")} characters.`) : null,
      one.error ? make("p", {class: "soft"}, one.error) : null, ...(one.run || []).map(run),
      one.scores ? make("ul", {}, ...one.scores.map((own) => score(own, Boolean(one.run) && own.scorer === "code_execution"))) : make("p", {class: "soft"}, "Not scored."), rows("Quotations", one.quoted, quotation), rows("Judges", one.judged, judge));
  }

  // --- start: the address says what is shown
  function fill(select, options) {
    select.append(...options.map(([value, words]) => make("option", {value}, words)));
    select.parentElement.hidden = options.length < 2;
  }
  async function restore() {
    for (const name in field) field[name].value = recall(name);
    for (const select of box.querySelectorAll("select")) if (select.selectedIndex < 0) select.selectedIndex = 0;
    const asked = recall("item"), at = asked ? index.ids.indexOf(asked) : -1;
    chosen = at >= 0 ? at : null;
    await choose();
    if (at < 0) return;
    if (chosen !== at) await open(at);
    article.scrollIntoView({block: "start"});
  }
  fill(field.part, index.parts);
  fill(field.model, index.models.map((name) => [name, name]));
  fill(field.measure, index.measures);
  for (const name in field) field[name].addEventListener("input", choose);
  more.addEventListener("click", () => { listed += LISTED; showList(); });
  window.addEventListener("hashchange", () => { if (location.hash.includes("=")) restore(); });
  document.getElementById("item-sample").remove();  // what can be read without scripts
  box.hidden = false;
  await restore();
});
