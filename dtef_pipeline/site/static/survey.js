// A pair of segment and question that the reader chooses: observed answers, predictions and responses of the models.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const {make} = dtef;
  const percent = (share) => (100 * share).toFixed(1) + "%";
  const score = (value) => value === null || value === undefined ? "–" : value.toFixed(3);
  // Two characters a share: thousandths in base 36.
  const sharesOf = (code) => (code.match(/../g) || []).map((two) => parseInt(two, 36) / 1000);
  const short = (text) => text.length > 90 ? text.slice(0, 60) + " … " + text.slice(-28) : text;

  // Wilson score interval of a share of n answers.
  function interval(share, n, z) {
    if (!n) return "";
    const whole = 1 + z * z / n, middle = share + z * z / (2 * n), half = z * Math.sqrt(share * (1 - share) / n + z * z / (4 * n * n));
    return `${percent(Math.max(0, (middle - half) / whole))} to ${percent(Math.min(1, (middle + half) / whole))}`;
  }

  // Shares and score, or why there are none.
  function read(code, statuses) {
    const [body, draws] = code.split("*"), [ok, all] = (draws || "").split("/"), note = draws ? `mean of ${all} draws` + (ok !== all ? `, ${ok} read` : "") : "";
    if (body[0] !== "!") { const shares = sharesOf(body), value = shares.pop(); return {shares, value, note}; }
    const [value] = sharesOf(body.slice(2));
    return {shares: null, value: value ?? null, note: [statuses[body[1]], note].filter(Boolean).join(", ")};
  }

  // In addresses segments and questions are called as their pages are.
  const fileName = (page) => page.split("/").pop().replace(/\.html$/, "");
  const segmentName = ([, page]) => fileName(page), questionName = ([, , , page]) => fileName(page);
  function placeOf(rows, wanted, nameOf) {
    const at = wanted ? rows.findIndex((row) => nameOf(row) === wanted) : -1;
    return at < 0 ? "" : String(at);
  }

  function choices(select, entries, wanted) {
    select.replaceChildren(...entries.map(([value, text]) => make("option", {value: String(value)}, text)));
    if (entries.some(([value]) => String(value) === wanted)) select.value = wanted;
  }

  const shareCell = (share, below) => make("td", {class: "share", style: `--share: ${share}`, "data-key": String(share)}, percent(share), below ? make("span", {class: "interval"}, below) : null);

  function table(shared, question, row, setting) {
    const [, n, size, ceiling, others, circular, seen, codes] = row, [, , options] = question, none = () => make("td", {class: "text soft"}, "–");
    const observed = sharesOf(seen);
    const said = codes.map((code, at) => ({code, name: shared.series[at][0], setting: shared.series[at][1], reference: shared.series[at][2]})).filter((one) => one.code && one.setting === setting).map((one) => ({...one, ...read(one.code, shared.statuses)}));
    said.sort((a, b) => (b.value ?? -1) - (a.value ?? -1));
    const body = said.map((one) => make("tr", {class: one.reference ? "reference" : "model"}, make("th", {scope: "row"}, make("bdi", {}, one.name), one.note ? make("span", {class: "interval"}, one.note) : null),
      make("td", {class: "score", "data-key": String(one.value ?? "")}, score(one.value)), ...options.map((_, at) => one.shares ? shareCell(one.shares[at]) : none())));
    const first = make("tr", {class: "observed"}, make("th", {scope: "row"}, "Observed", make("span", {class: "interval"}, n === null ? "of unknown size" : `${n} respondents`)), make("td", {class: "score", "data-key": ""}), ...observed.map((share) => shareCell(share, interval(share, size, shared.z))));
    const facts = [others === null ? "" : `The leave-one-out marginal scores ${score(others / 1000)}`, ceiling === null ? "" : `a perfect model would score ${score(ceiling / 1000)}`].filter(Boolean).join("; ");
    const isMixed = said.some((one) => one.reference) && said.some((one) => !one.reference);
    const box = make("div", {class: isMixed ? "table" : "table all", id: "pair-table"},
      make("div", {class: "tools"}, isMixed ? make("button", {type: "button", "data-references": true, "aria-pressed": "false"}, "Show baselines") : null),
      make("div", {class: "scroll", tabindex: "0", role: "group", "aria-label": "Predicted and observed shares"}, make("table", {},
        make("caption", {}, (facts ? facts + "." : "") + (circular ? " The question defines this segment, so no board includes the pair." : "")),
        make("thead", {}, make("tr", {}, ...["Source", "Score", ...options].map((text, at) => make("th", {scope: "col", class: at ? "score" : "text"}, text)))),
        make("tbody", {}, first, ...body))));
    dtef.setUp(box);
    return box;
  }

  function texts(shared, held, q, setting) {
    const own = (held.said[q] || []).filter(([at]) => shared.series[at][1] === setting), said = dtef.comparedFirst(own, ([at]) => shared.series[at][0]), prompts = [...new Set(said.map((one) => one[1]))];
    if (!said.length) return [];
    const block = (text, label) => make("div", {class: "said", tabindex: "0", role: "group", "aria-label": label}, text || "(empty)");
    const written = said.map(([at, , words, status, reason, snapshot, draw]) => make("div", {}, make("h4", {}, make("bdi", {}, shared.series[at][0])),
      make("p", {class: "soft"}, [status === "ok" ? "" : status.replace("_", " "), reason, `snapshot ${snapshot}`, draw ? `draw ${draw + 1}` : ""].filter(Boolean).join(" · ")), block(words, "Response of " + shared.series[at][0])));
    return [make("h3", {}, "Prompts and responses"),
      ...prompts.map((at) => make("details", {}, make("summary", {}, "Prompt"), block(held.prompts[at], "Prompt"))), make("div", {class: "side-by-side"}, ...written)];
  }

  async function start(box) {
    const shared = await dtef.load(box.dataset.pairs), form = box.querySelector("form"), out = box.querySelector(".out"), field = form.elements;
    const isSegment = box.dataset.what === "segment", fixed = Number(box.dataset.place);
    const dataOf = (s, ending = ".js") => shared.segments[s][1].replace(/\.html$/, ending);
    let turn = 0;

    async function show() {
      const mine = ++turn, s = isSegment ? fixed : Number(field.segment.value), q = isSegment ? Number(field.question.value) : fixed;
      const data = await dtef.load(dataOf(s)), row = data.pairs.find(([at]) => at === q);
      const has = data.texts.includes(q), held = has ? await dtef.load(dataOf(s, "-texts.js")) : {said: {}, prompts: []};
      if (mine !== turn) return;
      dtef.remember(isSegment ? "question" : "segment", isSegment ? questionName(shared.questions[q]) : segmentName(shared.segments[s]));
      if (!row) { out.replaceChildren(make("p", {}, "This segment was not asked this question.")); return; }
      const settings = [...new Set(row[7].flatMap((code, at) => code ? [shared.series[at][1]] : []))].sort((a, b) => a - b);
      choices(field.setting, settings.map((at) => [at, shared.settings[at][0]]), field.setting.value || placeOf(shared.settings, dtef.recall("setting"), ([, name]) => name));
      form.querySelector("[data-settings]").hidden = settings.length < 2;
      if (settings.length > 1) dtef.remember("setting", shared.settings[field.setting.value][1]);
      const [round, text, , questionPage] = shared.questions[q], setting = Number(field.setting.value);
      const link = isSegment ? make("a", {href: dtef.root + questionPage}, "the question's page") : make("a", {href: dtef.root + shared.segments[s][1]}, "the segment's page");
      out.replaceChildren(make("h3", {}, make("bdi", {}, isSegment ? text : shared.segments[s][0])), make("p", {class: "soft"}, `${round} · `, link), table(shared, shared.questions[q], row, setting), ...texts(shared, held, q, setting));
    }

    async function offerQuestions(wanted) {
      const data = await dtef.load(dataOf(fixed)), own = data.pairs.map(([q]) => q).filter((q) => shared.questions[q][0] === field.round.value), has = new Set(data.texts);
      const some = own.some((q) => !has.has(q)) && has.size;
      choices(field.question, own.map((q) => [q, short(shared.questions[q][1]) + (some && has.has(q) ? " (with responses)" : "")]), wanted);
      show();
    }

    if (isSegment) {
      const data = await dtef.load(dataOf(fixed)), wanted = placeOf(shared.questions, dtef.recall("question"), questionName), rounds = [...new Set(data.pairs.map(([q]) => shared.questions[q][0]))];
      const first = wanted || box.dataset.first;
      choices(field.round, rounds.map((name) => [name, name]), first && shared.questions[first] ? shared.questions[first][0] : rounds[rounds.length - 1]);
      field.round.addEventListener("change", () => offerQuestions(""));
      field.question.addEventListener("change", show);
      await offerQuestions(first);
    } else {
      choices(field.segment, box.dataset.asked.split(",").map((at) => [at, shared.segments[at][0]]), placeOf(shared.segments, dtef.recall("segment"), segmentName) || box.dataset.first);
      field.segment.addEventListener("change", show);
      show();
    }
    field.setting.addEventListener("change", show);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.hidden = false;
  }
  document.querySelectorAll(".pairs").forEach((box) => start(box).catch((error) => box.querySelector(".out").replaceChildren(make("p", {class: "alarm"}, String(error.message)))));
});
