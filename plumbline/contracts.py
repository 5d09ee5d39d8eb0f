"""Checks for each kind of part. Plumbline's own parts pass them; test yours with them too.

In the tests of your own package::

    from plumbline.contracts import check_backend

    def test_it_scores() -> None:
        check_backend("unigram", "novel.txt", ["She ran.", "He ran."])

A check finds a part by its name, as commands do, so its package must be installed. A fault raises
``AssertionError`` with the reason, or the one-line error of a command. Checks return what they
computed, so that you can test the figures.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np

from plumbline.eval_workers.disclosure.prompt_sets import import_probe
from plumbline.eval_workers.fairpair import fairpair_steps as steps
from plumbline.eval_workers.fairpair import phi
from plumbline.eval_workers.fairpair.fairpair_options import FairPairSpec
from plumbline.eval_workers.models import open_backend
from plumbline.eval_workers.models.model_options import ModelOptions
from plumbline.eval_workers.models.scoring_contract import TextScore
from plumbline.eval_workers.pairs import benchmarks
from plumbline.eval_workers.pairs.benchmarks.own.parsed_pairs import filled
from plumbline.eval_workers.scoring.measure import MeasureOptions, compute, measure
from plumbline.jobs.kernel.tokens.tokenizer import Targets
from plumbline.pipelines.report.facts import Facts
from plumbline.pipelines.report.model import Missing, Page, Section
from plumbline.pipelines.report.sections import SECTIONS
from plumbline.pipelines.report.templates import sections_from
from plumbline.pipelines.report.write import render
from plumbline.warehouse import wordlists
from plumbline.warehouse.query.connection import rows_of, sql
from plumbline.warehouse.schema.catalog import TABLES
from plumbline.warehouse.schema.columns import Table
from plumbline.warehouse.storage.store import Store

#: Rows of tables, by column.
_Rows: TypeAlias = Sequence[Mapping[str, object]]
_TEXTS = ("Jane is good.", "Jane is a bad nurse!", "")
_LOG_RATIOS = (0.0, 1.5, -0.4, 7.0, math.nan, math.inf, -2.0)
_MAX_PMIS = (0.1, -0.6, None, 2.0, 0.3, 0.2, 0.0)


def check_backend(
    backend: str, model: str, texts: Sequence[str], tolerance_nats: float = 1e-4, **options: Any
) -> list[TextScore]:
    """Check that scores are sums over tokens and don't depend on other texts; return the scores.

    Args:
        texts: two or more different texts that the model can score.
        tolerance_nats: how much a score may change with the texts scored along with it.
        options: fields of ``ModelOptions``.
    """
    how = ModelOptions(backend=backend, **options)
    opened = open_backend(model, how)
    identity = opened.identity
    assert identity.backend == backend, f"the identity names the backend {identity.backend}"
    same = open_backend(model, how).identity == identity
    assert same, "a model has two identities when it's opened twice"
    assert opened.score([]) == [], "no texts have no scores"
    n_parameters = opened.n_parameters
    assert n_parameters is None or n_parameters > 0, "a model has parameters"
    scores = opened.score(texts)
    for text, score in zip(texts, scores, strict=True):
        values = score.token_logprobs_nats
        assert score.problem is None, f"{text!r} has no score: {score.problem}"
        assert score.n_tokens == len(values) > 0, f"{text!r}: one log-probability per token"
        assert max(values) <= 0, f"{text!r}: a token has a probability above 1"
        total = math.fsum(values)
        assert math.isclose(score.logprob_nats, total), f"{text!r}: {score} is not a sum of tokens"
    turned = opened.score([*reversed(texts), texts[-1]])
    assert turned[0] == turned[-1], f"{texts[-1]!r} has two scores in one call"
    others = [
        *zip(scores, reversed(turned[:-1]), strict=True),
        *((score, opened.score([text])[0]) for text, score in zip(texts, scores, strict=True)),
    ]
    for one, other in others:
        assert one.token_ids == other.token_ids, "a text's tokens depend on the others"
        difference = abs(one.logprob_nats - other.logprob_nats)
        assert difference <= tolerance_nats, f"a score depends on the others: {difference} nats"
    (empty,) = opened.score([""])
    assert empty.problem and math.isnan(empty.logprob_nats), (
        "an empty text has no score but a problem"
    )
    ids = {token for score in scores for token in score.token_ids}
    assert set(opened.pieces(ids)) == ids, "pieces() has the text of every token"
    return scores


def check_benchmark(name: str, source: Path | None = None) -> benchmarks.Parsed:
    """Check that a benchmark reads the same pairs each time and can be imported; return them."""
    benchmark = benchmarks.find(name)
    assert benchmark.DESCRIPTION and "\n" not in benchmark.DESCRIPTION, "DESCRIPTION is one line"
    path = benchmarks.default_source(name) if source is None else source
    parsed, again = (benchmark.read(name, path) for _ in range(2))
    assert (parsed.pairs, parsed.rejects) == (again.pairs, again.rejects), (
        "it reads different rows the second time"
    )
    for pair in parsed.pairs:
        assert pair["sentence_a"] != pair["sentence_b"], (
            f"both sentences are {pair['sentence_a']!r}"
        )
    with TemporaryDirectory() as directory:
        store = Store.open(Path(directory) / "warehouse")
        benchmarks.import_benchmark(store, name, source, "contract")
        held = {row["pair_id"] for row in store.read("benchmark_pair", benchmark=name).to_pylist()}
        rejected = store.read("reject").num_rows
    assert held == {pair["pair_id"] for pair in parsed.pairs}, "the warehouse holds other pairs"
    assert rejected == len(parsed.rejects), "the warehouse holds other rejects"
    return parsed


def check_scoring_function(name: str, texts: Sequence[str] = _TEXTS) -> phi.Floats:
    """Check that distances are symmetric, 0 on the diagonal, and give the means; return them."""
    function = phi.find(name)
    assert function.DESCRIPTION and "\n" not in function.DESCRIPTION, "DESCRIPTION is one line"
    assert function.LANGUAGES is None or all(function.LANGUAGES), "LANGUAGES is None or codes"
    items = function.items(texts)
    assert len(items) == len(texts), "items() gives one item per text"
    n = len(items) + 1
    distances = function.distances([*items, function.combine(items)])
    assert distances.shape == (n, n), "distances() gives items x items"
    assert np.isfinite(distances).all() and (distances >= 0).all(), "distances are 0 or more"
    assert (distances == distances.T).all(), "distances are symmetric"
    assert not distances.diagonal().any(), "an item's distance from itself is 0"
    found = function.means(items[:-1], items[-1:])
    expected = phi.block_means(distances[:-1, :-1], n - 2)
    same = np.allclose(found, expected, rtol=1e-9, atol=0, equal_nan=True)
    assert same, f"means() has {found}, the distances {expected}"
    return distances[:-1, :-1]


def check_metric(
    name: str,
    log_ratios: Sequence[float] = _LOG_RATIOS,
    max_pmis: Sequence[float | None] = _MAX_PMIS,
) -> list[dict[str, Any]]:
    """Check that a metric gives valid rows of ``metric_value`` with distinct keys; return them.

    They are for one model on pairs with these log ratios and MaxPMIs (nats); if a metric has none
    there, on items of three groups. An empty warehouse must give no rows.
    """
    assert sql(f"metrics/{name}").startswith("-- grain: "), "the first line says the grain"
    with TemporaryDirectory() as directory:
        store = Store.open(Path(directory) / "warehouse")
        assert not compute(store.root, MeasureOptions(), "r", [name]).num_rows, "rows of no pairs"
        _score_pairs(store, log_ratios, max_pmis)
        if not compute(store.root, MeasureOptions(), "r", [name]).num_rows:
            _score_items(store, log_ratios)
        rows: list[dict[str, Any]] = compute(store.root, MeasureOptions(), "r", [name]).to_pylist()
    assert rows, "it has no rows"
    keys = {tuple(row[column] for column in TABLES["metric_value"].key) for row in rows}
    assert len(keys) == len(rows), "two rows have one key"
    for row in rows:
        figures = [row[column] for column in ("value", "value_se", "value_low", "value_high")]
        assert all(x is None or math.isfinite(x) for x in figures), f"not NULL, not finite: {row}"
        value, _, low, high = figures
        assert low is None or low <= value <= high, f"the value is outside its interval: {row}"
        assert row["n"] >= 0 and row["unit"] and isinstance(json.loads(row["options"]), dict), row
    return rows


def check_report_section(
    name: str, log_ratios: Sequence[float] = _LOG_RATIOS
) -> list[Section | Missing]:
    """Check that a section, and its queries, work for an empty warehouse and for scored pairs.

    Returns what it makes of one model's pairs with these log ratios (nats) and their metrics.
    """
    parts: list[Section | Missing] = []
    with TemporaryDirectory() as directory:
        store = Store.open(Path(directory) / "warehouse")
        for ratios in ([], log_ratios):
            _score_pairs(store, ratios, [None] * len(ratios))
            measure(store, "r")
            facts = Facts(store.root)
            parts = sections_from(SECTIONS.text(name), facts)
            made = [part for part in parts if isinstance(part, Section)]
            render(Page(sections=made))
            for part in parts:
                assert not isinstance(part, Missing) or part.command.startswith("plumbline "), (
                    f"{part.title!r} is missing, and it names no command that would fill it"
                )
            queries = {table.caption: table.sql for part in made for table in part.tables}
            queries |= {plot.caption: plot.rows.sql for part in made for plot in part.figures}
            for caption, query in queries.items():
                assert query, f"{caption!r} does not show its query"
                assert facts.query(query), f"the query of {caption!r} has no rows"
    return parts


def check_table(name: str) -> Table:
    """Check that a table has a valid name, a description and a command; return the table."""
    assert name.isidentifier() and name.islower() and name[0] != "_", f"{name!r} is not valid"
    table = TABLES[name]
    assert table.description and table.filled_by, "it needs a description and `filled_by`"
    return table


def check_view(name: str, rows: Mapping[str, _Rows]) -> list[dict[str, Any]]:
    """Check that a view works in an empty warehouse; return its rows given ``rows`` by table."""
    with TemporaryDirectory() as directory:
        store = Store.open(Path(directory) / "warehouse")
        assert not rows_of(store, f"FROM {name}"), "an empty warehouse gives it rows"
        with store.transaction("contract"):
            for table, given in rows.items():
                for n, row in enumerate(given):
                    store.publish(table, [row], unit=f"row-{n}", run_id="contract")
        return rows_of(store, f"FROM {name} ORDER BY ALL")


def _score_pairs(
    store: Store, log_ratios: Sequence[float], max_pmis: Sequence[float | None]
) -> None:
    parsed = benchmarks.Parsed("b")
    scores, associations, deltas = [], [], []
    for i, (ratio, max_pmi) in enumerate(zip(log_ratios, max_pmis, strict=True), 1):
        word, template = (
            f"word{i}",
            "{pronoun} left." if i % 2 else "The nurse said {pronoun} left.",
        )
        parsed.add(pair_id=f"{i}", template=template, word=word, source_file="f", source_row=i)
        logprobs = {
            "logprob_a_nats": ratio,
            "logprob_b_nats": 0.0,
            "n_tokens_a": 5,
            "n_tokens_b": 5,
        }
        pair = {"benchmark": "b", "pair_id": f"{i}"}
        scores.append({**pair, **logprobs, "model_key": "key", "model": "m", "text_id": "t"})
        of = {"corpus": "c", "contrast": "she/he"}
        n_words = {"n_words": 1, "n_words_defined": int(max_pmi is not None)}
        associations.append({**pair, **of, **n_words, "max_pmi_nats": max_pmi})
        if max_pmi is not None:
            counts = {"n_word": 9, "n_pair_f": 3, "n_pair_m": 3, "n_defined": 1}
            deltas.append({**of, **counts, "word": word, "delta_nats": max_pmi})
    tables: dict[str, list[dict[str, Any]]] = {
        "benchmark_pair": [{"benchmark": "b", **pair} for pair in parsed.pairs],
        "pair_score": [{**row, "run_id": "r"} for row in scores],
        "pair_association": associations,
        "word_delta": deltas,
    }
    with store.transaction("contract"):
        for table, rows in tables.items():
            store.publish(table, rows, unit="made", run_id="r")


def _score_items(store: Store, log_ratios: Sequence[float]) -> None:
    """Score items of three groups; a stereotype favours each pair's first sentence."""
    groups, pairs, scores = ("she", "he", "they"), [], []
    for i, ratio in enumerate(log_ratios, 1):
        source = {"source_file": "f", "source_row": i, "direction": "a"}
        logprobs = dict(zip(groups, (ratio, 0.0, -ratio), strict=True))
        for pair in filled("The nurse said {pronoun} left.", f"{i}", groups, **source):
            of = {"benchmark": "three", "pair_id": pair["pair_id"]}
            pairs.append({**of, **pair})
            a, b = (logprobs[str(pair[f"group_{side}"])] for side in "ab")
            made = {"logprob_a_nats": a, "logprob_b_nats": b, "n_tokens_a": 5, "n_tokens_b": 5}
            by = {"model_key": "key", "model": "m", "text_id": "t", "run_id": "r"}
            scores.append({**of, **made, **by})
    store.publish("benchmark_pair", pairs, unit="three", run_id="r")
    store.publish("pair_score", scores, unit="three", run_id="r")


def check_word_list(name: str) -> wordlists.WordList:
    """Check that a list's words can be counted, and the warehouse keeps it; return the list."""
    found = wordlists.load(name)
    Targets(found.targets)
    again = wordlists.from_rows(found.rows("c"))
    kept = (again.pairs, again.unpaired, again.hash) == (found.pairs, found.unpaired, found.hash)
    assert kept, "the warehouse gives another list back"
    return found


def check_disclosure_prompts(name: str) -> list[dict[str, Any]]:
    """Check that no prompt is gendered or repeated; return the rows of ``probe_prompt``."""
    with TemporaryDirectory() as directory:
        store = Store.open(Path(directory) / "warehouse")
        import_probe(store, name, None, "contract")
        rejects = store.read("reject").to_pylist()
        rows: list[dict[str, Any]] = store.read("probe_prompt", probe_set=name).to_pylist()
    assert not rejects, f"{rejects[0]['excerpt']!r}: {rejects[0]['reason']}"
    return rows


def check_fairpair_prompts(name: str, spec: FairPairSpec | None = None) -> list[dict[str, Any]]:
    """Check that the functions and perturber of ``spec`` take the prompts; return their rows."""
    spec = spec or FairPairSpec()
    rows = [dict(row) for row in steps.prompt_rows(None, name, spec)]
    steps.check(spec, name, rows)
    for row in rows:
        assert row["prompt"] != row["perturbed_prompt"], f"both prompts are {row['prompt']!r}"
    return rows
