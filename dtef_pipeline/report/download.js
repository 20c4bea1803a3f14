// ---- tables as files: a button for each table, which makes a CSV file in the page itself ----

// A spreadsheet takes a text that begins like this for a formula. An apostrophe before it keeps it a text.
const FORMULA = /^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/;

function csvCell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "string") return String(value);
  const text = FORMULA.test(value) ? "'" + value : value;
  return /[",;\r\n\t']/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

// The mark at the beginning tells spreadsheets that the text is UTF-8.
const csv = (columns, rows) => "\ufeff" + [columns, ...rows].map(row => row.map(csvCell).join(",") + "\r\n").join("");

// Texts that begin alike are told apart by how they end, so the middle is cut.
function slug(text) {
  const words = text.normalize("NFKD").toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "");
  return words.length <= 60 ? words : `${words.slice(0, 30).replace(/-[^-]*$/, "")}-${words.slice(-31).replace(/^[^-]*-/, "")}`;
}
// A caption up to where it begins to explain, and no more words of it than a name has room for.
const inBrief = caption => caption.split(/[:;,(]/)[0].replace(/^(.{0,48})\b.*$/, "$1");
const fileName = parts => [document.title, ...parts].map(slug).filter(Boolean).join("_") + ".csv";

function save(name, text) {
  const link = document.createElement("a"), address = URL.createObjectURL(new Blob([text], {type: "text/csv;charset=utf-8"}));
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// `content` gives the columns and the rows when the button is pressed.
function downloadButton(parts, caption, content) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "download";
  button.textContent = "Download CSV";
  button.setAttribute("aria-label", `Download CSV: ${caption}`);
  button.addEventListener("click", () => save(fileName(parts), csv(...content())));
  return button;
}

const namesGiven = new Set();
all("script.rows").forEach(held => {
  const caption = held.previousElementSibling.getAttribute("aria-label");
  const fold = held.closest("details"), heading = fold ? fold.querySelector("summary").textContent : "";
  const content = () => {
    const columns = JSON.parse(held.textContent), names = Object.keys(columns);
    const values = names.map(name => Array.isArray(columns[name]) ? columns[name] : columns[name].at.map(at => columns[name].distinct[at]));
    return [names, values[0].map((_, row) => values.map(column => column[row]))];
  };
  const parts = [held.closest("section").id, inBrief(caption), heading];
  for (let number = 2; namesGiven.has(fileName(parts)); number += 1) parts[3] = String(number);
  namesGiven.add(fileName(parts));
  held.after(downloadButton(parts, caption, content));
});
