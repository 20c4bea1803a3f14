// ---- a page on which a reviewer votes: texts are set as texts, votes stay in this browser until they are downloaded ----

const given = JSON.parse(document.getElementById("pairs").textContent);
const at = name => document.getElementById(name);
const CHOICES = {a: "A", b: "B", t: "tie"};
const MOST_WORDS = 2000;
let votes = {}, drafts = {}, place = 0;

// A browser may refuse to keep anything for a page: then votes last as long as the page is open, and it says so.
function kept() {
  try {
    return JSON.parse(localStorage.getItem(given.key)) || {};
  } catch (error) {
    return {};
  }
}

function keep() {
  try {
    localStorage.setItem(given.key, JSON.stringify(votes));
  } catch (error) {
    at("lost").hidden = false;
  }
}

const isWhole = vote => vote && Object.values(CHOICES).includes(vote.choice) && Number.isInteger(vote.confidence) && vote.confidence >= 1 && vote.confidence <= 5;
const done = () => given.pairs.filter(pair => isWhole(votes[pair.pair_id])).length;

function show() {
  const pair = given.pairs[place], draft = drafts[pair.pair_id] || votes[pair.pair_id] || {};
  at("prompt").textContent = pair.prompt;
  at("run-a").textContent = pair.run_a;
  at("run-b").textContent = pair.run_b;
  at("where").textContent = `Pair ${place + 1} of ${given.pairs.length}, ${done()} voted on`;
  for (const input of document.querySelectorAll("input")) {
    input.checked = String(draft[input.name]) === input.value;
  }
  at("why").value = draft.justification || "";
  at("back").disabled = place === 0;
  at("on").disabled = place === given.pairs.length - 1;
  at("download").disabled = done() === 0;
  at("said").textContent = isWhole(votes[pair.pair_id]) ? "Your vote is kept." : "";
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

function go(step) {
  draft();
  place = Math.min(given.pairs.length - 1, Math.max(0, place + step));
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
  keep();
  if (place < given.pairs.length - 1) {
    go(1);
  } else {
    show();
    at("said").textContent = "That was the last pair. Download your votes, and send the file back.";
  }
}

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
  else if (key === "enter" && event.target.tagName !== "BUTTON") vote();
  else return;
  event.preventDefault();
});
at("vote").addEventListener("click", vote);
at("back").addEventListener("click", () => go(-1));
at("on").addEventListener("click", () => go(1));
at("download").addEventListener("click", download);
const before = kept();
for (const pair of given.pairs) {
  if (isWhole(before[pair.pair_id])) votes[pair.pair_id] = before[pair.pair_id];
}
place = Math.max(0, given.pairs.findIndex(pair => !votes[pair.pair_id]));
show();
