// Follows evaluations by their events. On an event, what a reload would show of the evaluation is put in place of the old.
"use strict";

const STREAMS = 3; // a browser opens six connections to one server, and other pages of it want some
const KINDS = ["queued", "started", "item", "completed", "failed", "cancelled"];
const SETTLE_MS = 300;
const RETRY_MS = 5000;
const LOOK_MS = 10000;
const broken = new Set();

function tellConnection(id, isBroken) {
  if (isBroken) broken.add(id);
  else broken.delete(id);
  const note = document.getElementById("lost");
  if (note) note.hidden = broken.size === 0;
}

class Followed {
  constructor(node) {
    this.id = node.id;
    this.source = null;
    this.timer = null;
  }

  get node() {
    return document.getElementById(this.id);
  }

  listen() {
    this.source = new EventSource(this.node.dataset.events);
    this.source.onopen = () => tellConnection(this.id, false);
    this.source.onerror = () => this.lost();
    for (const kind of KINDS) this.source.addEventListener(kind, () => this.soon());
  }

  lost() {
    tellConnection(this.id, true);
    if (this.source.readyState !== EventSource.CLOSED) return;
    this.source = null; // the server ended the stream for good: because the evaluation has ended, or by an error
    setTimeout(() => this.refresh().then(manage), RETRY_MS);
  }

  soon() {
    this.timer ??= setTimeout(() => this.refresh(), SETTLE_MS);
  }

  async refresh() {
    this.timer = null;
    const old = this.node;
    if (!old) return this.end();
    let answer;
    try {
      answer = await fetch(old.dataset.now, { redirect: "manual" });
    } catch {
      return tellConnection(this.id, true);
    }
    if (!answer.ok) return tellConnection(this.id, true);
    const made = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(this.id);
    if (!made) return tellConnection(this.id, true);
    const focused = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    old.replaceWith(document.adoptNode(made));
    if (focused) made.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
    tellConnection(this.id, false);
    if (!made.dataset.events) this.end();
  }

  end() {
    this.source?.close();
    this.source = null;
    tellConnection(this.id, false);
    followed.delete(this.id);
    manage();
  }
}

const followed = new Map();
for (const node of document.querySelectorAll("[data-events]")) followed.set(node.id, new Followed(node));

function manage() {
  let open = [...followed.values()].filter((one) => one.source).length;
  for (const one of followed.values()) {
    if (open >= STREAMS) break;
    if (!one.source && one.node?.dataset.events) {
      one.listen();
      open += 1;
    }
  }
}

manage();
setInterval(() => {
  for (const one of followed.values()) if (!one.source) one.refresh();
}, LOOK_MS);
