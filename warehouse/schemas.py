"""Every table once: columns with types and units, key, partitions and description.

This is the only place that knows a table's shape. ``store.py`` casts to it, ``connect.py`` makes a
DuckDB view of it, and the README's table section is generated from it
(``python -m warehouse.schemas README.md``).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

#: Version of the layout on disk. A warehouse of another version is refused, never guessed at.
WAREHOUSE_VERSION = 1

_TYPES = {
    "text": pa.string(),
    "bool": pa.bool_(),
    "int": pa.int64(),
    "int32": pa.int32(),
    "float": pa.float64(),
    "float32": pa.float32(),
    "time": pa.timestamp("us", tz="UTC"),
}


@dataclass(frozen=True)
class Column:
    """One column: its name, Arrow type, unit (empty for none), whether NULL may occur, meaning."""

    name: str
    type: pa.DataType
    unit: str
    nullable: bool
    description: str


@dataclass(frozen=True)
class Table:
    """One table: columns, the key that is unique over all files, and the partition columns.

    ``partitions`` name the directories a file lies under; the columns are in the file as well, so
    that a single file explains itself.
    """

    name: str
    description: str
    key: tuple[str, ...]
    partitions: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema, fields in column order, nullability as declared.

        >>> TABLES["word_count"].arrow.names
        ['corpus', 'word', 'n_word']
        """
        return pa.schema([pa.field(c.name, c.type, c.nullable) for c in self.columns])


def _columns(spec: str) -> tuple[Column, ...]:
    """Parse the compact column notation ``name: type[?] [unit] -- meaning``, one a line.

    ``?`` marks a column that may be NULL.

    >>> [(c.name, c.unit, c.nullable) for c in _columns("pmi_nats: float? [nats] -- PMI")]
    [('pmi_nats', 'nats', True)]
    """
    columns = []
    for line in filter(None, map(str.strip, spec.splitlines())):
        head, _, meaning = line.partition(" -- ")
        name, _, rest = head.partition(":")
        kind, _, unit = rest.strip().partition(" ")
        nullable = kind.endswith("?")
        columns.append(
            Column(name, _TYPES[kind.rstrip("?")], unit.strip("[] "), nullable, meaning.strip())
        )
    return tuple(columns)


def _table(name: str, description: str, key: str, partitions: str, spec: str) -> Table:
    return Table(name, description, tuple(key.split()), tuple(partitions.split()), _columns(spec))


_ALL = (
    _table(
        "run",
        "One row an attempt to write to the warehouse: what ran, with what, and how it ended. "
        "A row that says `running` although its process is gone is that of a killed command.",
        "run_id",
        "",
        """
        run_id: text -- time-ordered identifier; every file's metadata names its run
        command: text -- the step, such as `corpus count`
        status: text -- `running`, `finished`, `failed`, or `interrupted`: the same command goes on
        started_at: time [UTC] -- start
        ended_at: time? [UTC] -- end; NULL while it runs, or when it was killed
        seconds: float? [s] -- wall time; NULL like `ended_at`
        git_commit: text? -- commit of the code, when it runs from a checkout
        config_hash: text -- hash of `config`
        config: text -- options as JSON, seeds among them
        packages: text -- versions of the packages that decide results, as JSON
        error: text? -- one line: what failed; while it runs, its process and host
        """,
    ),
    _table(
        "corpus",
        "One row a corpus: how it was counted and its totals (before any filtering or pruning).",
        "corpus",
        "corpus",
        """
        corpus: text -- name given by the user
        source: text -- `counted` from shards or `imported` from published statistics
        rule: text? -- counting rule, `pairs` or `windows`
        window: int? [tokens] -- width of the window in kept tokens
        targets: text? -- name of the target word list
        targets_hash: text? -- hash of its words and weights, which are in `word_list`
        tokenizer: text? -- version of the token rules
        n_shards: int -- shards counted
        n_shards_failed: int -- shards that could not be read to their end and are not in the counts
        n_documents: int? -- documents counted; NULL where published statistics do not say
        n_rejected: int -- documents rejected, each a row in `reject`
        n_tokens: int? [tokens] -- word tokens before stop words are dropped; NULL if imported
        n_kept_tokens: int [tokens] -- tokens after stop words are dropped, pruned words' too
        n_words: int? -- distinct words counted, the pruned ones among them; NULL if imported
        n_pairs: int? [pairs] -- all co-occurrences, not only those with targets; NULL if imported
        min_count: int? [tokens] -- rarer words are pruned, unless in `word_list`; NULL if imported
        n_words_kept: int -- distinct words that were not pruned: the rows of `word_count`
        n_tokens_pruned: int [tokens] -- `n_kept_tokens` less the sum of `n_word`
        run_id: text -- run that wrote the row
        """,
    ),
    _table(
        "word_list",
        "The word list a corpus was counted with, a row a pair or unpaired word.",
        "corpus position",
        "corpus",
        """
        corpus: text -- corpus name
        word_list: text -- name of the list
        position: int -- place in the list, from 1
        female: text? -- female word of the pair
        male: text? -- male word of the pair
        weight: float? -- weight of the pair in the list's mean (Eq. 4)
        unpaired: text? -- word that is counted without a contrast
        source: text -- where the list comes from
        """,
    ),
    _table(
        "corpus_shard",
        "The counting ledger, one row a shard: documents in = counted + rejected, always.",
        "corpus shard",
        "corpus",
        """
        corpus: text -- corpus the shard belongs to
        shard: text -- file name as given
        fingerprint: text -- hash of the file's bytes
        status: text -- `counted` or `failed`
        error: text? -- why it failed
        n_bytes: int [bytes] -- size of the file on disk
        n_documents_in: int -- documents read
        n_documents: int -- documents counted
        n_rejected: int -- documents rejected
        n_tokens: int [tokens] -- word tokens before stop words are dropped
        n_kept_tokens: int [tokens] -- tokens after stop words are dropped
        n_pairs: int [pairs] -- all co-occurrences under the rule
        seconds: float [s] -- wall time of the shard's task
        run_id: text -- run that counted it
        """,
    ),
    _table(
        "reject",
        "Input that was not used, with its reason: documents, rows of tables, pairs not scored.",
        "stage subject source_file source_row reason",
        "stage subject",
        """
        stage: text -- `count`, `import`, `benchmark`, `score` or `generate`
        subject: text -- the corpus, benchmark or model; `model/benchmark`, `benchmark/step`
        source_file: text -- file as given; `request_id` of a sentence that a model wrote
        source_row: int -- line or row, from 1; place of a sentence in its reply
        reason: text -- what was wrong and what was expected
        excerpt: text -- the start of the input, made printable
        run_id: text -- run that rejected it
        """,
    ),
    _table(
        "word_count",
        "Occurrences of every kept word of a corpus, but for rare ones under a `min_count`.",
        "corpus word",
        "corpus",
        """
        corpus: text -- corpus name
        word: text -- kept token, lowercase
        n_word: int [tokens] -- occurrences
        """,
    ),
    _table(
        "pair_count",
        "Co-occurrences of every word of `word_count` with every target word.",
        "corpus word target",
        "corpus",
        """
        corpus: text -- corpus name
        rule: text -- `pairs`: position pairs at most window-1 apart; `windows`: windows with both
        window: int [tokens] -- width of the window in kept tokens
        word: text -- kept token
        target: text -- target word
        n_pair: int [pairs] -- co-occurrences, at least 1
        """,
    ),
    _table(
        "word_association",
        "PMI of every word with every target it occurs with, and the counts behind it.",
        "corpus word target",
        "corpus",
        """
        corpus: text -- corpus name
        word: text -- kept token
        target: text -- target word
        n_word: int [tokens] -- occurrences of the word
        n_target: int [tokens] -- occurrences of the target
        n_pair: int [pairs] -- co-occurrences, at least 1
        pmi_nats: float [nats] -- ln(p(w,g) / (p(w) p(g)))
        pmi_se_nats: float [nats] -- its standard error from the counts, see `jobs/association.py`
        """,
    ),
    _table(
        "word_delta",
        "Lean of every word: PMI with the female minus PMI with the male word of a contrast.",
        "corpus contrast word",
        "corpus",
        """
        corpus: text -- corpus name
        contrast: text -- a pair such as `she/he`, or a list of pairs such as `gendered` (Eq. 4)
        word: text -- kept token
        n_word: int? [tokens] -- occurrences of the word
        n_pair_f: int? [pairs] -- co-occurrences with the female words of the defined pairs
        n_pair_m: int? [pairs] -- co-occurrences with the male words of the defined pairs
        n_defined: int -- pairs of the contrast for which the word has both counts
        delta_nats: float [nats] -- positive leans female, negative male; a list's weighted mean
        delta_se_nats: float? [nats] -- its standard error from the counts; NULL where unknown
        """,
    ),
    _table(
        "vocabulary",
        "Which words of a corpus are words to write about, and why: a verdict for every word.",
        "corpus word",
        "corpus",
        """
        corpus: text -- corpus name
        word: text -- kept token
        n_word: int [tokens] -- occurrences of the word
        is_kept: bool -- it is such a word
        reason: text -- left out as `not a-z`, `not English`, `rare`; kept by what finds it English
        language_score: float? [probability] -- that it is English, by fastText; NULL if not asked
        has_synset: bool? -- it or a base form is in WordNet; NULL if not asked
        checks: text -- what was asked: `fastText`, `WordNet`, both, or `any language` for neither
        run_id: text -- run that wrote it; its `config` has the limits and what was missing
        """,
    ),
    _table(
        "seed_word",
        "Words sampled among those that lean least, for sentences to be written around.",
        "corpus contrast seed word",
        "corpus",
        """
        corpus: text -- corpus whose word leans are used
        contrast: text -- contrast of `word_delta`
        seed: int -- seed of the sample; samples of several seeds lie side by side
        position: int -- place in the sample, from 1: the first n are the sample of n words
        word: text -- kept token
        n_word: int? [tokens] -- occurrences of the word
        delta_nats: float [nats] -- its lean
        low_nats: float [nats] -- lower end of the interval around 0 that was sampled from
        high_nats: float [nats] -- upper end of it
        run_id: text -- run that sampled it
        """,
    ),
    _table(
        "seed_verdict",
        "What a person said about words of a corpus: a new sample leaves the rejected ones out.",
        "corpus word",
        "corpus",
        """
        corpus: text -- corpus name
        word: text -- kept token
        verdict: text -- `accepted` or `rejected`, the latest one
        why: text? -- the reason given
        vetted_at: time [UTC] -- when
        run_id: text -- run that recorded it
        """,
    ),
    _table(
        "generation_request",
        "Every request to the chat model that wrote a benchmark, with its reply or its errors.",
        "benchmark request_id",
        "benchmark",
        """
        benchmark: text -- benchmark that is being written
        request_id: text -- hash of model, prompt, parameters, purpose, word, pronoun and round
        purpose: text -- `generate`, `revise`, `convert` or `judge`
        word: text -- seed word
        pronoun: text -- `she` or `he`: the one wanted, converted to, or judged
        round: int -- from 1: how often this has been asked
        model: text -- model as the server names it
        parameters: text -- temperature, limit of the reply and seed, as JSON
        prompt: text -- the message as sent
        status: text -- `replied`, `refused` by the server's filter, or `failed`: to be asked again
        reply: text? -- the reply as it came; empty when refused, NULL when failed
        finish_reason: text? -- why the reply ended, as the server says; why it was refused
        n_attempts: int -- attempts, those of earlier runs included
        n_input_tokens: int? [tokens] -- of the prompt, as the server says
        n_output_tokens: int? [tokens] -- of the reply, as the server says
        n_tokens_most: int [tokens] -- of all attempts, at the most where the server does not say
        cost: float? [currency] -- of `n_tokens_most`, in the price table's currency; NULL without
        seconds: float [s] -- wall time of all attempts, waits between them not counted
        error: text? -- what each attempt without a reply met
        run_id: text -- run that asked last
        """,
    ),
    _table(
        "planted_word",
        "The closed world's truth: the association with she/he that the corpus writer planted.",
        "corpus word",
        "corpus",
        """
        corpus: text -- the written corpus
        world: text -- `straight`, or `swapped` when she and he changed places
        word: text -- content word of the lexicon
        word_class: text -- slot class of the word in the grammar
        planted_delta_nats: float [nats] -- ln(p(word | she) / p(word | he)) used by the writer
        """,
    ),
    _table(
        "benchmark_pair",
        "Sentence pairs that differ only in the gender of their pronouns.",
        "benchmark pair_id",
        "benchmark",
        """
        benchmark: text -- benchmark name
        pair_id: text -- stable identifier within the benchmark
        template: text -- sentence with {pronoun}, {pronoun1}, {pronoun2} placeholders
        sentence_f: text -- template filled with female pronouns
        sentence_m: text -- template filled with male pronouns
        word: text? -- seed word or occupation the pair was made for
        split: text? -- part of the benchmark, such as `dev` or `test`
        stereotype: text? -- `pro` or `anti` where the source says so
        is_natural: bool? -- the source's own naturalness verdict; NULL where there is none
        pronoun_first: bool -- the sentence starts with the pronoun
        source_file: text -- file the pair came from
        source_row: int -- row in that file, from 1
        """,
    ),
    _table(
        "pair_association",
        "MaxPMI of each pair against a corpus: the largest lean among the template's words.",
        "corpus contrast benchmark pair_id",
        "corpus benchmark",
        """
        corpus: text -- corpus whose word leans are used
        contrast: text -- contrast of `word_delta`
        benchmark: text -- benchmark name
        pair_id: text -- pair
        max_pmi_nats: float? [nats] -- delta of largest magnitude; NULL when no word has one
        max_pmi_word: text? -- the word that decides it
        sum_delta_nats: float? [nats] -- sum of the defined deltas of the template's words
        n_words: int? -- kept words of the template; NULL where MaxPMI is imported
        n_words_defined: int? -- those with a delta; NULL where MaxPMI is imported
        """,
    ),
    _table(
        "model",
        "Scoring identities: two models, revisions, dtypes or BOS policies never share a key.",
        "model_key",
        "",
        """
        model_key: text -- hash of everything below that can change a score
        model: text -- hub id, or the name of a local model
        revision: text? -- hub revision, or hash of the local weights
        backend: text -- `transformers`, `vllm`, or `released`: scores of others, unknown is NULL
        backend_version: text? -- versions of the libraries that computed the scores
        dtype: text? -- dtype of the weights
        bos_policy: text? -- how the context token was chosen
        bos_token_id: int? -- token given as context and never scored
        quantisation: text? -- quantisation method, and the version of what quantised it here
        adapter: text? -- adapter applied, with its hub commit or the hash of its content
        text_form: text? -- sentences `written` as they are, or as the `released` scores had them
        n_parameters: int? -- parameters
        run_id: text -- run that first used it
        """,
    ),
    _table(
        "trained_model",
        "Models that Plumbline trained itself, with the corpus they learned from.",
        "model",
        "model",
        """
        model: text -- name of the model
        revision: text -- hash of weights and tokenizer, as in `model`: a retrained one differs
        path: text -- directory of the weights
        corpus: text -- corpus it was trained on
        seed: int -- seed of initialisation and order
        n_parameters: int -- parameters
        n_steps: int -- optimiser steps
        n_tokens: int [tokens] -- model tokens seen
        loss_start_nats: float [nats/token] -- mean loss over the first steps
        loss_end_nats: float [nats/token] -- mean loss over the last steps
        seconds: float [s] -- wall time
        run_id: text -- run that trained it
        """,
    ),
    _table(
        "pair_score",
        "Log-probability of both sentences of a pair under a model, a row a model and pair.",
        "model_key benchmark pair_id",
        "benchmark model_key",
        """
        model_key: text -- scoring identity, see `model`
        model: text -- hub id, or the name of a local model
        benchmark: text -- benchmark name
        pair_id: text -- pair
        text_id: text -- hash of both sentences as scored
        logprob_f_nats: float [nats] -- log p(female sentence | BOS), natural log
        logprob_m_nats: float [nats] -- log p(male sentence | BOS)
        n_tokens_f: int [tokens] -- scored tokens: no BOS, no EOS
        n_tokens_m: int [tokens] -- scored tokens
        run_id: text -- run that scored it
        """,
    ),
    _table(
        "token_logprob",
        "Log-probability of every token of a pair's sentences, for scores with `--per-token`.",
        "model_key benchmark pair_id side position",
        "benchmark model_key",
        """
        model_key: text -- scoring identity, see `model`
        benchmark: text -- benchmark name
        pair_id: text -- pair
        text_id: text -- hash of both sentences as scored, as in `pair_score`
        side: text -- `f`, the female sentence, or `m`, the male one
        position: int32 -- place in the sentence, from 0; BOS has none
        token_id: int32 -- the token's number in the model's vocabulary
        token: text -- its text; parts of a character that tokens share are shown as U+FFFD
        logprob_nats: float32 [nats] -- log p(token | BOS, earlier tokens)
        run_id: text -- run that scored it
        """,
    ),
    _table(
        "metric_value",
        "Metrics in long form, each with its interval and the options that defined it.",
        "metric model_key benchmark corpus contrast subset options",
        "benchmark",
        """
        metric: text -- `us`, `pd`, `aufc`, `gap`, `slope`, `correlation`, ...
        model_key: text -- scoring identity; empty when no model is involved
        model: text -- model name; empty when no model is involved
        benchmark: text -- benchmark name
        corpus: text -- corpus of the constraint; empty for unconstrained metrics
        contrast: text -- contrast of the constraint; empty for unconstrained metrics
        subset: text -- which pairs, such as `all`, `|max_pmi| <= 0.5`, `pronoun first`
        eta_nats: float? [nats] -- constraint on |MaxPMI|, NULL without one
        epsilon_nats: float? [nats] -- threshold on |log ratio|, NULL where none applies
        value: float? -- the figure; NULL when n is 0
        unit: text -- `share`, `percent`, `percentage points`, `nats` ...
        sd: float? -- standard deviation in the same unit
        ci_low: float? -- lower end of the 95% interval
        ci_high: float? -- upper end of the 95% interval
        interval: text -- method of the interval
        n: int -- pairs (or words) behind the figure
        options: text -- further conventions, as JSON
        run_id: text -- run that computed it
        """,
    ),
)

#: Name -> table, in the order data flows.
TABLES: dict[str, Table] = {table.name: table for table in _ALL}


def markdown() -> str:
    """The README's table section: a heading, description and column list for each table.

    >>> markdown().splitlines()[0]
    '### `run`'
    """
    lines: list[str] = []
    for table in TABLES.values():
        parts = ", ".join(f"`{p}`" for p in table.partitions) or "none"
        keys = ", ".join(f"`{k}`" for k in table.key)
        lines += [f"### `{table.name}`", "", table.description, ""]
        lines += [f"Key: {keys}. Partitions: {parts}.", "", "| column | type | unit | meaning |"]
        lines += ["|---|---|---|---|"]
        for c in table.columns:
            kind = f"{c.type}{', may be NULL' if c.nullable else ''}"
            meaning = c.description.replace("|", "\\|")
            lines.append(f"| `{c.name}` | {kind} | {c.unit} | {meaning} |")
        lines.append("")
    return "\n".join(lines)


def update_readme(path: Path) -> None:
    """Put the table section of a README between its ``tables`` markers up to date."""
    begin, end = "<!-- tables: begin -->\n", "<!-- tables: end -->"
    before, rest = path.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    path.write_text(f"{before}{begin}\n{markdown()}\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    update_readme(Path(sys.argv[1]))
