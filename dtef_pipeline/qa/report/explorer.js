// ---- items: one is chosen, and everything that was said of it is shown as text ----

(() => {
  const held = document.getElementById("explorer-data");
  if (!held) return;
  const data = JSON.parse(held.textContent);
  const byId = id => document.getElementById(id);
  const documents = new Map((data.documents || []).map(one => [one.id, one]));
  const LETTERS = "ABCDEFGHIJ", LISTED = 100, CARDS = 24;
  const field = {};
  for (const name of ["words", "model", "way", "metric", "only"]) field[name] = byId(`explorer-${name}`);
  const list = byId("explorer-list"), more = byId("explorer-more"), article = byId("explorer-item"), told = byId("explorer-told");
  let wanted = [], listed = LISTED, chosen = null;

  // Nothing here is markup: a part is an element, or text.
  function make(tag, kind, ...parts) {
    const node = document.createElement(tag);
    if (kind) node.className = kind;
    node.append(...parts.filter(part => part !== null && part !== undefined && part !== ""));
    return node;
  }
  const whole = text => Array.isArray(text) ? text[0] : text === undefined ? "" : text;
  const cutNote = text => Array.isArray(text)
    ? make("p", "count", `The first ${[...text[0]].length.toLocaleString("en")} of ${text[1].toLocaleString("en")} characters; the tables hold all of it.`) : null;
  const isolated = text => make("bdi", "", whole(text));
  function said(text, kind) {
    if (text === undefined || whole(text) === "") return make("p", "count", "No text.");
    const box = make("div", `said ${kind || ""}`, whole(text));
    box.dir = "auto";
    box.tabIndex = 0;
    const both = make("div", "", box, cutNote(text));
    return both;
  }
  const number = (value, places) => value === undefined || value === null ? "–" : Number(value).toFixed(places === undefined ? 2 : places);
  const plain = word => String(word).replace(/_/g, " ");
  const flags = names => (names || []).map(name => make("span", "flag", plain(name)));
  function badge(score) {
    const known = score !== undefined && score !== null;
    return make("span", known ? `badge h${Math.min(9, Math.max(0, Math.floor(score * 10 + 1e-9)))}` : "badge none", known ? number(score) : "–");
  }
  const fold = (heading, open, ...parts) => {
    const part = make("details", "", make("summary", "", heading), ...parts);
    part.open = open;
    return part;
  };

  // ---- which items and responses are wanted ----

  const chosenOf = name => field[name] && field[name].value !== "" ? Number(field[name].value) : null;
  const measured = () => chosenOf("metric") || 0;
  function responsesOf(item) {
    const model = chosenOf("model"), way = chosenOf("way");
    return (item.said || []).filter(one => (model === null || one.model === model) && (way === null || one.way === way));
  }
  const scoreIn = (response, metric) => (response.scores || []).find(one => one.metric === metric);
  const known = values => values.filter(value => value !== undefined && value !== null);
  const scoresOf = item => known(responsesOf(item).map(one => (scoreIn(one, measured()) || {}).score));
  const anyScore = (item, test) => responsesOf(item).some(one => (one.scores || []).some(test));
  const KINDS = {
    "": () => true,
    asked: item => responsesOf(item).length > 0,
    low: item => scoresOf(item).some(score => score < 0.5),
    none: item => scoresOf(item).length > 0 && scoresOf(item).every(score => score < 0.5),
    all: item => scoresOf(item).length > 0 && scoresOf(item).every(score => score >= 0.5),
    differ: item => Math.max(...scoresOf(item)) - Math.min(...scoresOf(item)) >= 0.5,
    unread: item => anyScore(item, one => one.status === "unparseable"),
    null: item => responsesOf(item).some(one => { const own = scoreIn(one, measured()); return !own || own.score === undefined; }),
    flagged: item => Boolean(item.flags) || anyScore(item, one => one.flags),
    invented: item => responsesOf(item).some(one => (one.quoted || []).some(quote => !quote.found)),
  };
  const texts = new Map();
  function textOf(item) {
    if (!texts.has(item)) {
      const parts = [item.id, item.type, item.text, ...(item.options || []), item.expected, ...(item.said || []).map(one => one.text)];
      texts.set(item, parts.map(whole).join(" ").toLowerCase());
    }
    return texts.get(item);
  }

  function choose() {
    const sought = words(field.words.value), fits = KINDS[field.only.value];
    wanted = data.items.filter(item => fits(item) && sought.every(word => textOf(item).includes(word)));
    listed = LISTED;
    told.textContent = `${wanted.length} of ${data.items.length} items${data.total > data.items.length ? " on this page" : ""}`;
    showList();
    if (!wanted.includes(chosen)) show(wanted[0] || null);
    else show(chosen);
  }

  // ---- the list ----

  function meansOf(item) {
    const held = new Map();
    for (const one of responsesOf(item)) {
      const own = (scoreIn(one, measured()) || {}).score;
      held.set(one.model, [...(held.get(one.model) || []), own]);
    }
    return [...held].map(([model, scores]) => {
      const there = known(scores);
      return [model, there.length ? there.reduce((sum, one) => sum + one, 0) / there.length : null];
    });
  }

  function row(item) {
    const words = [...whole(item.text).slice(0, 400).trim().replace(/\s+/g, " ")];
    const line = words.length > 90 ? words.slice(0, 89).join("") + "…" : words.join("");
    const marks = meansOf(item).slice(0, 12).map(([model, mean]) => {
      const mark = badge(mean);
      mark.title = `${data.models[model].name}: ${mean === null ? "no score" : number(mean)}`;
      return mark;
    });
    const button = make("button", "", make("span", "id", isolated(item.id)), make("span", "line", isolated(line)), make("span", "marks", ...marks));
    button.type = "button";
    button.addEventListener("click", () => { show(item); article.scrollIntoView({block: "nearest"}); article.focus({preventScroll: true}); });
    const node = make("li", "", button);
    node.item = item;
    return node;
  }

  function showList() {
    list.replaceChildren(...wanted.slice(0, listed).map(row));
    more.hidden = wanted.length <= listed;
    more.textContent = `Show ${Math.min(LISTED, wanted.length - listed)} more`;
    markChosen();
  }
  function markChosen() {
    for (const node of list.children) {
      const button = node.firstElementChild;
      if (node.item === chosen) button.setAttribute("aria-current", "true");
      else button.removeAttribute("aria-current");
    }
  }

  // ---- one item ----

  function optionsOf(item) {
    if (!item.options) return null;
    const asked = (item.asked || []).filter(one => one.order);
    const head = make("tr", "", ...["In the file", ...asked.map(one => `Shown: ${data.ways[one.way]}`), "Option"].map(text => {
      const cell = make("th", text === "Option" ? "text" : "", text);
      cell.scope = "col";
      return cell;
    }));
    const rows = item.options.map((option, at) => {
      const isRight = item.type === "choice" && whole(item.expected) === LETTERS[at];
      const shown = asked.map(one => make("td", "", LETTERS[one.order.indexOf(at)] || "–"));
      const text = make("td", "text", isolated(option), isRight ? make("span", "flag right", "expected") : null, cutNote(option));
      return make("tr", isRight ? "right" : "", make("td", "", LETTERS[at] || String(at + 1)), ...shown, text);
    });
    const table = make("table", "", make("caption", "", asked.length ? "Options, with the letters that they had in the file and as shown" : "Options"),
      make("thead", "", head), make("tbody", "", ...rows));
    const box = make("div", "scroll", table);
    box.tabIndex = 0;
    box.setAttribute("role", "region");
    box.setAttribute("aria-label", "Options");
    return box;
  }

  function expectedOf(item) {
    if (item.expected === undefined) return make("p", "count", "The tables name no expected answer.");
    const option = item.type === "choice" && item.options ? item.options[LETTERS.indexOf(whole(item.expected))] : undefined;
    return said(option === undefined ? item.expected : `${whole(item.expected)}: ${whole(option)}`, `expected ${kindOf(item)}`);
  }

  // Where texts stand that are found in a chunk whatever white space is between their words.
  function placesOf(quote, text) {
    const parts = quote.trim().split(/\s+/).slice(0, 400).map(word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const found = parts[0] ? new RegExp(parts.join("\\s+")).exec(text) : null;
    return found ? [[...text.slice(0, found.index)].length, [...text.slice(0, found.index + found[0].length)].length] : null;
  }

  // The text of a chunk in which quotations are marked. Places count characters, not halves of them.
  function marked(text, spans) {
    const letters = Array.from(text);
    const edges = [...new Set([0, letters.length, ...spans.flatMap(one => [one.begin, one.end])])]
      .filter(place => place >= 0 && place <= letters.length).sort((a, b) => a - b);
    return edges.slice(1).map((end, at) => {
      const begin = edges[at], over = spans.filter(one => one.begin <= begin && one.end >= end), piece = letters.slice(begin, end).join("");
      if (!over.length) return piece;
      const kinds = new Set(over.map(one => one.kind));
      const mark = make("mark", kinds.has("exact") ? "exact" : kinds.has("relaxed") ? "relaxed" : "", piece);
      if (kinds.has("evidence")) mark.classList.add("evidence");
      mark.title = [...new Set(over.map(one => one.told))].join("; ");
      return mark;
    });
  }

  function chunkOf(item, asked, chunk) {
    const known = documents.get(chunk.doc), text = chunk.text === undefined ? known && known.text : chunk.text;
    const spans = [];
    for (const one of responsesOf(item).filter(response => response.way === asked.way)) {
      for (const quote of one.quoted || []) {
        if (quote.doc === chunk.doc && quote.found && quote.begin !== undefined) {
          spans.push({begin: quote.begin, end: quote.end, kind: quote.found, told: `quoted by ${data.models[one.model].name}, ${quote.found}`});
        }
      }
    }
    const cited = spans.length > 0;
    for (const quote of chunk.evidence && text !== undefined ? item.quotes || [] : []) {
      const place = placesOf(whole(quote.text), whole(text));
      if (place) spans.push({begin: place[0], end: place[1], kind: "evidence", told: "evidence that the file names"});
    }
    const heading = make("span", "", `[${chunk.rank}] `, isolated(chunk.doc), chunk.evidence ? make("span", "flag right", "holds evidence") : null,
      cited ? make("span", "flag", "quoted") : null);
    const box = make("div", "said chunk", ...(text === undefined ? ["The text of this chunk is not in the tables."] : marked(whole(text), spans)));
    box.dir = "auto";
    box.tabIndex = 0;
    const about = known && known.about ? make("p", "count", isolated(known.about)) : null;
    const part = fold(heading, cited || Boolean(chunk.evidence), about, box, text === undefined ? null : cutNote(text));
    part.dataset.doc = chunk.doc;
    part.dataset.way = asked.way;
    return part;
  }

  function contextOf(item, asked) {
    if (!asked.chunks && !asked.problem) return null;
    const found = asked.found;
    const heading = make("h4", "", "Context that was shown", data.ways.length > 1 ? make("span", "count", ` ${data.ways[asked.way]}`) : null);
    const numbers = found ? make("p", "count", `Chunks with evidence: ${found.relevant}. Of the first ${found.k}, recall: ${number(found.recall)}, `
      + `precision: ${number(found.precision)}; reciprocal rank: ${number(found.mrr)}; nDCG at 10: ${number(found.ndcg)}`) : null;
    const key = make("p", "key", make("mark", "exact", "quoted to the letter"), " ", make("mark", "relaxed", "quoted but for case, marks or white space"), " ",
      make("mark", "evidence", "evidence that the file names"));
    const failed = asked.chunks ? "The last look-up failed, and these chunks were found before it: " : "Nothing could be looked up: ";
    const problem = asked.problem ? make("p", "flagged", failed, isolated(asked.problem)) : null;
    return make("div", "context", heading, numbers, problem, asked.chunks ? key : null, ...(asked.chunks || []).map(chunk => chunkOf(item, asked, chunk)));
  }

  function quotesOf(item) {
    if (!item.quotes) return null;
    const lines = item.quotes.map(quote => make("li", "", make("q", "", whole(quote.text)), " ",
      make("span", "count", isolated(quote.file), quote.turn === undefined ? "" : `, turn ${quote.turn}`)));
    return make("div", "", make("h4", "", "Evidence that the file names"), make("ul", "plain", ...lines));
  }

  // ---- one response ----

  function detailOf(text) {
    if (text === undefined) return null;
    let held = null;
    try { held = Array.isArray(text) ? null : JSON.parse(text); } catch (error) { held = null; }
    if (held === null || typeof held !== "object" || Array.isArray(held)) return make("span", "detail", whole(text), cutNote(text));
    return make("span", "detail", Object.entries(held).map(([name, value]) => `${plain(name)}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join("; "));
  }

  // What the run of a program says stands beneath it once, and so does what each judge said.
  const isToldBelow = (response, score) => score.scorer === "judge" && (response.judged || []).some(one => one.by === data.metrics[score.metric].metric);
  function scoreOf(score, isRun, isJudged) {
    const metric = data.metrics[score.metric];
    const state = score.status ? make("span", "flag warn", plain(score.status)) : null;
    const reason = score.reason === undefined || isRun ? null : make("p", "told", isolated(score.reason), cutNote(score.reason));
    const how = score.how && !isRun && score.how !== score.scorer ? make("span", "count", `read by ${plain(score.how)}`) : null;
    const detail = isRun || isJudged ? null : detailOf(score.detail);
    const by = make("p", "count", isolated(metric.by), score.scorer && !metric.by.includes(score.scorer) ? ` (${plain(score.scorer)})` : "");
    return make("li", "", badge(score.score), " ", make("strong", "", plain(metric.metric)), " ", state, " ", how, " ", ...flags(score.flags), detail, reason, by);
  }

  function quoteOf(response, quote) {
    const state = make("span", quote.found ? `flag ${quote.found}` : "flag warn", quote.found || plain(quote.why || "not found"));
    const also = quote.found === "relaxed" && quote.why ? make("span", "count", ` not to the letter: ${plain(quote.why)}`) : null;
    const source = make("span", "count", " source ", isolated(quote.source === undefined ? "none" : quote.source), " ");
    const line = make("li", "", state, also, source, quote.quote === undefined ? make("em", "", "nothing quoted") : make("q", "", whole(quote.quote)), cutNote(quote.quote));
    if (quote.doc !== undefined) {
      const button = make("button", "to-chunk", quote.found ? "show in context" : "show the source");
      button.type = "button";
      button.addEventListener("click", () => {
        const part = all("details[data-doc]", article).find(one => one.dataset.doc === quote.doc && Number(one.dataset.way) === response.way);
        if (part) { part.open = true; part.scrollIntoView({block: "center"}); part.querySelector("summary").focus({preventScroll: true}); }
      });
      line.append(" ", button);
    }
    return line;
  }

  function judgedBy(one) {
    const state = one.score === undefined ? make("span", "flag warn", `no score: ${plain(one.why || "no reason was kept")}`) : null;
    const marks = [one.again ? make("span", "flag", "asked twice") : null, one.own ? make("span", "flag warn", "of the maker of the model") : null];
    const raw = (one.raw || []).filter(text => whole(text)).map(text => said(text));
    return make("li", "", badge(one.score), " ", make("strong", "", plain(one.by || "judge")), " ", make("span", "count", isolated(one.judge)), " ", state, ...marks,
      one.said === undefined ? null : make("p", "told", isolated(one.said), cutNote(one.said)),
      one.error === undefined ? null : make("p", "told", isolated(one.error), cutNote(one.error)),
      raw.length ? fold("What the judge wrote", false, ...raw) : null);
  }

  function runOf(one) {
    const facts = [one.isolation ? `isolation ${one.isolation}` : "", one.python ? `Python ${one.python}` : "", one.seconds === undefined ? "" : `${number(one.seconds)} s`];
    return make("div", "", make("p", "", make("span", one.verdict === "passed" ? "flag right" : "flag warn", plain(one.verdict || "no verdict")), " ", ...flags(one.flags), " ",
      make("span", "count", facts.filter(Boolean).join(", "))), one.message === undefined ? null : said(one.message));
  }

  function responseOf(response, kind) {
    const model = data.models[response.model], name = make("h5", "", isolated(model.name));
    name.title = model.variant;
    const facts = [data.ways.length > 1 ? data.ways[response.way] : "", data.snapshots.length > 1 ? data.snapshots[response.snapshot] : "",
      response.draw ? `draw ${response.draw}` : "", response.ended ? `ended: ${response.ended}` : ""];
    const card = make("div", "response", name, make("p", "count", isolated(facts.filter(Boolean).join(", "))),
      response.state ? make("p", "flagged", `${plain(response.state)}: no response`) : said(response.text, kind),
      response.error === undefined ? null : make("p", "told", isolated(response.error), cutNote(response.error)),
      response.scores ? make("ul", "plain", ...response.scores.filter(one => !isToldBelow(response, one))
        .map(one => scoreOf(one, Boolean(response.run) && one.scorer === "code_execution", Boolean(response.judged) && one.scorer === "judge"))) : make("p", "count", "Not scored."),
      ...(response.run || []).map(runOf));
    if (response.quoted) card.append(make("h6", "", "Quotations"), make("ul", "plain", ...response.quoted.map(one => quoteOf(response, one))));
    if (response.judged) card.append(make("h6", "", "Judges"), make("ul", "plain", ...response.judged.map(judgedBy)));
    return card;
  }

  function responsesPart(item) {
    const wantedHere = responsesOf(item), part = make("div", "", make("h4", "", `Responses (${wantedHere.length})`)), grid = make("div", "responses");
    const rest = make("button", "more", "");
    rest.type = "button";
    let shown = 0;
    const showMore = () => {
      grid.append(...wantedHere.slice(shown, shown + CARDS).map(one => responseOf(one, kindOf(item))));
      shown = Math.min(shown + CARDS, wantedHere.length);
      rest.hidden = shown === wantedHere.length;
      rest.textContent = `Show ${Math.min(CARDS, wantedHere.length - shown)} more responses`;
    };
    rest.addEventListener("click", showMore);
    showMore();
    part.append(grid, rest);
    return part;
  }

  const kindOf = item => item.type === "code" ? "code" : "";
  const address = item => `#item=${encodeURIComponent(item.id)}`;
  function show(item) {
    chosen = item;
    markChosen();
    if (!item) {
      article.replaceChildren(make("p", "count", "No item fits."));
      return;
    }
    const at = wanted.indexOf(item);
    const step = (words, other) => {
      const button = make("button", "", words);
      button.type = "button";
      button.disabled = !other;
      button.addEventListener("click", () => { show(other); article.focus({preventScroll: true}); });
      return button;
    };
    const facts = [item.type ? `type ${item.type}` : "", item.line === undefined ? "" : `line ${item.line} of the file`, item.cluster ? `belongs to ${item.cluster}` : ""];
    article.replaceChildren(...[
      make("div", "steps", step("← Previous", wanted[at - 1]), step("Next →", wanted[at + 1])),
      make("h3", "", isolated(item.id), " ", ...flags(item.flags)),
      make("p", "count", isolated(facts.filter(Boolean).join(", "))),
      said(item.text, kindOf(item)),
      optionsOf(item),
      make("h4", "", "Expected"),
      expectedOf(item),
      item.solution === undefined ? null : fold("Worked answer of the file", false, said(item.solution, kindOf(item))),
      quotesOf(item),
      ...(item.asked || []).filter(one => chosenOf("way") === null || one.way === chosenOf("way")).map(one => contextOf(item, one)),
      responsesPart(item),
    ].filter(Boolean));
    if (begun && location.hash !== address(item)) history.replaceState(null, "", address(item));
    hintAtMore();
  }

  function openTo() {
    if (!location.hash.startsWith("#item=")) return false;
    let id = "";
    try { id = decodeURIComponent(location.hash.slice(6)); } catch (error) { return false; }
    const item = data.items.find(one => one.id === id);
    if (!item) return false;
    if (!wanted.includes(item)) { for (const name in field) if (field[name]) field[name].value = name === "metric" ? "0" : ""; choose(); }
    show(item);
    article.scrollIntoView({block: "start"});
    return true;
  }

  let begun = false;
  for (const name in field) if (field[name]) field[name].addEventListener("input", choose);
  more.addEventListener("click", () => { listed += LISTED; showList(); });
  addEventListener("hashchange", openTo);
  choose();
  openTo();
  begun = true;
})();
