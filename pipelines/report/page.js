"use strict";
// Sorting, search, copying and downloads. Without scripts the page reads the same.
(() => {
  const FORMULA = /^[=+\-@\t\r\n|%＝＋－＠]/;
  const BLANKS = /^[\s\x1c-\x1f\x85]*/;
  const PLAIN_NUMBER = /^[+-]?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?$/;
  const order = new Intl.Collator("en", { numeric: true });

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function button(label, description, action) {
    const made = element("button", { type: "button", textContent: label, onclick: action });
    made.setAttribute("aria-label", description);
    return made;
  }

  // Like csv_cell of warehouse/text/escape.py: no spreadsheet takes a text for a formula.
  function neutral(text) {
    const starts = FORMULA.test(text) || FORMULA.test(text.replace(BLANKS, ""));
    return starts && !PLAIN_NUMBER.test(text) ? `'${text}` : text;
  }

  const quoted = (text) => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

  function save(name, content) {
    const url = URL.createObjectURL(new Blob([content], { type: "text/csv;charset=utf-8" }));
    element("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  }

  const fileName = (text) =>
    text.toLowerCase().replace(/[^a-z0-9.]+/g, "-").replace(/^[-.]+|[-.]+$/g, "").slice(0, 80);

  // A figure unrounded, in the unit of its heading; its interval in two further columns.
  function csvOf(table) {
    const rows = [...table.tBodies[0].rows];
    const spans = [...table.tHead.rows[0].cells].map((_, i) =>
      rows.some((row) => "low" in row.cells[i].dataset));
    const lines = [[...table.tHead.rows[0].cells].flatMap((cell, i) => {
      const heading = neutral(cell.dataset.heading);
      return spans[i] ? [heading, `${heading}, low`, `${heading}, high`] : [heading];
    })];
    for (const row of rows) {
      lines.push([...row.cells].flatMap((cell, i) => {
        const { value, low = "", high = "" } = cell.dataset;
        const text = cell.textContent === "–" ? "" : neutral(cell.textContent);
        return spans[i] ? [value ?? text, low, high] : [value ?? text];
      }));
    }
    return lines.map((line) => `${line.map(quoted).join(",")}\n`).join("");
  }

  function compare(a, b, sign) {
    const [x, y] = [a.dataset.value, b.dataset.value].map((v) => (v === undefined ? NaN : +v));
    if (!Number.isNaN(x) && !Number.isNaN(y)) return sign * (x - y);
    if (!Number.isNaN(x)) return -1; // cells without a figure come last in both orders
    if (!Number.isNaN(y)) return 1;
    const isGap = (cell) => ["–", ""].includes(cell.textContent);
    if (isGap(a) || isGap(b)) return isGap(a) - isGap(b);
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

  function makeSortable(table) {
    for (const heading of table.tHead.rows[0].cells) {
      heading.dataset.heading = heading.textContent;
      const label = heading.textContent;
      const sorter = element("button", { type: "button", textContent: label, className: "sort" });
      sorter.addEventListener("click", () => sortBy(table, heading));
      if (heading.children.length) { // keep a link in the heading
        sorter.textContent = "";
        sorter.setAttribute("aria-label", `Sort by ${label}`);
        heading.append(sorter);
      } else heading.replaceChildren(sorter);
    }
  }

  function searchOf(table, caption) {
    const rows = [...table.tBodies[0].rows];
    const told = element("span", { className: "told" });
    told.setAttribute("role", "status"); // a polite aria-live region
    told.setAttribute("aria-live", "polite");
    const input = element("input", { type: "search", placeholder: "search rows" });
    input.setAttribute("aria-label", `Search the rows of: ${caption}`);
    input.addEventListener("input", () => {
      const wanted = input.value.trim().toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      const n = rows.filter((row) => !row.hidden).length;
      told.textContent = wanted ? `${n} of ${rows.length} rows` : "";
    });
    return [input, told];
  }

  for (const table of document.querySelectorAll("table")) {
    const caption = table.caption.textContent;
    makeSortable(table);
    if ("bare" in table.dataset) continue; // its figures are drawn
    const tools = element("p", { className: "tools" });
    if ("search" in table.dataset) tools.append(...searchOf(table, caption));
    tools.append(button("CSV", `Download as CSV: ${caption}`, () =>
      save(`${fileName(caption)}.csv`, csvOf(table))));
    table.parentElement.before(tools);
  }

  for (const figure of document.querySelectorAll("figure")) {
    const data = figure.querySelector(".data pre");
    if (!data) continue;
    figure.querySelector("figcaption").after(element("p", { className: "tools" },
      button("CSV", `Download the chart's data as CSV: ${figure.id}`, () =>
        save(`${figure.id}.csv`, data.textContent))));
  }

  // The policy forbids eval and inline styles: expressions are interpreted, the style is ours.
  const options = {
    ast: true, actions: false, renderer: "svg", defaultStyle: false,
    tooltip: { disableDefaultStyle: true },
  };
  async function draw() {
    for (const place of document.querySelectorAll(".chart")) {
      await vegaEmbed(place, JSON.parse(place.nextElementSibling.textContent), options);
    }
  }
  if (document.querySelector(".chart")) draw();

  for (const query of document.querySelectorAll(".sql pre")) {
    const told = element("span", { className: "told" });
    told.setAttribute("role", "status");
    const copy = button("Copy", "Copy the query", async () => {
      getSelection().selectAllChildren(query); // for browsers without a clipboard
      try {
        await navigator.clipboard.writeText(query.textContent);
        told.textContent = "copied";
      } catch {
        told.textContent = "selected, copy it";
      }
    });
    query.before(element("p", { className: "tools" }, copy, told));
  }

  // For printing, unfold all but long tables and the data of plots; afterwards restore.
  const closed = [];
  addEventListener("beforeprint", () => {
    for (const details of document.querySelectorAll("details:not([open], .long)")) {
      details.open = true;
      closed.push(details);
    }
  });
  addEventListener("afterprint", () => {
    for (const details of closed.splice(0)) details.open = false;
  });
})();
