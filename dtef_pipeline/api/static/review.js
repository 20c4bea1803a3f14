// ---- the page on which a reviewer votes: the form works without this; with it there are keys, and the next pair comes without a new page ----

const at = name => document.getElementById(name);
const CHOICE_OF_KEY = {a: "A", b: "B", t: "tie", arrowleft: "A", arrowright: "B"};
const MOST_WORDS = 2000, PATIENCE_MS = 30000;
let isSending = false;

const chosen = name => document.querySelector(`input[name=${name}]:checked`);
const say = (text, isFault) => {
  at("message").textContent = text;
  at("message").classList.toggle("fault", isFault);
  if (isFault) at("message").scrollIntoView({block: "nearest", behavior: "instant"}); // where the bar is not always in view
};

const toTop = () => scrollTo({top: 0, behavior: "instant"});

function count() {
  at("written-so-far").textContent = `${at("why").value.length.toLocaleString("en")} of ${MOST_WORDS.toLocaleString("en")} characters`;
}

function check(name, value) {
  document.querySelector(`input[name=${name}][value="${value}"]`).checked = true;
  say("", false);
}

// What is not stored stays as it was filled in, whatever the reason.
async function send(what) {
  if (isSending) return;
  if (what === "vote" && !(chosen("choice") && chosen("confidence"))) {
    say("Choose A, B or tie, and how certain you are.", true);
    return;
  }
  const given = new URLSearchParams(new FormData(at("ballot")));
  given.set("do", what);
  isSending = true;
  at("ballot").setAttribute("aria-busy", "true");
  try {
    const answer = await fetch("/review", {method: "POST", body: given, signal: AbortSignal.timeout(PATIENCE_MS)});
    take(answer, new DOMParser().parseFromString(await answer.text(), "text/html"));
  } catch (error) {
    say("The server does not answer. Your vote is still here: vote again in a moment.", true);
  } finally {
    isSending = false;
    if (at("ballot")) at("ballot").removeAttribute("aria-busy");
  }
}

const isNext = answer => answer.ok || answer.status === 409 || answer.status === 404;

function take(answer, page) {
  const message = page.getElementById("message");
  if (!message) {
    if (answer.ok) location.assign(answer.url);
    else say("A server error occurred. Your vote is still here: vote again in a moment.", true);
  } else if (!isNext(answer)) {
    say(message.textContent, true);
    if (answer.status === 401) offerLogin();
  } else if (page.getElementById("ballot")) {
    showNext(page);
  } else {
    document.querySelector("header").replaceWith(page.querySelector("header"));
    at("main").replaceChildren(...page.getElementById("main").childNodes);
    at("message").focus();
    toTop();
  }
  if (answer.redirected && message) keepAddress(answer.url);
}

function offerLogin() {
  const link = document.createElement("a");
  link.href = "/login";
  link.target = "_blank";
  link.textContent = "Log in in another tab";
  at("message").append(" ", link, ", then vote again here.");
}

// A reload keeps the skipped pairs, and does not repeat the message about the last vote.
function keepAddress(address) {
  const url = new URL(address);
  url.searchParams.delete("message");
  history.replaceState(null, "", url);
}

function showNext(page) {
  for (const name of ["pair", "of-pair", "counts"]) at(name).replaceChildren(...page.getElementById(name).childNodes);
  for (const input of document.querySelectorAll("#ballot input[type=radio]")) input.checked = false;
  const later = document.querySelector("#task input[name=skipped]");
  if (later) later.value = document.querySelector("#of-pair input[name=skipped]").value;
  at("why").value = "";
  at("reason").open = false;
  count();
  say(page.getElementById("message").textContent, page.getElementById("message").classList.contains("fault"));
  at("asked").focus({preventScroll: true});
  toTop();
}

function writeWhy() {
  at("reason").open = true;
  at("why").focus();
}

function keyInWhy(event) {
  if (event.key === "Escape") at("vote").focus();
  else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send("vote");
  else return;
  event.preventDefault();
}

const movesWithin = (event, key) => key.startsWith("arrow") && event.target.type === "radio";
const hasOwnEnter = target => ["BUTTON", "SUMMARY", "A"].includes(target.tagName);

// A key that is held down sends once.
function once(event, what) {
  if (!event.repeat) send(what);
}

function press(event) {
  if (!at("ballot")) return;
  if (event.target === at("why")) return keyInWhy(event);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const key = event.key.toLowerCase();
  if (movesWithin(event, key) || event.target.closest("#task")) return;
  if (CHOICE_OF_KEY[key]) check("choice", CHOICE_OF_KEY[key]);
  else if (/^[1-5]$/.test(key)) check("confidence", key);
  else if (key === "enter" && !hasOwnEnter(event.target)) once(event, "vote");
  else if (key === "s") once(event, "skip");
  else if (key === "j") writeWhy();
  else if (key === "?") at("keys").open = !at("keys").open;
  else return;
  event.preventDefault();
}

if (at("ballot")) {
  at("ballot").noValidate = true;
  at("ballot").addEventListener("submit", event => {
    event.preventDefault();
    send(event.submitter === at("skip") ? "skip" : "vote");
  });
  at("why").addEventListener("input", count);
  document.addEventListener("keydown", press);
  count();
  if (location.search.includes("message=")) keepAddress(location.href);
}
