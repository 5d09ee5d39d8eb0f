// Sentence pairs: a search by words, and the view of one pair with every model's log ratio.
(() => {
  const { index, furthest, element, drawn, figure, paragraph, count, at, scrolled, dot } = explorer;
  const MOST_LISTED = 300;
  const chosenSet = document.getElementById("set-");
  const texts = index.parts.map((parts) => parts.join(" ").toLowerCase());
  const link = (href, textContent) => element("a", { href, textContent });

  // The words that both sentences share, with the differing words of one side (0 or 1) or of both.
  function marked(parts, side) {
    const mark = (text) => element("mark", { textContent: text || "∅" });
    return parts.flatMap((part, i) => {
      if (i % 3 === 0) return part ? [part, " "] : [];
      if (side === undefined) return [mark(part), i % 3 === 1 ? " / " : " "];
      return i % 3 === side + 1 && part ? [mark(part), " "] : [];
    });
  }

  const counts = ([first, second], [, a, b]) => `${a} ${first} · ${b} ${second}`;

  function line(i) {
    const set = index.sets[index.set[i]];
    const more = `${set[0]} · ${counts(index.prefer[i], set)} of ${index.set_models[index.set[i]].length}`;
    return [element("span", {}, ...marked(index.parts[i])), element("small", { textContent: more })];
  }

  const linked = (i) => element("li", {},
    element("a", { href: `#${encodeURIComponent(index.keys[i])}` }, ...line(i)));

  // --- Search: every word typed must begin a word of the sentences; whole words come first ------

  function found(wanted) {
    const words = wanted.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [];
    const begins = words.map((word) => new RegExp(`(?<![\\p{L}\\p{M}\\p{N}])${word}`, "u"));
    const whole = words.map((word, k) => new RegExp(`${begins[k].source}(?![\\p{L}\\p{M}\\p{N}])`, "u"));
    const every = (patterns, text) => patterns.every((pattern) => pattern.test(text));
    const [first, then] = [[], []];
    if (!words.length) return first;
    texts.forEach((text, i) => {
      if (chosenSet.value !== "" && index.set[i] !== Number(chosenSet.value)) return;
      if (!words.every((word) => text.includes(word)) || !every(begins, text)) return;
      (every(whole, text) ? first : then).push(i);
    });
    return Object.assign([...first, ...then], { nWhole: first.length });
  }

  function list(wanted) {
    const every = found(wanted);
    const places = every.nWhole ? every.slice(0, every.nWhole) : every;
    if (!places.length) return null;
    const cut = places.length > MOST_LISTED ? `, ${MOST_LISTED} of them here` : "";
    const name = `${count(places.length)} pair${places.length === 1 ? "" : "s"} with “${wanted}”${cut}`;
    return [element("h2", { textContent: name }),
      element("ol", { className: "listed" }, ...places.slice(0, MOST_LISTED).map(linked))];
  }

  // --- One pair -------------------------------------------------------------------------------

  // The report's rule: no preference within epsilon, with a tolerance.
  const sideOf = (nats) =>
    (Math.abs(nats) <= index.epsilon + 1e-9 ? "" : nats > 0 ? "first" : "second");

  function band(value, reach, [, first, second]) {
    const x = (v) => at(v, reach, 100);
    const side = sideOf(value);
    const preferred = { first, second }[side] ?? "neither";
    const width = x(index.epsilon) - x(-index.epsilon);
    const within = drawn("rect", { class: "within", x: x(-index.epsilon), width, height: 12 });
    return [dot(value, reach, side, `${figure(value, 3)} nats, prefers ${preferred}`, [within], 3), preferred];
  }

  // A model's name, which may break after its owner, not within a word.
  const modelName = (model) => model.split(/(?<=\/)/).flatMap((part) => [element("wbr"), part]);

  function preferences(ratios, k) {
    const set = index.sets[k];
    const rows = index.set_models[k].map((model, i) => [index.models[model], ratios[i]]);
    rows.sort((a, b) => (b[1] ?? -Infinity) - (a[1] ?? -Infinity));
    const reach = Math.max(1, ...ratios.map((value) => Math.ceil(Math.abs(value))));
    const lines = rows.map(([model, value]) =>
      [modelName(model), ...(value === null ? ["–", "no score"] : band(value, reach, set))]);
    const epsilon = figure(index.epsilon, 3).slice(1);
    return [element("h3", { textContent: "Each model's preference" }),
      paragraph(`Log ratio in nats: above 0 the ${set[1]} sentence is likelier, below 0 the ` +
        `${set[2]} one; within ±${epsilon}, the grey band, a pair counts as without preference. ` +
        `The axis is from −${reach} to +${reach}.`),
      scrolled("Log ratio by model", ["Model", "Log ratio, nats", "Prefers"], lines, "matrix")];
  }

  function byWord(rows, models) {
    const lines = rows.map(([a, b], i) => [b === undefined ? a : `${a || "∅"} / ${b || "∅"}`,
      ...models.map(([, values]) => figure(values[i]))]);
    const sum = models.map(([, values]) => figure(values.reduce((a, b) => a + b, 0)));
    const more = index.more_by_word ? ` ${count(index.more_by_word)} more models are in view word_logprob.` : "";
    return [element("h3", { textContent: "Word by word" }),
      paragraph("What each word adds to the log ratio, in nats: its log-probability in the first " +
        `sentence less that in the second, its tokens summed.${more}`),
      scrolled("Log ratio by word", ["Word", ...models.map(([k]) => index.models[k])],
        [...lines, ["all words", ...sum]], "matrix by-word")];
  }

  const word = ([text, known]) =>
    (known === undefined ? text : link(`words.html#${encodeURIComponent(known)}`, text));

  function facts([, isNatural, own, maxPmi]) {
    const natural = isNatural === false ? "Not natural: metrics leave it out"
      : isNatural ? "Counts as natural" : "No verdict on whether it is natural: metrics count it";
    const said = element("p", {}, ...(own ? ["Made for the word ", word(own), ". "] : []),
      `${natural}. `);
    for (const [text, value, by] of maxPmi) {
      said.append(`MaxPMI in ${index.texts[text]}: ${figure(value)} nats`,
        ...(by[0] ? [" (", word(by), ")"] : []), ". ");
    }
    return said;
  }

  function show(i, record) {
    const [k, parts] = [index.set[i], index.parts[i]];
    const set = index.sets[k];
    const sentence = (side) => element("p", { className: "says" },
      element("small", {}, element("span", { className: `dot ${["first", "second"][side]}` }),
        ` ${set[1 + side]} `), ...marked(parts, side));
    return [element("h2", { className: "name", textContent: index.keys[i] }), sentence(0), sentence(1),
      facts(record), ...preferences(record[0], k), ...(record[4] ? byWord(...record[4]) : [])];
  }

  index.furthest.forEach((sides, k) => {
    const set = index.sets[k];
    const lists = sides.map((places, side) => element("div", {},
      element("h3", {}, element("span", { className: `dot ${["first", "second"][side]}` }), ` ${set[1 + side]}`),
      element("ol", { className: "listed" }, ...places.map(linked),
        ...(places.length ? [] : [element("li", { textContent: "none" })]))));
    furthest.append(element("h2", { textContent: `Furthest in ${set[0]}` }),
      paragraph("The natural pairs with the largest mean log ratio over the models to each side, with how " +
        "many models prefer which."), element("div", { className: "both" }, ...lists));
  });

  const open = explorer.explore({ kind: "pair", keys: index.keys, found, option: line, show, list });
  chosenSet.addEventListener("change", open);
})();
