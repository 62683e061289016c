"use strict";
// Sorting: a click on a column's title sorts by it, the largest first; another click turns it round.
for (const table of document.querySelectorAll("table.sortable")) {
  const titles = [...table.tHead.rows[0].cells];
  titles.forEach((title, column) => {
    if (!title.dataset.sort) return;
    const sort = () => {
      const down = title.getAttribute("aria-sort") !== "descending";
      titles.forEach((other) => other.removeAttribute("aria-sort"));
      title.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = (row) => Number(row.cells[column].dataset.value);
      const rows = [...table.tBodies[0].rows].sort((a, b) => (down ? key(b) - key(a) : key(a) - key(b)));
      table.tBodies[0].append(...rows);
    };
    title.tabIndex = 0;
    title.addEventListener("click", sort);
    title.addEventListener("keydown", (event) => event.key === "Enter" && sort());
  });
}
// Hints: what has one shows it beside the pointer at once; without this script the browser's own appear.
const hint = document.getElementById("hint");
for (const title of document.querySelectorAll("[data-hint] title")) title.remove();
document.addEventListener("mousemove", (event) => {
  const owner = event.target.closest("[data-hint]");
  hint.style.display = owner ? "block" : "none";
  if (!owner) return;
  hint.textContent = owner.dataset.hint;
  hint.style.left = Math.min(event.clientX + 14, innerWidth - hint.offsetWidth - 8) + "px";
  hint.style.top = Math.min(event.clientY + 14, innerHeight - hint.offsetHeight - 8) + "px";
});
document.documentElement.dataset.ready = "yes";
