"use strict";
// Keeps the answers in the browser, counts them, and gives them as a file.
(() => {
  const { sheet, rater, questions } = document.body.dataset;
  const names = questions.split(" ");
  const place = `plumbline-ratings-${sheet}`;
  const items = [...document.querySelectorAll(".item")];
  const groups = [...document.querySelectorAll("fieldset")];
  const [told, progress, next, download, unsaved] =
    ["told", "progress", "next", "download", "unsaved"].map((id) => document.getElementById(id));
  progress.max = groups.length;

  const chosen = (group) => group.querySelector("input:checked");

  function answers() {
    return Object.fromEntries(items.map((item) =>
      [item.dataset.item, [...item.querySelectorAll("fieldset")].map((g) => chosen(g)?.value ?? "")]));
  }

  function keep() {
    try {
      localStorage.setItem(place, JSON.stringify(answers()));
    } catch {
      unsaved.hidden = false;
    }
  }

  function restore() {
    let kept = {};
    try {
      kept = JSON.parse(localStorage.getItem(place) ?? "{}");
    } catch {
      unsaved.hidden = false;
    }
    for (const item of items) {
      [...item.querySelectorAll("fieldset")].forEach((group, i) => {
        for (const input of group.querySelectorAll("input")) {
          input.checked = input.value === kept[item.dataset.item]?.[i];
        }
      });
    }
  }

  function count() {
    const n = groups.filter(chosen).length;
    progress.value = n;
    told.textContent = `${n} of ${groups.length} answered`;
    for (const item of items) {
      item.classList.toggle("done", [...item.querySelectorAll("fieldset")].every(chosen));
    }
    document.body.classList.toggle("complete", n === groups.length);
  }

  // The next question without an answer, from the top again after the last one.
  function advance() {
    const here = groups.indexOf(document.activeElement.closest("fieldset"));
    const open = [...groups.slice(here + 1), ...groups.slice(0, here + 1)].find((g) => !chosen(g));
    const target = open ? open.querySelector("input") : download;
    target.focus({ preventScroll: true });
    target.closest(".item, footer").scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("change", () => {
    keep();
    count();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.type !== "radio") return;
    event.preventDefault();
    advance();
  });
  next.addEventListener("click", advance);
  download.addEventListener("click", () => {
    // Names of items and answers hold nothing that CSV quotes or a spreadsheet computes.
    const lines = [["item", ...names], ...Object.entries(answers()).map(([i, given]) => [i, ...given])];
    const content = lines.map((line) => `${line.join(",")}\n`).join("");
    const url = URL.createObjectURL(new Blob([content], { type: "text/csv;charset=utf-8" }));
    Object.assign(document.createElement("a"), { href: url, download: `${rater}.csv` }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  });
  restore();
  count();
})();
