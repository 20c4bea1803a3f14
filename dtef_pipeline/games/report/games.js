// ---- boards of one scenario: one metric at a time, chosen from a list ----

all(".metrics").forEach((box, at) => {
  const folds = [...box.children];
  if (folds.length < 2) return;
  const label = document.createElement("label"), field = document.createElement("select");
  label.className = "choice";
  label.append("Metric ", field);
  field.autocomplete = "off";
  folds.forEach((fold, number) => field.append(new Option(fold.querySelector("summary").textContent, String(number))));
  const show = () => folds.forEach((fold, number) => {
    fold.hidden = number !== Number(field.value);
    fold.open = !fold.hidden;
  });
  field.setAttribute("aria-label", `Metric of ${box.dataset.of}`);
  field.id = `metric-${at}`;
  field.addEventListener("change", show);
  box.classList.add("chosen");
  box.prepend(label);
  show();
  addEventListener("beforeprint", () => folds.forEach(fold => { fold.hidden = false; }));
  addEventListener("afterprint", show);
});

// ---- an episode: one move at a time ----

all(".replay").forEach(box => {
  const steps = all(".step", box);
  if (steps.length < 2) return;
  const bar = document.createElement("div"), told = document.createElement("span"), track = document.createElement("div");
  let at = 0, isWhole = false;
  const button = (words, title, does) => {
    const made = document.createElement("button");
    made.type = "button";
    made.textContent = words;
    made.title = title;
    made.setAttribute("aria-label", title);
    made.addEventListener("click", does);
    bar.append(made);
    return made;
  };
  bar.className = "stepper";
  bar.setAttribute("role", "group");
  bar.setAttribute("aria-label", "Moves");
  told.className = "count";
  told.setAttribute("role", "status");
  const first = button("First", "First move", () => go(0));
  const back = button("◀", "Move before", () => go(at - 1));
  bar.append(told);
  const next = button("▶", "Next move", () => go(at + 1));
  const last = button("End", "The end", () => go(steps.length - 1));
  const whole = button("Show all", "Show all moves at once", () => { isWhole = !isWhole; show(); });
  track.className = "track";
  const marks = steps.map((step, number) => {
    const mark = document.createElement("a");
    const heading = step.querySelector("h3").textContent.replace(/\s+/g, " ").trim();
    mark.href = `#${step.id}`;
    mark.title = heading;
    mark.setAttribute("aria-label", heading);
    mark.classList.toggle("wrong", !!step.querySelector("h3 .flag.warn"));
    mark.classList.toggle("own", !!step.querySelector(".wrote"));
    mark.addEventListener("click", event => { event.preventDefault(); go(number); });
    track.append(mark);
    return mark;
  });
  bar.append(track);
  box.prepend(bar);

  function show() {
    steps.forEach((step, number) => { step.hidden = !isWhole && number !== at; });
    marks.forEach((mark, number) => number === at ? mark.setAttribute("aria-current", "step") : mark.removeAttribute("aria-current"));
    told.textContent = at === steps.length - 1 ? `end, ${steps.length - 1} moves` : `${at + 1} of ${steps.length - 1}`;
    first.disabled = back.disabled = at === 0;
    next.disabled = last.disabled = at === steps.length - 1;
    whole.textContent = isWhole ? "Show one" : "Show all";
    whole.setAttribute("aria-pressed", String(isWhole));
  }
  function go(number) {
    at = Math.max(0, Math.min(steps.length - 1, number));
    show();
    if (isWhole) steps[at].scrollIntoView({ block: "start" });
    history.replaceState(null, "", `#${steps[at].id}`);
  }
  function follow() {
    const found = steps.findIndex(step => `#${step.id}` === location.hash);
    if (found >= 0) at = found;
    show();
  }
  const places = { ArrowLeft: () => at - 1, ArrowRight: () => at + 1, Home: () => 0, End: () => steps.length - 1 };
  document.addEventListener("keydown", event => {
    if (!(event.key in places) || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest("input, select, textarea, .scroll, .raw")) return;
    event.preventDefault();
    go(places[event.key]());
  });
  addEventListener("hashchange", follow);
  follow();
});
