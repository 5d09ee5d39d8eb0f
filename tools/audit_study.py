"""Is an audit right? Copies of documents are planted and removed, and models trained on both texts.

    python -m tools.audit_study --out out/audit --data DATA

prints the tables of docs/audit.md and resumes: texts, counts, trainings and scores stay.

- Closed world: of 20,000 documents a tenth have she and he exchanged, these K further times each:
  documents that lean the other way. The changes that an exact deduplication makes are known.
- Real text: K further copies of 200 documents, drawn from the novels. A tool takes them out again.
- Trainings on the closed world before and after, and by `--train-real` on the real text: changes of
  words' preferences, and those that the audit predicts from a study of the text before.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from scipy import stats

from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import WorldOptions
from plumbline.eval_workers.pairs.closed_world_corpus.corpus_writer import documents as of_world
from plumbline.eval_workers.pairs.closed_world_corpus.truth import planted_deltas
from plumbline.eval_workers.scoring.pair_scores import score_benchmarks
from plumbline.eval_workers.training import trained_models
from plumbline.eval_workers.training.training_options import preset
from plumbline.jobs.evidence.curation.curation_audit import Audited, audit
from plumbline.jobs.evidence.curation.predicted_preference import fitted_response, predict
from plumbline.pipelines.command.main import main as plumbline
from plumbline.pipelines.reproduce.cause import import_pairs, read_design, shards_of
from plumbline.warehouse.input.shards import documents, write_jsonl_zst
from plumbline.warehouse.query.connection import rows_of
from plumbline.warehouse.storage.run_records import recorded
from plumbline.warehouse.storage.store import Store
from tools.simulations.__main__ import markdown

Table = Iterator[dict[str, object]]
#: How many further copies of each document are planted.
CLOSED_COPIES, REAL_COPIES = (1, 9, 26), (1, 5, 20)
N_CLOSED, SHARE_EXCHANGED, N_REAL = 20_000, 0.1, 200
_CHANGES = """
WITH preference AS (FROM word_preference JOIN trained_key USING (model_key, model))
SELECT b.word, f.mean_log_ratio_nats - b.mean_log_ratio_nats AS change_nats
FROM preference AS b JOIN preference AS f USING (word)
WHERE b.benchmark = $benchmark AND f.benchmark = $benchmark
    AND b.model = $before AND f.model = $after
ORDER BY b.word
"""


@dataclass(frozen=True)
class Study:
    """A directory with a warehouse, the data that texts are from, and how models are trained."""

    out: Path
    data: Path | None
    n_seeds: int = 3
    max_tokens: int = 400_000

    @property
    def store(self) -> Store:
        return Store.open(self.out / "warehouse")

    def run(self, line: str, *more: object) -> None:
        """Run a command line of Plumbline on the warehouse."""
        words = [*shlex.split(line), *map(str, more), "--warehouse", str(self.out / "warehouse")]
        assert plumbline(words) == 0, line

    def closed(self, n_copies: int) -> tuple[Path, ...]:
        """Shards of the closed world, and of the copies."""
        paths = self.out / "closed.jsonl.zst", self.out / f"closed-{n_copies}.jsonl.zst"
        n_exchanged = round(N_CLOSED * SHARE_EXCHANGED)
        plain = (text for text, _ in of_world(WorldOptions(), 0))
        exchanged = (text for text, _ in of_world(WorldOptions(world="swapped"), 1))
        other = list(islice(exchanged, n_exchanged))
        write_jsonl_zst(paths[0], [*islice(plain, N_CLOSED - n_exchanged), *other])
        write_jsonl_zst(paths[1], other * n_copies)
        return paths

    def real(self, n_copies: int) -> tuple[Path, ...]:
        """Shards of the real text, and of the copies."""
        assert self.data
        path, real = self.out / f"real-{n_copies}.jsonl.zst", shards_of(read_design(), self.data)
        novels = [text for shard in real if "gutenberg" in str(shard) for text in documents(shard)]
        drawn = np.random.default_rng(0).choice(len(novels), N_REAL, replace=False)
        source = {"meta": {"pile_set_name": "copies"}}
        write_jsonl_zst(path, [{"text": novels[k], **source} for k in drawn] * n_copies)
        return (*real, path)

    def audited(self, corpus: str, shards: tuple[Path, ...], model_from: str = "") -> Audited:
        """The audit of an exact deduplication."""
        kept = self.out / f"{corpus}-once"
        self.run(f"corpus count --corpus {corpus}", *shards)
        self.run(f"corpus associate --corpus {corpus}")
        self.run(f"corpus filter --corpus {corpus} --copies once --out", kept)
        with recorded(self.store, "corpus audit", {"before": corpus}) as run_id:
            after = [str(kept / "*.jsonl.zst")]
            return audit(self.store, corpus, after, run_id, model_from=model_from)

    def summary(self, n_copies: int, done: Audited) -> dict[str, object]:
        """What an audit says."""
        words = [r for r in done.rows if r["part"] == "word" and r["change_nats"] is not None]
        change, low, high, q = (
            np.array([r[name] for r in words])
            for name in ("change_nats", "change_nats_low", "change_nats_high", "q")
        )
        return {
            "copies": n_copies,
            "documents": len(done.curation.kept),
            "removed": done.curation.n_removed,
            "not matched": done.curation.n_unmatched,
            "words": len(words),
            "spread of the change, nats": float(change.std()),
            "median half interval": float(np.median(high - low) / 2),
            "shown to change": int((q <= 0.05).sum()),
            "turn": sum(r["q_turn"] <= 0.05 for r in words),
        }

    def closed_leans(self) -> Table:
        """Changes in the closed world, beside those that are planted."""
        planted = planted_deltas(WorldOptions().seed)
        for n_copies in CLOSED_COPIES:
            done = self.audited(f"closed-{n_copies}", self.closed(n_copies))
            own = 1 + n_copies
            before = SHARE_EXCHANGED * own / (1 + SHARE_EXCHANGED * n_copies)
            known = {w: mixed(d, SHARE_EXCHANGED) - mixed(d, before) for w, d in planted.items()}
            rows = {r["subject"]: r for r in done.rows if r["part"] == "word"}
            some = [
                (rows[w], x) for w, x in known.items() if w in rows and rows[w]["p"] is not None
            ]
            inside = [r["change_nats_low"] <= x <= r["change_nats_high"] for r, x in some]
            told = [(r, x) for r, x in some if r["q"] <= 0.05]
            x = [x for _, x in some]
            yield {
                **self.summary(n_copies, done),
                "planted words": len(some),
                "slope on the planted change": float(
                    stats.linregress(x, [r["change_nats"] for r, _ in some]).slope
                ),
                "interval holds it": float(np.mean(inside)),
                "told with a wrong sign": sum(r["change_nats"] * x < 0 for r, x in told),
            }

    def real_leans(self) -> Table:
        """Changes in the real text: afterwards all is as in the text without copies."""
        assert self.data
        real = shards_of(read_design(), self.data)
        self.run("corpus count --corpus real", *real)
        self.run("corpus filter --corpus real --copies once --out", self.out / "real-once")
        self.run("corpus count --corpus once", self.out / "real-once/*.jsonl.zst")
        self.run("corpus associate --corpus once")
        known = self.store.read("word_delta", corpus="once").to_pylist()
        of_word = {r["word"]: r["delta_nats"] for r in known if r["contrast"] == "she/he"}
        for n_copies in REAL_COPIES:
            done = self.audited(f"real-{n_copies}", self.real(n_copies))
            words = [r for r in done.rows if r["part"] == "word" and r["p"] is not None]
            wrong = max(abs(r["delta_after_nats"] - of_word[r["subject"]]) for r in words)
            yield {**self.summary(n_copies, done), "largest error of delta": float(wrong)}

    def import_words(self) -> str:
        """Import the pairs of the real text's words; the name of their benchmark."""
        benchmark = read_design().benchmark
        with recorded(self.store, "benchmark import", {"name": benchmark.name}) as run_id:
            import_pairs(benchmark, self.out, self.store, run_id)
        return benchmark.name

    def models(self, corpus: str, shards: tuple[Path, ...], benchmark: str, size: str) -> Table:
        """Changes of words' preferences between trainings before and after, and those predicted.

        No row, and a line that says why, where the study before shows no response.
        """
        study = f"exchange-{corpus}"
        self.audited(corpus, shards)
        n_seeds = self.n_seeds
        arms = f"--doses 0,1 --placebo '' --seeds {n_seeds} --max-tokens {self.max_tokens}"
        given = f"--name {study} --corpus {corpus} --benchmark {benchmark} {arms}"
        given = f"{given} --preset {size} --out"
        self.run(f"intervene run {given}", self.out, *shards)
        after = sorted((self.out / f"{corpus}-once").glob("*.jsonl.zst"))
        slopes, inside, changes = [], [], []
        for seed in range(n_seeds):
            options = preset(size, seed, self.max_tokens)
            model = trained_models.train_model(
                *(after, f"{corpus}-once-{seed}", corpus, options, self.out / "models"),
                tokenizer=self.out / study / f"models/{study}-gender-0-0/tokenizer.json",
            )
            with recorded(self.store, "train", {"name": model.model}) as run_id:
                trained_models.record_model(self.store, model, run_id)
                name, options_of = model.scored(None)
                score_benchmarks(self.store, name, (benchmark,), options_of, run_id)
        done = self.audited(corpus, shards, study)
        # Whether a study by retraining trusts it or not: this is one.
        response, lack = fitted_response(self.store, corpus, "she/he", study)
        if response is None:
            print(f"{corpus}: {lack}")
            return
        print(response)
        predict(done.rows, response)
        predicted = {r["subject"]: r for r in done.rows if r["predicted_nats"] is not None}
        for seed in range(n_seeds):
            names = {"before": f"{study}-gender-0-{seed}", "after": f"{corpus}-once-{seed}"}
            of_word = {
                r["word"]: r["change_nats"]
                for r in rows_of(self.store.root, _CHANGES, {**names, "benchmark": benchmark})
            }
            some = [predicted[word] for word in of_word if word in predicted]
            y = np.array([of_word[r["subject"]] for r in some])
            x, low, high = (
                np.array([r[f"predicted_nats{end}"] for r in some]) for end in ("", "_low", "_high")
            )
            y = y - y.mean() + x.mean()  # a shift that all words share is not predicted
            slopes.append(stats.linregress(x, y).slope)
            inside.append(np.mean((low <= y) & (y <= high)))
            changes.append(y)
        interval = stats.ttest_1samp(slopes, 0).confidence_interval(0.95)
        yield {
            "text": corpus,
            "seeds": n_seeds,
            "words": x.size,
            "slope on the predicted change": float(np.mean(slopes)),
            "low": float(interval.low),
            "high": float(interval.high),
            "correlation of mean changes": float(np.corrcoef(x, np.mean(changes, axis=0))[0, 1]),
            "interval holds a word's change": float(np.mean(inside)),
        }


def mixed(delta: float, share: float) -> float:
    """A lean in a text of which a share has she and he exchanged.

    >>> round(mixed(1.0, 0.0), 6), round(mixed(1.0, 0.5), 6), round(mixed(1.0, 1.0), 6)
    (1.0, 0.0, -1.0)
    """
    odds = np.exp(delta)
    return float(np.log(((1 - share) * odds + share) / (1 - share + share * odds)))


def main(line: Sequence[str] | None = None) -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="the real text, too: the reference data")
    parser.add_argument("--train-real", action="store_true", help="and trainings on it")
    parser.add_argument("--seeds", type=int, default=Study.n_seeds, help="of each training")
    parser.add_argument("--max-tokens", type=int, default=Study.max_tokens, help="of each training")
    given = parser.parse_args(line)
    if given.train_real and not given.data:
        parser.error("--train-real needs --data")
    given.out.mkdir(parents=True, exist_ok=True)
    study = Study(given.out, given.data, given.seeds, given.max_tokens)
    print(markdown(list(study.closed_leans())))
    if given.data:
        print(markdown(list(study.real_leans())))
    n = CLOSED_COPIES[-1]
    study.run("benchmark import closed-world")
    print(markdown(list(study.models(f"closed-{n}", study.closed(n), "closed-world", "closed"))))
    if given.train_real:
        n = REAL_COPIES[-1]
        words = study.import_words()
        print(markdown(list(study.models(f"real-{n}", study.real(n), words, "small"))))


if __name__ == "__main__":
    main()
