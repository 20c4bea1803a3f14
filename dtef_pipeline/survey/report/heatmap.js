// ---- the heat map: a tap on a cell says what pointing at it shows ----

document.addEventListener("click", event => {
  const cell = event.target.closest(".heat td[title]");
  if (!cell) return;
  const told = cell.closest(".scroll").previousElementSibling;
  told.textContent = `${cell.parentNode.cells[0].innerText.replace(/\s+/g, " ")}. ${cell.title}`;
  all(".heat td.told").forEach(other => other.classList.remove("told"));
  cell.classList.add("told");
});
