// ---- predicted against observed ----

function explorePairs(data) {
  const field = name => document.getElementById("pair-" + name);
  const model = () => Number(field("model").value), way = () => Number(field("asked").value);
  const severalConditions = new Set(data.asked.map(([, condition]) => condition)).size > 1;
  const wayName = ([level, condition]) => "context " + level + (severalConditions ? ", " + condition : "");
  const isBaseline = name => name.startsWith("baseline/");

  // How many pairs each model was asked in each way, by question and in all.
  const asked = data.models.map(() => data.asked.map(() => ({all: 0, of: new Map()})));
  data.questions.forEach((question, at) => question.s.forEach(row => {
    asked.forEach((ways, m) => ways.forEach((count, w) => {
      if (!wasAsked(saidOf(row, m, w), data.statuses)) return;
      count.all += 1;
      count.of.set(at, (count.of.get(at) || 0) + 1);
    }));
  }));

  // Of the ways of most context that the model was asked in, the one that it was asked most pairs in.
  function mostAsked() {
    const size = at => data.asked[at][0] === "all" ? Infinity : Number(data.asked[at][0]), pairs = at => asked[model()][at].all;
    const ways = data.asked.map((_, at) => at).filter(pairs), most = Math.max(...ways.map(size));
    return ways.filter(at => size(at) === most).sort((a, b) => pairs(b) - pairs(a))[0] || 0;
  }

  // `choices`: value, text, whether it was asked. What was asked comes first; what was not says so, and is left for what was, unless
  // the reader chose it.
  function offer(select, choices, keep = select.value, isChosen = false) {
    const [first, last] = [true, false].map(wanted => choices.filter(([, , was]) => was === wanted));
    const option = ([value, text, was]) => {
      const node = make("option", was ? text : `${text} (not asked)`);
      node.value = value;
      return node;
    };
    const group = (label, some) => {
      const node = make("optgroup");
      node.label = label;
      node.append(...some.map(option));
      return node;
    };
    const groups = first.length && last.length ? [group("Asked", first), group("Not asked", last)] : choices.map(option);
    select.replaceChildren(...groups);
    const kept = choices.find(([value]) => String(value) === keep);
    if (kept && (kept[2] || isChosen || !first.length)) select.value = keep;
    else if (first.length) select.value = first[0][0];
  }

  function offerQuestions() {
    const wanted = words(field("search").value), round = field("round").value, count = asked[model()][way()];
    const has = question => wanted.every(word => question.t.toLowerCase().includes(word));
    const found = [...data.questions.entries()].filter(([, question]) => has(question));
    const here = found.filter(([, question]) => question.r === round);
    // Questions that begin alike are told apart by how they end.
    const short = text => text.length > 140 ? text.slice(0, 83).replace(/\s+\S*$/, "") + " … " + text.slice(-56).replace(/^\S*\s+/, "") : text;
    const rounds = [...new Set(found.map(([, question]) => question.r).filter(name => name !== round))];
    offer(field("question"), here.map(([at, question]) => [at, short(question.t), count.of.has(at)]));
    field("found").textContent = wanted.length ? foundWords(here.length, found.length - here.length, round, rounds) : "";
    offerSegments();
  }

  function foundWords(here, elsewhere, round, rounds) {
    const other = elsewhere ? `; ${elsewhere} in other rounds: ${rounds.join(", ")}` : here ? "" : ", nor has one of another round";
    return (here ? `${here} question${here === 1 ? "" : "s"} of ${round} found` : `No question of ${round} has all these words`) + other + ".";
  }

  function offerSegments() {
    const question = data.questions[field("question").value];
    const choices = question ? question.s.map(row => [row[0], data.segments[row[0]], wasAsked(saidOf(row, model(), way()), data.statuses)]) : [];
    offer(field("segment"), choices);
    offer(field("option"), question ? question.o.map((text, at) => [at, text, true]) : [], "");
    if (question) field("option").value = commonest(question);
    draw();
  }

  function offerWays(keep) {
    offer(field("asked"), data.asked.map((one, at) => [at, wayName(one), asked[model()][at].all > 0]), keep, true);
    const said = isBaseline(data.models[model()]) ? "predicted by" : "asked of", counts = data.said[model()];
    const number = value => value.toLocaleString("en"), sum = values => values.reduce((all, each) => all + each, 0);
    const one = `${number(counts[way()])} of ${number(data.pairs[way()])} pairs were ${said} ${data.models[model()]} (${wayName(data.asked[way()])})`;
    const ways = data.asked.length;
    const others = `; over all ${ways} ways of asking, each in the rounds that it was used in, ${number(sum(counts))} of ${number(sum(data.pairs))}`;
    field("share").textContent = one + (ways > 1 ? others : "") + ".";
    offerQuestions();
  }

  // Another model may have been asked in another way and in another round.
  function offerWhatWasAsked() {
    const now = field("asked").value, at = now !== "" && asked[model()][now].all ? Number(now) : mostAsked();
    const rounds = [...asked[model()][at].of.keys()].map(question => data.questions[question].r);
    if (rounds.length && !rounds.includes(field("round").value)) field("round").value = rounds[0];
    offerWays(String(at));
  }

  function optionRows(question, observed, said, n) {
    return question.o.map((option, at) => {
      const name = rowHead(option);
      return [name, ...shareCells(observed[at], said.values && said.values[at], wilson(observed[at], n, data.z))];
    });
  }

  function key() {
    const line = make("p", undefined, "key");
    for (const [kind, text] of [["seen", "observed"], ["said", "predicted"]]) line.append(make("i", "", kind), text);
    return line;
  }

  function draw() {
    const question = data.questions[field("question").value], chart = field("chart"), name = data.models[model()];
    field("over").hidden = !question;
    if (!question) {
      chart.replaceChildren(make("p", "No question to show: no question of this round has these words."));
      field("segments").replaceChildren();
      field("texts").replaceChildren();
      return;
    }
    const row = question.s.find(([at]) => String(at) === field("segment").value), [, n, ceiling, others, seen] = row;
    const observed = sharesOf(seen), said = answerOf(saidOf(row, model(), way()), data.statuses);
    const isCircular = definesSegment(question, row[0]);
    const facts = `n = ${n === null ? "unknown" : n}. Score of ${name}: ${said.words}; leave-one-out marginal: ${inThousandths(others)}; ceiling: ${inThousandths(ceiling)}.`
      + (isCircular ? " The question defines this segment, so that the pair is on no board." : "");
    const titles = ["Answer", "Observed above, predicted below", "Observed", "95 % interval", "Predicted"];
    const content = () => segmentRows(data, {question, model: model(), way: way()}, [{segment: data.segments[row[0]], n, size: sampled(row), observed, said, isCircular}]);
    const table = boxed(titles, optionRows(question, observed, said, sampled(row)), "Predicted against observed", "bars", content);
    chart.replaceChildren(make("h3", question.t), make("p", facts), key(), ...table);
    drawTexts(question, row[0], wasAsked(saidOf(row, model(), way()), data.statuses));
    drawSegments(question);
  }

  function drawTexts(question, segment, was) {
    const box = field("texts"), before = box.querySelector("details");
    const key = [data.questions.indexOf(question), segment, model(), way()].join(".");
    const texts = was && !isBaseline(data.models[model()]) ? [textsOf(key, question, data.segments[segment], Boolean(before && before.open))] : [];
    box.replaceChildren(...texts);
  }

  function drawSegments(question) {
    const option = Number(field("option").value);
    field("segments").replaceChildren(...segmentTable(data, {question, model: model(), way: way(), option}));
    hintAtMore();
  }

  offer(field("round"), [...new Set(data.questions.map(question => question.r))].map(name => [name, name, true]));
  offer(field("model"), data.models.map((name, at) => [at, name, asked[at].some(count => count.all > 0)]));
  // Begin with a model that was asked, the most context it was asked with, and a pair that it was asked.
  const begin = data.models.findIndex((name, at) => !isBaseline(name) && asked[at].some(count => count.all > 0));
  field("model").value = Math.max(0, begin);
  document.getElementById("chooser").addEventListener("submit", event => event.preventDefault());
  field("search").addEventListener("input", offerQuestions);
  field("round").addEventListener("change", offerQuestions);
  field("question").addEventListener("change", offerSegments);
  field("model").addEventListener("change", offerWhatWasAsked);
  field("asked").addEventListener("change", () => offerWays(field("asked").value));
  field("segment").addEventListener("change", draw);
  field("option").addEventListener("change", () => drawSegments(data.questions[field("question").value]));
  offerWhatWasAsked();
}

const heldPairs = document.getElementById("pair-data");
if (heldPairs) explorePairs(JSON.parse(heldPairs.textContent));
