// Keeps the live part of a page as a reload would show it: soon after events of what runs, and otherwise every few seconds.
"use strict";

const STREAMS = 2; // a browser opens six connections to one server, and other pages of it want some
const KINDS = ["queued", "started", "item", "completed", "failed", "cancelled"];
const ORDER = ["running", "cancelling", "queued"];
const SETTLE_MS = 300;
const LOOK_MS = 5000;
const RETRY_MS = 5000;
const streams = new Map(); // by address
const broken = new Set();
let tag = null;
let timer = null;
let isAsking = false;
let isLoggedOut = false;

const live = () => document.getElementById("live");

function tellConnection(what, isBroken) {
  if (isBroken) broken.add(what);
  else broken.delete(what);
  const lost = document.getElementById("lost");
  const loggedOut = document.getElementById("logged-out");
  if (lost) lost.hidden = isLoggedOut || broken.size === 0;
  if (loggedOut) loggedOut.hidden = !isLoggedOut;
}

function soon() {
  timer ??= setTimeout(refresh, SETTLE_MS);
}

async function refresh() {
  clearTimeout(timer);
  timer = null;
  const address = live()?.dataset.now;
  if (!address) return;
  if (isAsking) return soon();
  isAsking = true;
  try {
    const answer = await fetch(address, {headers: tag ? {"If-None-Match": tag} : {}, cache: "no-store", redirect: "manual"});
    const isTaken = answer.status === 304 || (answer.ok && put(await answer.text()));
    if (isTaken) tag = answer.headers.get("ETag");
    isLoggedOut = answer.type === "opaqueredirect"; // to the page that logs in
    tellConnection("page", !isTaken);
  } catch {
    tellConnection("page", true);
  } finally {
    isAsking = false;
  }
}

// What a reader has opened stays open, and the focus stays where it was.
function put(markup) {
  const made = new DOMParser().parseFromString(markup, "text/html").getElementById("live");
  const old = live();
  if (!made || !old) return false;
  for (const [one, open] of [...old.querySelectorAll("details")].map(node => [placeOf(node, old), node.open])) {
    const same = open && [...made.querySelectorAll("details")].find(node => placeOf(node, made) === one);
    if (same) same.open = true;
  }
  const boxes = [...old.querySelectorAll(".scroll")].map(node => node.scrollLeft);
  const focused = old.contains(document.activeElement) ? placeOf(document.activeElement, old) : null;
  old.replaceWith(document.adoptNode(made));
  made.querySelectorAll("div.table").forEach(dtef.setUp);
  made.querySelectorAll(".scroll").forEach((node, at) => { node.scrollLeft = boxes[at] ?? 0; });
  if (focused) [...made.querySelectorAll(focused.split("|")[0])].find(node => placeOf(node, made) === focused)?.focus({preventScroll: true});
  listen();
  return true;
}

// The kind of an element, its row, and its number in the row.
function placeOf(node, within) {
  const row = node.closest("tbody[id], details[id]") ?? within;
  return `${node.tagName}|${row.id}|${[...row.querySelectorAll(node.tagName)].indexOf(node)}`;
}

// Streams for what runs, then for what waits; what has none is looked at every few seconds.
function listen() {
  const open = [live(), ...live().querySelectorAll("[data-events]")].filter(node => node.dataset.events);
  const rank = node => ORDER.indexOf(node.dataset.state);
  const wanted = open.sort((one, other) => rank(one) - rank(other)).slice(0, STREAMS).map(node => node.dataset.events);
  for (const address of [...streams.keys()]) if (!wanted.includes(address)) end(address);
  for (const address of wanted) if (!streams.has(address)) begin(address);
}

function begin(address) {
  const source = new EventSource(address);
  streams.set(address, source);
  source.onopen = () => tellConnection(address, false);
  source.onerror = () => {
    if (streams.get(address) !== source) return;
    tellConnection(address, true);
    if (source.readyState !== EventSource.CLOSED) return;
    // The server ended the stream for good: because the evaluation has ended, or by an error.
    setTimeout(() => {
      if (streams.get(address) !== source) return;
      end(address);
      refresh().then(listen);
    }, RETRY_MS);
  };
  for (const kind of KINDS) source.addEventListener(kind, soon);
}

function end(address) {
  streams.get(address)?.close();
  streams.delete(address);
  tellConnection(address, false);
}

document.querySelector("[data-search] select")?.addEventListener("change", event => event.target.form.requestSubmit());
listen();
setInterval(() => {
  if (!document.hidden) refresh();
}, LOOK_MS);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) refresh();
});
