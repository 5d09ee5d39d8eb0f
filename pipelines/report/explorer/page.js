"use strict";
// The search, and the view of one word or pair. Records are in files of `size`, loaded on demand.
const explorer = (() => {
  const index = JSON.parse(document.getElementById("index-").textContent);
  const [input, hits, told, shown, furthest] = ["word-", "hits-", "told-", "shown-", "furthest-"]
    .map((id) => document.getElementById(id));
  const MOST_HITS = 30;

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  function drawn(name, attributes, ...children) {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  const path = (kind, d) => drawn("path", { class: kind, d });

  // As `shown` of the report: a true minus sign; what rounds to zero has no sign.
  function figure(value, digits = 2) {
    const text = Math.abs(value).toFixed(digits);
    return Number(text) ? (value > 0 ? "+" : "−") + text : text;
  }

  const paragraph = (said, kind = "told") => element("p", { className: kind, textContent: said });
  const count = (n) => n.toLocaleString("en");
  const at = (value, reach, width) => (width * (1 + Math.max(-1, Math.min(1, value / reach)))) / 2;
  const interval = (value, low, high) =>
    figure(value) + (low === null ? "" : ` (${figure(low)} to ${figure(high)})`);

  function scrolled(label, headings, rows, kind) {
    const head = (scope, content) => element("th", { scope }, ...[content].flat());
    const line = ([first, ...rest]) => element("tr", {}, head("row", first),
      ...rest.map((content) => element("td", {}, ...[content].flat())));
    const table = element("table", { className: kind }, element("caption", { textContent: label }),
      element("thead", {}, element("tr", {}, ...headings.map((h) => head("col", h)))),
      element("tbody", {}, ...rows.map(line)));
    const made = element("div", { className: "scroll", tabIndex: 0 }, table);
    made.setAttribute("role", "group");
    made.setAttribute("aria-label", label);
    return made;
  }

  // A figure, and its place on an axis from -reach to reach; `more` is drawn below the dot.
  function dot(value, reach, side, said, more, digits) {
    const frame = { class: `pd ${side}`, viewBox: "0 0 100 12", role: "img", "aria-label": said };
    const drawing = drawn("svg", frame, drawn("title", {}, said), path("zero", "M50 0V12"),
      path("scale", "M0 6H100"), ...more, drawn("circle", { cx: at(value, reach, 100), cy: 6, r: 4 }));
    const number = element("span", { className: "number", textContent: figure(value, digits) });
    return element("span", { className: "strip" }, number, drawing);
  }

  // --- Loading: a file of words or pairs calls this function -----------------------------------

  const loaded = new Map();
  window.plumblineRecords = (k, records) => loaded.get(k).done(records);

  function chunk(file, k) {
    if (!loaded.has(k)) {
      const waiting = {};
      waiting.promise = new Promise((done, failed) => Object.assign(waiting, { done, failed }));
      loaded.set(k, waiting);
      const script = element("script", { src: file });
      script.onerror = () => { loaded.delete(k); waiting.failed(new Error(file)); };
      document.head.append(script);
    }
    return loaded.get(k).promise;
  }

  /* What is searched, and how it looks:
     kind        "word" or "pair": what one is called, in files and in sentences
     keys        what stands in the address of each
     found       of typed text the places of those that are meant, best first
     option      what stands in the list for the one in a place
     show        what is known of the one in a place, by its record
     list        of typed text, what is shown of all that are meant; without it the best is shown */
  function explore({ kind, keys, found, option, show, list }) {
    const place = new Map(keys.map((key, i) => [key, i]));

    function view(...children) {
      shown.replaceChildren(...children);
      shown.hidden = false;
      furthest.hidden = true;
    }

    async function open() {
      const asked = location.hash;
      let key = asked.slice(1);
      try { key = decodeURIComponent(key); } catch { /* a lone %: as it stands */ }
      if (key === "main-") return;
      told.textContent = "";
      close();
      const i = place.get(key) ?? place.get(key.toLowerCase());
      if (key && (i === undefined || !list)) input.value = key;
      shown.hidden = true;
      furthest.hidden = false;
      if (i === undefined) {
        const listed = key && list?.(key);
        if (listed) view(...listed);
        else if (key) told.textContent = `“${key}” is not among these ${kind}s.`;
        return;
      }
      const k = Math.floor(i / index.size);
      const file = `${kind}s/${k}.js`;
      try {
        const records = await chunk(file, k);
        if (location.hash !== asked) return; // the reader chose something else meanwhile
        view(...show(i, records[i - k * index.size]));
      } catch {
        told.textContent = `${file} is not beside this page: keep the directory ${kind}s with it.`;
      }
    }

    // --- Search: a combobox with a list -------------------------------------------------------

    let chosen = -1;
    let places = [];

    function close() {
      hits.hidden = true;
      chosen = -1;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
    }

    function choose(k) {
      const options = [...hits.children];
      chosen = (k + options.length) % options.length;
      options.forEach((option, i) => option.setAttribute("aria-selected", String(i === chosen)));
      input.setAttribute("aria-activedescendant", options[chosen].id);
      options[chosen].scrollIntoView({ block: "nearest" });
    }

    function search() {
      const wanted = input.value.trim().toLowerCase();
      close();
      if (!wanted) {
        told.textContent = "";
        if (location.hash) location.hash = "";
        return;
      }
      places = found(wanted);
      const cut = places.length > MOST_HITS ? `, ${MOST_HITS} shown` : "";
      told.textContent = places.length
        ? `${count(places.length)} ${kind}${places.length === 1 ? "" : "s"}${cut}`
        : `${wanted}: not among the ${kind}s here, too rare in the text or misspelt`;
      hits.replaceChildren(...places.slice(0, MOST_HITS).map((i, k) => {
        const made = element("li", { id: `hit-${k}-` }, ...option(i));
        made.setAttribute("role", "option");
        made.setAttribute("aria-selected", "false");
        made.addEventListener("mousedown", (event) => { event.preventDefault(); go(keys[i]); });
        return made;
      }));
      hits.hidden = !places.length;
      input.setAttribute("aria-expanded", String(!hits.hidden));
    }

    function go(key) {
      const hash = `#${encodeURIComponent(key)}`;
      if (location.hash === hash) open();
      else location.hash = hash;
    }

    input.addEventListener("input", search);
    input.addEventListener("blur", close);
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && input.value.trim()) {
        const best = hits.hidden ? -1 : list ? chosen : Math.max(chosen, 0);
        go(best < 0 ? input.value.trim().toLowerCase() : keys[places[best]]);
      } else if (event.key === "Escape") close();
      else if (["ArrowDown", "ArrowUp"].includes(event.key)) {
        event.preventDefault();
        if (hits.hidden) search();
        if (!hits.hidden) choose(event.key === "ArrowDown" ? chosen + 1 : Math.max(chosen, 0) - 1);
      }
    });
    addEventListener("hashchange", open);
    open();
    return open;
  }

  return { index, furthest, element, drawn, path, figure, paragraph, count, at, interval, scrolled, dot, explore };
})();
