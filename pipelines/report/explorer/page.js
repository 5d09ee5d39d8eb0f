"use strict";
// Search, and one word at a time: the words are in files of `size` words, loaded when asked for.
(() => {
  const index = JSON.parse(document.getElementById("index-").textContent);
  const [input, hits, told, shown, furthest] = ["word-", "hits-", "told-", "shown-", "furthest-"]
    .map((id) => document.getElementById(id));
  const place = new Map(index.words.map((word, i) => [word, i]));
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

  // --- One word -------------------------------------------------------------------------------

  function axis(text, delta, low, high, side) {
    const x = (value) => at(value, text.reach, 400);
    const label = (where, anchor, words) =>
      drawn("text", { x: where, y: 62, "text-anchor": anchor }, words);
    const [near, far] = [figure(-text.reach, 1), figure(text.reach, 1)];
    const said = `${interval(delta, low, high)} nats on an axis from ${near} (${text.second}) to ` +
      `${far} (${text.first}), over the distribution of all words' leans`;
    const kind = `lean ${side}`;
    return drawn("svg", { class: kind, viewBox: "-6 0 412 66", role: "img", "aria-label": said },
      path("area", text.area), path("zero", "M200 0V46"), path("scale", "M0 40H400"),
      ...(low === null ? [] : [path("ends", `M${x(low)} 40H${x(high)}`)]),
      drawn("circle", { cx: x(delta), cy: 40, r: 6 }),
      label(0, "start", `${near} ${text.second}`), label(200, "middle", "0"),
      label(400, "end", `${text.first} ${far}`));
  }

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

  function sources(text, rows) {
    const wide = 100 / Math.max(1, ...rows.map(([, f, m]) => f + m));
    const frame = { class: "bar", viewBox: "0 0 100 8", preserveAspectRatio: "none" };
    const part = (kind, x, n) =>
      drawn("rect", { class: kind, x: wide * x, width: wide * n, height: 8 });
    const bar = (f, m) => drawn("svg", { ...frame, "aria-hidden": "true" },
      part("first", 0, f), part("second", f, m));
    const lines = rows.map(([name, f, m, ...lean]) => [name,
      [bar(f, m), ` ${count(f)} + ${count(m)}`], lean[0] === null ? "–" : interval(...lean)]);
    const headings = ["source", `near ${text.first} and ${text.second}`, "lean in nats"];
    return [element("h4", { textContent: "Sources" }),
      scrolled(`Co-occurrences and lean by source in ${text.corpus}`, headings, lines, "bars")];
  }

  function sentences(near, lines) {
    const part = ([mark, text]) =>
      mark ? element(mark === 1 ? "mark" : "b", { textContent: text }) : text;
    const listed = lines.map(({ parts, source }) => element("li", {}, ...parts.map(part),
      ...(source ? [" ", element("small", { textContent: source })] : [])));
    return [element("h4", { textContent: `Drawn at random near ${near}` }),
      element("ul", { className: "lines" }, ...listed)];
  }

  function command(text, word) {
    const quoted = /^[\w.]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
    const code = element("code", { textContent: text.how.replace("WORD", () => quoted) });
    return element("p", {}, "Its sources and sentences: ", code, ", then the report again.");
  }

  function inText(word, text, row) {
    const made = element("section", {}, element("h3", { textContent: text.name }));
    made.append(paragraph(row.says, "says"));
    if (row.lean[0] !== null) made.append(axis(text, ...row.lean));
    made.append(paragraph(row.counts));
    if (row.sources.length > 1) made.append(...sources(text, row.sources));
    for (const [side, near] of [["female", text.first], ["male", text.second]]) {
      const lines = row.sentences.filter((line) => line.side === side);
      if (lines.length) made.append(...sentences(near, lines));
    }
    const unknown = "Imported statistics: its sources and sentences are not known.";
    if (!row.sentences.length) made.append(text.how ? command(text, word) : paragraph(unknown));
    return made;
  }

  function strip([, , value, low, high, , side]) {
    const x = (v) => at(v, index.reach, 100);
    const said = interval(value, low, high);
    const kind = `pd ${side}`;
    const frame = { class: kind, viewBox: "0 0 100 12", role: "img", "aria-label": said };
    const dot = drawn("svg", frame, drawn("title", {}, said), path("zero", "M50 0V12"), path("scale", "M0 6H100"),
      ...(low === null ? [] : [path("ends", `M${x(low)} 6H${x(high)}`)]),
      drawn("circle", { cx: x(value), cy: 6, r: 4 }));
    const number = element("span", { className: "number", textContent: figure(value) });
    return element("span", { className: "strip" }, number, dot);
  }

  function preferences(rows) {
    const distinct = (k) => [...new Set(rows.map((row) => row[k]))].sort((a, b) => a - b);
    const sets = distinct(1);
    const heading = (b) => {
      const [name, first, second] = index.benchmarks[b];
      return [name, element("br"), element("small", { textContent: `${second} – ${first}` })];
    };
    const lines = distinct(0).map((model) => [index.models[model], ...sets.map((b) => {
      const found = rows.find((row) => row[0] === model && row[1] === b);
      return found ? strip(found) : "–";
    })]);
    const caption = "Mean log ratio by model and benchmark";
    return element("section", {}, element("h3", { textContent: "In sentences about it" }),
      paragraph("Mean log ratio of the pairs made for this word, in nats, with 95% intervals over " +
        "its pairs."),
      scrolled(caption, ["Model", ...sets.map(heading)], lines, "matrix"));
  }

  function show(word, record) {
    const parts = Object.entries(record.leans).map(([k, row]) => inText(word, index.texts[k], row));
    if (record.preferences.length) parts.push(preferences(record.preferences));
    const own = index.pages[word];
    const link = element("a", { href: `words/${own}`, textContent: "As a page" });
    if (own) parts.push(element("p", {}, link));
    shown.replaceChildren(element("h2", { className: "name", textContent: word }), ...parts);
    shown.hidden = false;
    furthest.hidden = true;
  }

  // --- Loading: a file of words calls this function -------------------------------------------

  const loaded = new Map();
  window.plumblineWords = (k, records) => loaded.get(k).done(records);

  function chunk(k) {
    if (!loaded.has(k)) {
      const waiting = {};
      waiting.promise = new Promise((done, failed) => Object.assign(waiting, { done, failed }));
      loaded.set(k, waiting);
      const script = element("script", { src: `words/${k}.js` });
      script.onerror = () => { loaded.delete(k); waiting.failed(new Error(script.src)); };
      document.head.append(script);
    }
    return loaded.get(k).promise;
  }

  async function open() {
    let word = location.hash.slice(1);
    try { word = decodeURIComponent(word); } catch { /* a lone %: as it stands */ }
    if (word === "main-") return;
    told.textContent = "";
    close();
    if (word) input.value = word;
    const i = place.get(word) ?? place.get(word.toLowerCase());
    shown.hidden = true;
    furthest.hidden = false;
    if (i === undefined) {
      if (word) told.textContent = `“${word}” is not among these words.`;
      return;
    }
    const k = Math.floor(i / index.size);
    try {
      const records = await chunk(k);
      if (input.value !== word) return; // somebody went on meanwhile
      show(index.words[i], records[i - k * index.size]);
    } catch {
      told.textContent = `words/${k}.js is not beside this page: keep the directory words with it.`;
    }
  }

  // --- Search: a combobox with a list ---------------------------------------------------------

  let chosen = -1;

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

  function found(wanted) {
    const inside = index.words.filter((word) => word.includes(wanted));
    const rank = (word) => (word === wanted ? 0 : word.startsWith(wanted) ? 1 : 2);
    return inside.sort((a, b) => rank(a) - rank(b)); // of equal rank the more frequent first
  }

  function search() {
    const wanted = input.value.trim().toLowerCase();
    close();
    if (!wanted) {
      told.textContent = "";
      if (location.hash) location.hash = "";
      return;
    }
    const words = found(wanted);
    const cut = words.length > MOST_HITS ? `, ${MOST_HITS} shown` : "";
    told.textContent = words.length
      ? `${count(words.length)} word${words.length === 1 ? "" : "s"}${cut}`
      : `${wanted}: not among the words here, too rare in the text or misspelt`;
    hits.replaceChildren(...words.slice(0, MOST_HITS).map((word, i) => {
      const lean = index.deltas[place.get(word)];
      const option = element("li", { id: `hit-${i}-` }, element("span", { textContent: word }),
        element("span", { className: "number", textContent: lean === null ? "" : figure(lean) }));
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      option.addEventListener("mousedown", (event) => { event.preventDefault(); go(word); });
      return option;
    }));
    hits.hidden = !words.length;
    input.setAttribute("aria-expanded", String(!hits.hidden));
  }

  function go(word) {
    input.value = word;
    const hash = `#${encodeURIComponent(word)}`;
    if (location.hash === hash) open();
    else location.hash = hash;
  }

  input.addEventListener("input", search);
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && input.value.trim()) {
      const first = hits.hidden ? null : hits.children[Math.max(chosen, 0)];
      go(first ? first.firstChild.textContent : input.value.trim().toLowerCase());
    } else if (event.key === "Escape") close();
    else if (["ArrowDown", "ArrowUp"].includes(event.key)) {
      event.preventDefault();
      if (hits.hidden) search();
      if (!hits.hidden) choose(event.key === "ArrowDown" ? chosen + 1 : Math.max(chosen, 0) - 1);
    }
  });
  addEventListener("hashchange", open);
  open();
})();
