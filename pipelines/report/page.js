"use strict";
// Charts, and the sorting and search of tables. Without scripts the page reads the same.
(() => {
  const order = new Intl.Collator("en", { numeric: true });

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function compare(a, b, sign) {
    const [x, y] = [a.dataset.value, b.dataset.value].map((v) => (v === undefined ? NaN : +v));
    if (!Number.isNaN(x) && !Number.isNaN(y)) return sign * (x - y);
    if (!Number.isNaN(x)) return -1; // cells without a figure come last in both orders
    if (!Number.isNaN(y)) return 1;
    return sign * order.compare(a.textContent, b.textContent);
  }

  function sortBy(table, heading) {
    const isAscending = heading.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
    const i = heading.cellIndex;
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => compare(a.cells[i], b.cells[i], isAscending ? 1 : -1));
    table.tBodies[0].append(...rows);
  }

  function searchOf(table) {
    const rows = [...table.tBodies[0].rows];
    const told = element("span", { role: "status" });
    const input = element("input", { type: "search", placeholder: "search rows" });
    input.setAttribute("aria-label", `Search the rows of: ${table.ariaLabel}`);
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      const n = rows.filter((row) => !row.hidden).length;
      told.textContent = wanted ? `${n} of ${rows.length} rows` : "";
    });
    return element("p", { className: "tools" }, input, told);
  }

  for (const table of document.querySelectorAll("table")) {
    for (const heading of table.tHead.rows[0].cells) {
      const sorter = element("button", { type: "button", className: "sort" });
      sorter.append(...heading.childNodes);
      sorter.addEventListener("click", () => sortBy(table, heading));
      heading.append(sorter);
    }
    if ("search" in table.dataset) table.parentElement.before(searchOf(table));
  }

  // The page's policy forbids eval and inline styles, so Vega interprets expressions.
  const options = {
    ast: true, actions: false, renderer: "svg", defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
  };
  async function draw() {
    for (const place of document.querySelectorAll(".chart")) {
      await vegaEmbed(place, JSON.parse(place.nextElementSibling.textContent), options);
    }
  }
  draw();
})();
