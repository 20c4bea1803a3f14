// ---- predicted against observed ----

const held = document.getElementById("pair-data");
if (held) {
  const data = JSON.parse(held.textContent);
  const field = name => document.getElementById("pair-" + name);
  const chart = field("chart");

  const make = (tag, text, kind) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (kind) node.className = kind;
    return node;
  };
  const percent = value => (100 * value).toFixed(1) + " %";
  const score = thousandths => thousandths === null ? "unknown" : (thousandths / 1000).toFixed(3);
  // Two characters a share: thousandths in base 36.
  const shares = text => (text.match(/../g) || []).map(two => parseInt(two, 36) / 1000);

  // Wilson score interval of a share of n answers.
  function wilson(share, n) {
    const z = data.z, whole = 1 + z * z / n, middle = share + z * z / (2 * n);
    const half = z * Math.sqrt(share * (1 - share) / n + z * z / (4 * n * n));
    return [Math.max(0, (middle - half) / whole), Math.min(1, (middle + half) / whole)];
  }

  function offer(select, choices) {
    const before = select.value;
    select.replaceChildren(...choices.map(([value, text]) => {
      const option = make("option", text);
      option.value = value;
      return option;
    }));
    if (choices.some(([value]) => String(value) === before)) select.value = before;
  }

  function offerQuestions() {
    const wanted = words(field("search").value), round = field("round").value;
    const fits = question => question.r === round && wanted.every(word => question.t.toLowerCase().includes(word));
    // Questions that begin alike are told apart by how they end.
    const short = text => text.length > 140 ? text.slice(0, 83).replace(/\s+\S*$/, "") + " … " + text.slice(-56).replace(/^\S*\s+/, "") : text;
    offer(field("question"), [...data.questions.entries()].filter(([, q]) => fits(q)).map(([at, q]) => [at, short(q.t)]));
    offerSegments();
  }

  function offerSegments() {
    const question = data.questions[field("question").value];
    offer(field("segment"), question ? question.s.map(([at]) => [at, data.segments[at]]) : []);
    draw();
  }

  // What the chosen model said: shares, or why there are none, and a score where the policy gives one.
  function answer(predictions) {
    const ways = predictions.split(";")[field("model").value].split("|");
    const said = ways[ways.length > 1 ? field("asked").value : 0];
    if (!said) return {words: "none (not asked)"};
    const [code, draws] = said.split("*");
    if (code[0] === "!") {
      const [given] = shares(code.slice(2)), why = data.statuses[code[1]].replace("_", " ");
      return {words: given === undefined ? `none (${why}${counted(draws)})` : `${score(1000 * given)} (${why}, by the published policy${counted(draws)})`};
    }
    const values = shares(code);
    const words = score(1000 * values[values.length - 1]) + (draws ? ` (${counted(draws).slice(2)}; bars are the mean of what was read)` : "");
    return {words, values: values.slice(0, -1)};
  }

  function counted(draws) {
    if (!draws) return "";
    const [read, all] = draws.split("/");
    return `, mean of ${all} draws` + (read !== all ? `, of which ${read} could be read` : "");
  }

  function bar(value, kind, range) {
    const track = make("span", undefined, "track"), fill = make("span", undefined, "fill " + kind);
    fill.style.width = 100 * value + "%";
    track.append(fill);
    if (range) {
      const mark = make("span", undefined, "range");
      mark.style.left = 100 * range[0] + "%";
      mark.style.width = 100 * (range[1] - range[0]) + "%";
      track.append(mark);
    }
    return track;
  }

  function optionRow(option, observed, predicted, n) {
    const row = make("tr"), name = make("th", option, "text"), bars = make("td", undefined, "bar");
    const range = wilson(observed, n);
    name.scope = "row";
    bars.setAttribute("aria-hidden", "true");
    bars.append(bar(observed, "seen", range));
    if (predicted !== undefined) bars.append(bar(predicted, "said"));
    const said = predicted === undefined ? "–" : percent(predicted);
    row.append(name, bars, make("td", percent(observed)), make("td", percent(range[0]) + " to " + percent(range[1])), make("td", said));
    return row;
  }

  function bars(question, observed, said, n) {
    const box = make("div", undefined, "scroll"), table = make("table", undefined, "bars");
    const head = make("tr"), top = make("thead"), body = make("tbody");
    for (const title of ["Answer", "Observed above, predicted below", "Observed", "95 % interval", "Predicted"]) {
      const cell = make("th", title, head.cells.length < 2 ? "text" : "");
      cell.scope = "col";
      head.append(cell);
    }
    question.o.forEach((option, at) => body.append(optionRow(option, observed[at], said.values && said.values[at], n)));
    top.append(head);
    table.append(top, body);
    box.tabIndex = 0;
    box.append(table);
    return box;
  }

  function key() {
    const line = make("p", undefined, "key");
    for (const [kind, text] of [["seen", "observed"], ["said", "predicted"]]) line.append(make("i", "", kind), text);
    return line;
  }

  function draw() {
    chart.replaceChildren();
    const question = data.questions[field("question").value];
    if (!question) {
      chart.append(make("p", "No question of this round has these words."));
      return;
    }
    const row = question.s.find(([at]) => String(at) === field("segment").value);
    const [, n, ceiling, others, observed, predictions] = row;
    const said = answer(predictions), model = data.models[field("model").value];
    const facts = `n = ${n}. Score of ${model}: ${said.words}; leave-one-out marginal: ${score(others)}; ceiling: ${score(ceiling)}.`;
    chart.append(make("h3", question.t), make("p", facts), key(), bars(question, shares(observed), said, n));
  }

  const severalConditions = new Set(data.asked.map(([, condition]) => condition)).size > 1;
  offer(field("round"), [...new Set(data.questions.map(question => question.r))].map(name => [name, name]));
  offer(field("model"), data.models.map((name, at) => [at, name]));
  offer(field("asked"), data.asked.map(([level, condition], at) => [at, "context " + level + (severalConditions ? ", " + condition : "")]));
  // Begin with a real model and the most context.
  field("model").value = Math.max(0, data.models.findIndex(name => !name.startsWith("baseline/")));
  field("asked").value = data.asked.length - 1;
  document.getElementById("chooser").addEventListener("submit", event => event.preventDefault());
  field("search").addEventListener("input", offerQuestions);
  field("round").addEventListener("change", offerQuestions);
  field("question").addEventListener("change", offerSegments);
  for (const name of ["segment", "model", "asked"]) field(name).addEventListener("change", draw);
  offerQuestions();
}
