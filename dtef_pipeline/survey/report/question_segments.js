// ---- one question in all segments at once ----

// The answer that most respondents gave: what the table shows first.
function commonest(question) {
  const sums = question.o.map(() => 0);
  for (const row of question.s) sharesOf(row[4]).forEach((share, at) => { sums[at] += share * (row[1] || 1); });
  return sums.indexOf(Math.max(...sums));
}

// A question that defines a segment says nothing of a prediction: boards leave the pair out.
const CIRCULAR = "defined by this answer: on no board";
const definesSegment = (question, segment) => (question.c || []).includes(segment);

// Every segment with the share of one answer, the largest observed share first and those that it defines last. `chosen`: question, model, way, option.
function segmentTable(data, chosen) {
  const {question, model, way, option} = chosen;
  const found = question.s.map(row => {
    const [at, n, , , observed] = row, said = answerOf(saidOf(row, model, way), data.statuses);
    return {segment: data.segments[at], n, size: sampled(row), observed: sharesOf(observed), said, isCircular: definesSegment(question, at)};
  });
  found.sort((a, b) => a.isCircular - b.isCircular || b.observed[option] - a.observed[option]);
  const rows = found.map(({segment, n, size, observed, said, isCircular}) => {
    const predicted = said.values && said.values[option], apart = predicted === undefined ? undefined : 100 * (predicted - observed[option]);
    const cells = shareCells(observed[option], predicted, wilson(observed[option], size, data.z));
    const difference = apart === undefined ? "–" : (apart < 0 ? "" : "+") + apart.toFixed(1);
    const score = said.score === undefined ? "–" : inThousandths(1000 * said.score);
    const name = rowHead(segment);
    if (isCircular) name.append(make("span", CIRCULAR, "ci wrapped"));
    return [name, ...cells, make("td", difference), make("td", score), make("td", n === null ? "–" : String(n))];
  });
  const titles = ["Segment", "Observed above, predicted below", "Observed", "95 % interval", "Predicted", "Points apart", "Score", "n"];
  return boxed(titles, rows, "One question in all segments", "bars sortable", () => segmentRows(data, chosen, found));
}

// All answers of all segments, for the file.
function segmentRows(data, {question, model, way}, found) {
  const [level, condition] = data.asked[way];
  const columns = ["round", "question_id", "question", "segment", "n", "answer", "observed", "observed_low", "observed_high",
    "model", "context_level", "condition", "predicted", "score", "circular"];
  const rows = found.flatMap(({segment, n, size, observed, said, isCircular}) => question.o.map((answer, at) => [
    question.r, question.id, question.t, segment, n, answer, observed[at], ...wilson(observed[at], size, data.z),
    data.models[model], level, condition, said.values ? said.values[at] : null, said.score === undefined ? null : said.score, isCircular,
  ]));
  return [columns, rows];
}
