// ---- prompt and response of a pair; whatever they say is text, never markup ----

const heldTexts = document.getElementById("pair-text-data");
const pairTexts = heldTexts ? JSON.parse(heldTexts.textContent) : {pool: [], prompts: [], said: {}};

const raw = text => make("pre", text, "raw");

// The command that shows the texts of a pair, also those that the page does not hold.
function commandFor(question, segment) {
  const quoted = text => "'" + text.replace(/'/g, "''") + "'";
  return `dtef sql --json "SELECT model, snapshot, draw, system, b.user, response FROM predictions JOIN blueprints b ` +
    `USING (round, segment, question_id, context_level, condition, prompt_id) ` +
    `WHERE round = ${quoted(question.r)} AND segment = ${quoted(segment)} AND question_id = ${quoted(question.id)}"`;
}

function oneResponse([prompt, response, status, reason, snapshot, draw], several) {
  const of = at => pairTexts.pool[at], lines = prompt < 0 ? null : pairTexts.prompts[prompt];
  const title = `${of(status).replace("_", " ")}${of(reason) ? `: ${of(reason)}` : ""} (snapshot ${of(snapshot)}${several ? `, draw ${draw}` : ""})`;
  const words = lines ? [make("p", "System prompt"), raw(of(lines[0])), make("p", "Prompt"), raw(lines.slice(1).map(of).join("\n"))]
    : [make("p", "The prompt is no longer in the table blueprints.")];
  return [make("p", `Response. ${title}`), raw(of(response) || "(empty)"), ...words];
}

// `key`: numbers of question, segment, model and way.
function textsOf(key, question, segment, isOpen) {
  const found = pairTexts.said[key], fold = make("details", undefined, "texts"), summary = make("summary", "Prompt and response");
  fold.open = isOpen;
  fold.append(summary, ...(found || []).flatMap(one => oneResponse(one, found.length > 1)));
  fold.append(make("p", found ? "This command shows what every model was asked and wrote about this pair, in all snapshots and ways of asking:"
    : "The page does not hold them. This command shows them, with those of all models, snapshots and ways of asking:"));
  fold.append(make("code", commandFor(question, segment)));
  return fold;
}
