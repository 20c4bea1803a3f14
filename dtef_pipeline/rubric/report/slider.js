// ---- the weight of the similarity: scores, intervals and order follow it ----

(() => {
  const held = document.getElementById("board-data");
  if (!held) return;
  const { least, steps, low: first, high: last, models } = JSON.parse(held.textContent);
  const slider = document.getElementById("beta"), shown = document.getElementById("beta-shown");
  const usual = document.getElementById("beta-usual"), body = document.getElementById("board").tBodies[0];
  const rows = [...body.rows].map(row => ({ row, ...models[row.dataset.at] }));
  // As Python ranks: numbers that differ by less than the error of a sum are the same.
  const isSame = (one, other) => Math.abs(one - other) <= 1e-9 * Math.max(Math.abs(one), Math.abs(other)) + 1e-12;
  const three = value => value === null ? "–" : value.toFixed(3);

  function between(ends, beta) {
    const at = beta * steps, below = Math.floor(at + 1e-9), part = Math.max(at - below, 0);
    const low = ends[below], high = ends[Math.min(below + 1, steps)];
    return low === null || high === null ? null : low + part * (high - low);
  }

  function show(one, beta, rank) {
    const find = name => one.row.querySelector(name);
    const low = between(one.low, beta), high = between(one.high, beta), nearest = Math.round(beta * steps);
    find(".place").textContent = rank === null ? "–" : rank;
    find(".places").textContent = one.rank_low[nearest] === null ? "" : `${one.rank_low[nearest]} to ${one.rank_high[nearest]}`;
    find(".number").textContent = three(one.score);
    find(".extent").textContent = low === null ? "" : `${three(low)} to ${three(high)}`;
    if (!find(".point")) return;
    const place = value => 100 * (value - first) / (last - first);
    const from = place(low === null ? one.score : low), to = place(low === null ? one.score : high);
    find(".span").style.left = `${from}%`;
    find(".span").style.width = `${to - from}%`;
    find(".point").style.left = `${place(one.score)}%`;
  }

  function rankAt(beta) {
    for (const one of rows) one.score = one.at_0 === null ? null : one.at_0 + beta * one.slope;
    const isRanked = one => one.score !== null && one.n >= least;
    const byName = (one, other) => one.model < other.model ? -1 : one.model > other.model ? 1 : 0;
    rows.sort((one, other) => isRanked(other) - isRanked(one) || (one.score === null) - (other.score === null)
      || other.score - one.score || byName(one, other));
    let rank = 0, before = null;
    rows.forEach((one, at) => {
      if (isRanked(one) && (before === null || !isSame(before, one.score))) rank = at + 1;
      before = one.score;
      show(one, beta, isRanked(one) ? rank : null);
    });
    body.append(...rows.map(one => one.row));
    shown.textContent = beta.toFixed(2);
    usual.hidden = Math.abs(beta - Number(usual.dataset.beta)) < 1e-9;
  }

  slider.addEventListener("input", () => rankAt(Number(slider.value)));
  usual.addEventListener("click", () => { slider.value = usual.dataset.beta; rankAt(Number(slider.value)); slider.focus(); });
  all("button.to-beta").forEach(button => button.addEventListener("click", () => {
    slider.value = button.dataset.beta;
    rankAt(Number(slider.value));
    slider.focus();
  }));
  if (Number(slider.value) !== Number(usual.dataset.beta)) rankAt(Number(slider.value));  // a browser keeps fields over a reload
})();
