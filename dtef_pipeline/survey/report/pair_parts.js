// ---- pieces of the chapter on pairs: text, bars, and what its data say ----

const make = (tag, text, kind) => {
  const node = document.createElement(tag);
  if (text !== undefined) node.textContent = text;
  if (kind) node.className = kind;
  return node;
};
const inPercent = value => (100 * value).toFixed(1) + " %";
const inThousandths = thousandths => thousandths === null ? "unknown" : (thousandths / 1000).toFixed(3);
// Two characters a share: thousandths in base 36.
const sharesOf = text => (text.match(/../g) || []).map(two => parseInt(two, 36) / 1000);

// Respondents that an interval goes by: of weighted answers the effective ones.
const sampled = row => row[6] || row[1];

// Wilson score interval of a share of n answers; none where n is unknown.
function wilson(share, n, z) {
  if (n === null) return [null, null];
  const whole = 1 + z * z / n, middle = share + z * z / (2 * n);
  const half = z * Math.sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  return [Math.max(0, (middle - half) / whole), Math.min(1, (middle + half) / whole)];
}

// What a model said of a row of a question: characters, or nothing where it was not asked.
function saidOf(row, model, way) {
  const ways = row[5].split(";")[model].split("|");
  return ways[ways.length > 1 ? way : 0];
}

const wasAsked = (said, statuses) => Boolean(said) && !(said[0] === "!" && ["budget", "missing"].includes(statuses[said[1]]));

// Shares, or why there are none, and a score where the policy gives one.
function answerOf(said, statuses) {
  if (!said) return {words: "none (not asked)"};
  const [code, draws] = said.split("*");
  if (code[0] === "!") {
    const [given] = sharesOf(code.slice(2)), why = statuses[code[1]].replace("_", " ");
    if (given === undefined) return {words: `none (${why}${counted(draws)})`, why};
    return {words: `${inThousandths(1000 * given)} (${why}, by the published policy${counted(draws)})`, score: given, why};
  }
  const values = sharesOf(code), score = values.pop();
  const words = inThousandths(1000 * score) + (draws ? ` (${counted(draws).slice(2)}; bars are the mean of what was read)` : "");
  return {words, values, score};
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
  if (range && range[0] !== null) {
    const mark = make("span", undefined, "range");
    mark.style.left = 100 * range[0] + "%";
    mark.style.width = 100 * (range[1] - range[0]) + "%";
    track.append(mark);
  }
  return track;
}

// The cells of one share: bars, the share observed, its interval, the share predicted.
function shareCells(observed, predicted, range) {
  const bars = make("td", undefined, "bar");
  bars.setAttribute("aria-hidden", "true");
  bars.append(bar(observed, "seen", range));
  if (predicted !== undefined) bars.append(bar(predicted, "said"));
  const said = predicted === undefined ? "–" : inPercent(predicted);
  return [bars, make("td", inPercent(observed)), make("td", range[0] === null ? "–" : inPercent(range[0]) + " to " + inPercent(range[1])), make("td", said)];
}

// A narrow column breaks a name after its parts before it breaks a word.
function rowHead(words) {
  const cell = make("th", undefined, "text");
  words.split(/(?<=[:/_])/).forEach((part, at) => cell.append(...(at ? [make("wbr"), part] : [part])));
  cell.scope = "row";
  return cell;
}

// A table in a box of its own, with a button that saves its rows.
function boxed(titles, rows, caption, kind, content) {
  const box = make("div", undefined, "scroll"), table = make("table", undefined, kind);
  const top = table.createTHead().insertRow(), body = table.createTBody();
  for (const title of titles) {
    const cell = make("th", undefined, top.cells.length < 2 ? "text" : ""), button = make("button", title);
    cell.scope = "col";
    if (kind.includes("sortable") && top.cells.length !== 1) {
      button.type = "button";
      button.addEventListener("click", () => sortBy(cell));
      cell.append(button);
    } else cell.textContent = title;
    top.append(cell);
  }
  rows.forEach(cells => body.insertRow().append(...cells));
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", caption);
  box.append(table);
  return [box, downloadButton(["pairs", caption], caption, content)];
}
