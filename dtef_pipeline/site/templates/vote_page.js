// ---- a page on which a reviewer votes: texts are set as texts, votes stay in this browser until they are downloaded ----

const given = JSON.parse(document.getElementById("pairs").textContent);
const at = name => document.getElementById(name);
const CHOICES = {a: "A", b: "B", t: "tie"};
const MOST_WORDS = 2000;
let votes = {}, drafts = {}, skipped = [], place = 0;

// Votes, and the pairs that were skipped. A browser may refuse to keep anything for a page: then votes last as long as the page is open, and it says so.
function kept() {
  try {
    return JSON.parse(localStorage.getItem(given.key)) || {};
  } catch (error) {
    return {};
  }
}

function keep() {
  try {
    localStorage.setItem(given.key, JSON.stringify({votes, skipped}));
  } catch (error) {
    at("lost").hidden = false;
  }
}

const isWhole = vote => vote && Object.values(CHOICES).includes(vote.choice) && Number.isInteger(vote.confidence) && vote.confidence >= 1 && vote.confidence <= 5;
const done = () => given.pairs.filter(pair => isWhole(votes[pair.pair_id])).length;

const withoutVote = () => given.pairs.map((pair, index) => index).filter(index => !isWhole(votes[given.pairs[index].pair_id]));
const passedOver = () => withoutVote().filter(index => index !== place && skipped.includes(given.pairs[index].pair_id));

function show() {
  const pair = given.pairs[place], draft = drafts[pair.pair_id] || votes[pair.pair_id] || {};
  for (const [name, text] of [["prompt", pair.prompt], ["run-a", pair.run_a], ["run-b", pair.run_b]]) {
    at(name).textContent = text;
    at(name).scrollTop = 0;
  }
  for (const input of document.querySelectorAll("input")) {
    input.checked = String(draft[input.name]) === input.value;
  }
  at("why").value = draft.justification || "";
  at("reason").open = at("why").value !== "";
  at("back").disabled = place === 0;
  at("on").disabled = given.pairs.length === 1;
  at("download").disabled = done() === 0;
  at("said").textContent = isWhole(votes[pair.pair_id]) ? "Your vote is saved." : "";
  showProgress();
}

// Pairs that were passed over stand in a list, each a way back.
function showProgress() {
  at("where").textContent = `Pair ${place + 1} of ${given.pairs.length}, ${done()} voted on`;
  at("progress").max = given.pairs.length;
  at("progress").value = done();
  const left = passedOver();
  at("skipped").hidden = left.length === 0;
  at("skipped").replaceChildren(left.length ? "Skipped: " : "", ...left.map(index => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = index + 1;
    button.setAttribute("aria-label", `Pair ${index + 1}`);
    button.addEventListener("click", () => go(index));
    return button;
  }));
}

function draft() {
  const pair = given.pairs[place], choice = document.querySelector("input[name=choice]:checked");
  const confidence = document.querySelector("input[name=confidence]:checked");
  drafts[pair.pair_id] = {
    choice: choice ? choice.value : null,
    confidence: confidence ? Number(confidence.value) : null,
    justification: at("why").value.slice(0, MOST_WORDS),
  };
  return drafts[pair.pair_id];
}

function go(index) {
  draft();
  place = Math.min(given.pairs.length - 1, Math.max(0, index));
  keep();
  show();
  at("top").scrollIntoView();
}

function vote() {
  const now = draft();
  if (!isWhole(now)) {
    at("said").textContent = "Choose A, B or tie, and how certain you are.";
    return;
  }
  votes[given.pairs[place].pair_id] = now;
  const left = withoutVote(), next = left.find(index => index > place) ?? left[0];
  if (next !== undefined) {
    go(next);
    if (skipped.includes(given.pairs[next].pair_id)) at("said").textContent = "You skipped this pair before.";
  } else {
    keep();
    show();
    at("said").textContent = "That was the last pair. Download your votes, and send the file back.";
  }
}

// Only that marks a pair as skipped: whoever goes back to an earlier one comes by again.
function skip() {
  const id = given.pairs[place].pair_id;
  if (!isWhole(votes[id]) && !skipped.includes(id)) skipped.push(id);
  go((place + 1) % given.pairs.length);
}

const back = () => go(place - 1);

function lines() {
  return given.pairs.filter(pair => isWhole(votes[pair.pair_id])).map(pair => JSON.stringify({
    kind: "ballot", schema: 1, pair_id: pair.pair_id, reviewer_id: given.reviewer_id, ...votes[pair.pair_id],
  }) + "\n").join("");
}

function download() {
  const link = document.createElement("a"), address = URL.createObjectURL(new Blob([lines()], {type: "application/jsonl;charset=utf-8"}));
  link.href = address;
  link.download = "votes.jsonl";
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

function check(name, value) {
  const input = document.querySelector(`input[name=${name}][value="${value}"]`);
  input.checked = true;
  draft();
}

document.addEventListener("keydown", event => {
  if (event.target === at("why") || event.ctrlKey || event.metaKey || event.altKey) return;
  const key = event.key.toLowerCase();
  if (CHOICES[key]) check("choice", CHOICES[key]);
  else if (/^[1-5]$/.test(key)) check("confidence", key);
  else if (key === "enter" && !["BUTTON", "SUMMARY"].includes(event.target.tagName)) vote();
  else if (key === "s" && !at("on").disabled) skip();
  else if (key === "z" && !at("back").disabled) back();
  else return;
  event.preventDefault();
});
at("vote").addEventListener("click", vote);
at("back").addEventListener("click", back);
at("on").addEventListener("click", skip);
at("download").addEventListener("click", download);
const before = kept(), votesBefore = before.votes || {}, skippedBefore = Array.isArray(before.skipped) ? before.skipped : [];
for (const pair of given.pairs) {
  if (isWhole(votesBefore[pair.pair_id])) votes[pair.pair_id] = votesBefore[pair.pair_id];
}
skipped = given.pairs.map(pair => pair.pair_id).filter(id => skippedBefore.includes(id));
place = withoutVote().find(index => !skipped.includes(given.pairs[index].pair_id)) ?? withoutVote()[0] ?? 0;
show();
