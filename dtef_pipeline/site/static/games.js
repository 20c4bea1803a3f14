// Episodes of a scenario: a list with a choice of player, outcome and game, and the chosen episode move by move.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const {make} = dtef, holder = document.getElementById("episode-files"), place = document.getElementById("episode");
  if (!holder) return;
  const {files, games, in_file} = JSON.parse(holder.textContent), ids = Object.keys(games);
  const list = document.getElementById("episode-list"), rows = [...list.querySelectorAll("tbody tr")];
  const fields = {player: document.getElementById("choose-player"), outcome: document.getElementById("choose-outcome")};
  const every = document.getElementById("every-game"), idOf = (row) => row.querySelector("a").hash.split("=")[1];

  place.replaceChildren();  // what can be read without scripts

  // --- the list
  // a link from two models to a game shows the episodes of both
  const sidesOf = () => dtef.compared().map((name) => dtef.recall("as") ? `${name} as ${dtef.recall("as")}` : name);
  const playerOf = (row) => row.cells[1].textContent.trim();
  function choose() {
    const game = dtef.recall("game"), sides = game ? sidesOf() : [];
    for (const row of rows) {
      const text = (at) => row.cells[at].textContent.trim();
      const fits = (!fields.player.value || playerOf(row) === fields.player.value) && (!fields.outcome.value || text(2) === fields.outcome.value);
      const isOther = Boolean(game && games[idOf(row)] !== game) || Boolean(sides.length && !sides.includes(playerOf(row)));
      row.classList.toggle("out", !fits || isOther);
    }
    every.hidden = !game;
    every.textContent = ids.some((id) => games[id] === game) ? "Show all games" : "No episode of this game is listed: show all";
    list.classList.toggle("all-rows", Boolean(game || fields.player.value || fields.outcome.value || dtef.recall("episode-list.rows") || dtef.recall("episode-list.q")));
  }
  for (const [name, field] of Object.entries(fields)) {
    field.value = [...field.options].some((one) => one.value === dtef.recall(name)) ? dtef.recall(name) : "";
    field.addEventListener("change", () => { dtef.remember(name, field.value); choose(); });
  }
  every.addEventListener("click", () => { dtef.remember("game", ""); choose(); });
  document.getElementById("episode-choice").hidden = false;
  choose();

  // --- the table of a game: any JSON, with cards as cards
  const SUITS = {c: "♣", d: "♦", h: "♥", s: "♠"};
  const card = (value) => typeof value === "number" ? String(Number(value.toFixed(3))) : /^[2-9TJQKA][cdhs]$/.test(value) ? value[0].replace("T", "10") + SUITS[value[1]] : String(value);
  const isPlain = (value) => value === null || typeof value !== "object";
  function drawn(value) {
    if (value === null || value === "") return "–";
    if (isPlain(value)) return card(value);
    if (!Array.isArray(value)) return make("dl", {class: "state"}, ...Object.entries(value).map(([name, one]) => make("div", {}, make("dt", {}, name.replaceAll("_", " ")), make("dd", {}, drawn(one)))));
    if (!value.length) return "–";
    return value.every(isPlain) ? make("span", {}, ...value.map((one) => make("span", {class: "chip"}, drawn(one)))) : make("ul", {}, ...value.map((one) => make("li", {}, drawn(one))));
  }

  // --- one episode
  const said = (text) => make("div", {class: "said", dir: "auto", tabindex: "0"}, text);
  const folded = (title, ...parts) => make("details", {}, make("summary", {}, title), ...parts);
  function written([plan, action, after]) {
    const parts = [plan && plan + "\n", action && make("mark", {}, action), after && "\n" + after].filter(Boolean);
    return make("div", {class: "said", dir: "auto", tabindex: "0"}, ...(parts.length ? parts : ["(no text)"]));
  }
  function moveOf(episode, move) {
    const isWrong = !["legal", "baseline"].includes(move.kind);
    return make("li", {class: "move"},
      make("h4", {}, `Turn ${move.turn} · ${episode.seats[move.seat]} · `, make("bdi", {}, episode.players[move.seat]), " ", make("span", {class: isWrong ? "alarm" : "soft"}, move.kind)),
      move.state && drawn(move.state), move.seen && folded("What the player saw", said(move.seen)), move.text && written(move.text),
      move.whole && folded("Full text, including thinking", said(move.whole)),
      move.command && make("p", {}, "Played: ", make("code", {}, make("bdi", {}, move.command))),
      move.why && make("p", {class: "alarm"}, make("bdi", {}, move.why)));
  }
  function endOf(episode) {
    const lines = (episode.results || []).map(([outcome, reward], seat) => `${episode.seats[seat]} (${episode.players[seat]}): ${outcome}, ${reward}`);
    const hidden = (episode.hidden || []).map((one) => `${one} (not shown to the players)`);
    const noticed = episode.flags ? [`Flags: ${episode.flags.join(", ")}`] : [];
    return make("li", {class: "move"}, make("h4", {}, "The end"), episode.state && drawn(episode.state),
      make("ul", {}, ...[...lines, ...(episode.shown || []), ...hidden, ...noticed].map((one) => make("li", {}, make("bdi", {}, one)))), episode.more && make("p", {}, episode.more));
  }
  function shown(id, episode) {
    const row = rows.find((one) => idOf(one) === id), close = make("button", {type: "button", onclick: () => { dtef.remember("episode", ""); place.replaceChildren(); }}, "Close");
    return make("article", {class: "card"}, make("h3", {}, make("bdi", {}, [...row.cells].slice(0, 3).map((one) => one.textContent.trim()).join(" · "))), close,
      episode.unknown && make("p", {class: "soft"}, episode.unknown),
      make("ol", {class: "moves"}, ...(episode.moves || []).map((move) => moveOf(episode, move)), endOf(episode)),
      make("p", {class: "soft"}, `Snapshot ${episode.snapshot}, draw ${episode.draw}. Episode id: `, make("code", {}, episode.episode), "; hash of its moves: ", make("code", {}, episode.trace)));
  }
  let turn = 0;
  async function load(id) {
    if (!(id in games)) return make("p", {class: "soft"}, "This episode is not listed here; see the table episodes.");
    const file = files[Math.floor(ids.indexOf(id) / in_file)];
    return dtef.load(file).then((held) => shown(id, held[id]), (error) => make("p", {class: "alarm"}, String(error.message)));
  }
  async function open(...wanted) {
    const mine = ++turn;
    dtef.remember("episode", wanted.join("."));
    const found = await Promise.all(wanted.map(load));
    if (mine !== turn) return;
    place.replaceChildren(found.length > 1 ? make("div", {class: "side-by-side"}, ...found) : found[0]);
    place.scrollIntoView();
    place.focus({preventScroll: true});
  }
  list.addEventListener("click", (event) => {
    const link = event.target.closest("tbody a");
    if (!link) return;
    event.preventDefault();
    open(idOf(link.closest("tr")));
  });
  addEventListener("hashchange", () => { if (/[#&](episode|game)=/.test(location.hash)) location.reload(); });
  const firsts = dtef.recall("game") ? sidesOf().map((name) => rows.find((row) => games[idOf(row)] === dtef.recall("game") && playerOf(row) === name)) : [];
  const wanted = dtef.recall("episode") ? dtef.recall("episode").split(".") : firsts.filter(Boolean).map(idOf);
  if (wanted.length) open(...wanted);
});
