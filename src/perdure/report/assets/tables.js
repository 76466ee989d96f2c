// Tables that can be sorted by any column and filtered by words and choices.
const FEW = 8; // a table with fewer rows needs no filter

/** What a cell sorts by: its data-value as a number, otherwise its text. Empty values come last. */
function sortKey(row, column) {
  const cell = row.cells[column];
  if (cell.dataset.value !== undefined) return cell.dataset.value === "" ? null : Number(cell.dataset.value);
  const text = cell.textContent.trim();
  return text === "–" || text === "" ? null : text;
}

function compareKeys(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b), "en", { numeric: true, sensitivity: "base" });
}

function sortBy(table, column, direction) {
  const body = table.tBodies[0];
  const keyed = [...body.rows].map((row, place) => ({ row, place, key: sortKey(row, column) }));
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.place - b.place;
    return direction * compareKeys(a.key, b.key) || a.place - b.place;
  });
  body.append(...keyed.map(({ row }) => row));
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    if (head.classList.contains("unsorted")) return;
    const name = head.textContent.trim();
    const arrow = element("span", { class: "arrow", "aria-hidden": "true", text: "↑" });
    const button = element("button", { type: "button", class: "sorter", text: name }, arrow);
    button.addEventListener("click", () => {
      const number = head.classList.contains("number");
      const current = head.getAttribute("aria-sort");
      // For numbers, the largest are usually of interest.
      const up = current ? current === "descending" : !number;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      arrow.textContent = up ? "↑" : "↓";
      sortBy(table, column, up ? 1 : -1);
      say(`Sorted by ${name}, ${up ? "ascending" : "descending"}`);
    });
    head.dataset.name = name; // for printing
    head.replaceChildren(button);
  });
}

function choiceOf(row, column) {
  const cell = row.cells[column];
  return cell.dataset.choice ?? cell.textContent.trim();
}

/** A search field, a selection for each column marked as such, and the number of rows left. */
function makeFilterable(table) {
  const rows = [...table.tBodies[0].rows];
  if (rows.length < FEW) return;
  const title = table.caption.textContent;
  const words = element("input", { type: "search", placeholder: "Filter", "aria-label": `Filter: ${title}` });
  const count = element("span", { class: "count", role: "status" });
  const choices = [...table.tHead.rows[0].cells].flatMap((head, column) => {
    if (head.dataset.choose === undefined) return [];
    const values = [...new Set(rows.map((row) => choiceOf(row, column)))].filter(Boolean).sort();
    if (values.length < 2) return [];
    const name = (head.firstElementChild ?? head).firstChild.textContent.trim();
    const select = element("select", { "aria-label": `Only one ${name}` },
      element("option", { value: "", text: `any ${name}` }),
      ...values.map((value) => element("option", { value, text: value })));
    return [{ select, column }];
  });
  const apply = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase() + (row.querySelector("[title]")?.title ?? "").toLowerCase();
      const kept = wanted.every((word) => text.includes(word))
        && choices.every(({ select, column }) => !select.value || choiceOf(row, column) === select.value);
      row.hidden = !kept;
      left += kept;
    }
    count.textContent = left === rows.length ? `${rows.length} rows` : `${left} of ${rows.length} rows`;
  };
  words.addEventListener("input", apply);
  choices.forEach(({ select }) => select.addEventListener("change", apply));
  apply();
  table.closest(".frame").before(element("div", { class: "controls" }, words, ...choices.map(({ select }) => select), count));
}

function startTables() {
  document.querySelectorAll("table.filterable").forEach(makeFilterable);
  document.querySelectorAll("table.sortable").forEach(makeSortable);
}
