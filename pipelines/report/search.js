"use strict";
// What is typed becomes the page's address. The address filters the list, and opens what it names.
(() => {
  const index = JSON.parse(document.getElementById("index-").textContent);
  const [input, told, shown, list] = ["search-", "told-", "shown-", "list-"]
    .map((id) => document.getElementById(id));
  const MOST_LISTED = 100;
  const LETTER = "[\\p{L}\\p{M}\\p{N}]";
  const place = new Map(index.things.map(([key], i) => [key, i]));
  const texts = index.things.map(([key, parts]) =>
    `${[parts].flat(2).join(" ")} ${key}`.toLowerCase());

  function element(name, properties, ...children) {
    const made = Object.assign(document.createElement(name), properties);
    made.append(...children);
    return made;
  }

  // A text or its parts: a list in it holds marked texts, such as the words in which two differ.
  function marked(parts) {
    const mark = (text) => element("mark", { textContent: text || "∅" });
    const shownAs = (part) => (typeof part === "string" ? [part]
      : part.flatMap((text, k) => [k ? " / " : "", mark(text)]));
    return [parts].flat().flatMap((part, k) => [k ? " " : "", ...shownAs(part)]);
  }

  function table([caption, headings, names], rows) {
    const head = (text) => element("th", { scope: "col", textContent: text });
    const line = ([first, ...rest]) => element("tr", {},
      element("th", { scope: "row" }, ...marked(first)),
      ...rest.map((cell) => element("td", {}, ...marked(cell))));
    const lines = names.length ? names.map((name, i) => [name, rows[i]].flat()) : rows;
    const made = element("table", {}, element("caption", { textContent: caption }),
      element("thead", {}, element("tr", {}, ...headings.map(head))),
      element("tbody", {}, ...lines.map(line)));
    const properties = { className: "scroll", tabIndex: 0, role: "group", ariaLabel: caption };
    return element("div", properties, made);
  }

  function block(content) {
    if (typeof content === "string") return element("p", { textContent: content });
    const [first, second] = content;
    if (typeof first === "number") return table(index.tables[first], second);
    return element("p", {}, element("a", { textContent: first, href: second }));
  }

  function line(i) {
    const [key, parts, note] = index.things[i];
    const address = `#${encodeURIComponent(key)}`;
    return element("li", {}, element("a", { href: address }, ...marked(parts)),
      element("small", { textContent: note }));
  }

  // Every word typed must begin a word; those that have all of them as whole words come first.
  function found(wanted) {
    const words = wanted.toLowerCase().match(new RegExp(`${LETTER}+`, "gu")) ?? [];
    const begins = words.map((word) => new RegExp(`(?<!${LETTER})${word}`, "u"));
    const whole = begins.map((pattern) => new RegExp(`${pattern.source}(?!${LETTER})`, "u"));
    const has = (patterns, i) => patterns.every((pattern) => pattern.test(texts[i]));
    const places = [...texts.keys()].filter((i) =>
      words.every((word) => texts[i].includes(word)) && has(begins, i));
    const isWhole = new Set(places.filter((i) => has(whole, i)));
    return [...isWhole, ...places.filter((i) => !isWhole.has(i))];
  }

  // --- Loading: each file calls this function with its things' blocks - ---------------------

  const loaded = new Map();
  window.plumblineBlocks = (k, things) => loaded.get(k).resolve(things);

  function blocksOf(k, file) {
    if (!loaded.has(k)) {
      const waiting = Promise.withResolvers();
      loaded.set(k, waiting);
      const script = element("script", { src: file });
      script.onerror = () => { loaded.delete(k); waiting.reject(); };
      document.head.append(script);
    }
    return loaded.get(k).promise;
  }

  async function open() {
    const asked = location.hash;
    let wanted = asked.slice(1);
    try { wanted = decodeURIComponent(wanted); } catch { /* a lone %: keep it */ }
    const isTyped = document.activeElement === input;
    if (!isTyped) input.value = wanted;
    const i = place.get(wanted) ?? place.get(wanted.toLowerCase());
    const others = found(wanted).filter((other) => other !== i);
    list.replaceChildren(...others.slice(0, MOST_LISTED).map(line));
    const cut = others.length > MOST_LISTED ? `, ${MOST_LISTED} shown` : "";
    const things = others.length === 1 ? index.kind.slice(0, -1) : index.kind;
    const none = `No ${index.kind} with “${wanted}” here`;
    told.textContent = i === undefined && !others.length ? none
      : `${others.length.toLocaleString("en")} ${i === undefined ? "" : "other "}${things}${cut}`;
    shown.hidden = true;
    if (i === undefined) return;
    const k = Math.floor(i / index.size);
    const file = `${index.kind}/${k}.js`;
    try {
      const blocks = (await blocksOf(k, file))[i - k * index.size];
      if (location.hash !== asked) return; // the reader chose something else meanwhile
      const heading = element("h2", { textContent: index.things[i][0] });
      shown.replaceChildren(heading, ...blocks.map(block));
      shown.hidden = false;
      if (isTyped) return;
      scrollTo(0, 0);
      shown.focus({ preventScroll: true });
    } catch {
      told.textContent = `${file} is missing: keep the directory ${index.kind} with this page.`;
    }
  }

  input.addEventListener("input", () =>
    location.replace(`#${encodeURIComponent(input.value.trim())}`));
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    input.blur();
    if (shown.hidden) list.querySelector("a")?.click();
    else shown.focus();
  });
  addEventListener("hashchange", open);
  open();
})();
