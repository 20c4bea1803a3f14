// ---- prompts, responses, verdicts: what a link leads to opens; models can be chosen by name ----

(() => {
  const openTo = () => {
    const target = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    if (!target) return;
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", openTo);
  document.addEventListener("click", event => {
    const link = event.target.closest('a[href^="#"]');
    if (link && link.getAttribute("href") === location.hash) openTo();
  });
  openTo();

  all("button[data-opens]").forEach(button => button.addEventListener("click", () => {
    const parts = all(button.dataset.opens), open = !parts.every(part => part.open);
    parts.forEach(part => { part.open = open; });
    button.textContent = button.textContent.replace(/^\w+/, open ? "Close" : "Open");
  }));

  const only = document.getElementById("only-models");
  if (!only) return;
  const told = document.getElementById("only-told");
  function choose() {
    const wanted = words(only.value), isWanted = name => wanted.every(word => name.toLowerCase().includes(word));
    const cards = all(".response");
    cards.forEach(card => { card.hidden = !isWanted(card.dataset.model); });
    for (const table of all("table.heat")) {
      const heads = [...table.tHead.rows[0].cells].map(head => !head.dataset.model || isWanted(head.dataset.model));
      for (const row of table.rows) [...row.cells].forEach((cell, at) => { cell.hidden = !heads[at] && cell.colSpan === 1; });
    }
    const left = cards.filter(card => !card.hidden).length;
    told.textContent = wanted.length ? `${left} of ${cards.length} responses shown` : "";
  }
  only.addEventListener("input", choose);
})();
