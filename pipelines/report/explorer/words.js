// The view of one word.
(() => {
  const { index, element, drawn, path, figure, paragraph, count, at, interval, scrolled, dot } = explorer;
  const place = new Map(index.words.map((word, i) => [word, i]));

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
    for (const [side, near] of [["a", text.first], ["b", text.second]]) {
      const lines = row.sentences.filter((line) => line.side === side);
      if (lines.length) made.append(...sentences(near, lines));
    }
    if (!row.sentences.length) made.append(text.how ? command(text, word) : paragraph(index.unknown));
    return made;
  }

  function strip([, , value, low, high, , side]) {
    const x = (v) => at(v, index.reach, 100);
    const ends = low === null ? [] : [path("ends", `M${x(low)} 6H${x(high)}`)];
    return dot(value, index.reach, side, interval(value, low, high), ends);
  }

  function preferences(rows) {
    const distinct = (k) => [...new Set(rows.map((row) => row[k]))].sort((a, b) => a - b);
    const sets = distinct(1);
    const heading = (b) => {
      const [name, first, second] = index.benchmarks[b];
      return [name, element("br"), element("small", { textContent: `← ${second} | ${first} →` })];
    };
    const lines = distinct(0).map((model) => [index.models[model], ...sets.map((b) => {
      const found = rows.find((row) => row[0] === model && row[1] === b);
      return found ? strip(found) : "–";
    })]);
    const caption = "Mean log ratio by model and benchmark";
    return element("section", {}, element("h3", { textContent: "In sentences about it" }),
      paragraph("Mean log ratio of the pairs made for this word, in nats, with 95% intervals over " +
        `its pairs. The axis is from −${index.reach} to +${index.reach}; longer intervals are cut there.`),
      scrolled(caption, ["Model", ...sets.map(heading)], lines, "matrix"));
  }

  function occurrences(sets) {
    const lines = sets.map(([k, ...counts]) => [index.sets[k], ...counts.map(count)]);
    const headings = ["Benchmark", "pairs with it", "made for it", "MaxPMI decided by it"];
    return element("section", {}, element("h3", { textContent: "In benchmarks" }),
      scrolled("Sentence pairs by benchmark", headings, lines, "matrix by-word"));
  }

  function show(i, record) {
    const word = index.words[i];
    const parts = Object.entries(record.leans).map(([k, row]) => inText(word, index.texts[k], row));
    if (record.preferences.length) parts.push(preferences(record.preferences));
    const link = (href, textContent) => parts.push(element("p", {}, element("a", { href, textContent })));
    if (record.sets.length) parts.push(occurrences(record.sets));
    const n = record.sets.reduce((sum, [, held]) => sum + held, 0);
    const these = n === 1 ? "The sentence pair" : `${count(n)} sentence pairs`;
    if (n) link(`pairs.html#${encodeURIComponent(word)}`, `${these} with this word`);
    return [element("h2", { className: "name", textContent: word }), ...parts];
  }

  function found(wanted) {
    const inside = index.words.filter((word) => word.includes(wanted));
    const rank = (word) => (word === wanted ? 0 : word.startsWith(wanted) ? 1 : 2);
    inside.sort((a, b) => rank(a) - rank(b)); // within a rank, the more frequent first
    return inside.map((word) => place.get(word));
  }

  function option(i) {
    const lean = index.deltas[i];
    return [element("span", { textContent: index.words[i] }),
      element("span", { className: "number", textContent: lean === null ? "" : figure(lean) })];
  }

  explorer.explore({ kind: "word", keys: index.words, found, option, show });
})();
