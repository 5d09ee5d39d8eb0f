"""Languages other than English: counts equal to spaCy's tokenizer of that language, by any path."""

import random
from functools import cache, partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plumbline.eval_workers.pairs.benchmarks import import_benchmark
from plumbline.jobs.counting.corpus_lookup import corpus_language
from plumbline.jobs.counting.partials import partials_directory
from plumbline.jobs.ingest.count_corpus import count_corpus
from plumbline.jobs.kernel.corpus_options import CorpusOptions, VocabularyOptions
from plumbline.jobs.kernel.counter import Counter as Kernel
from plumbline.jobs.kernel.memory import Limits
from plumbline.jobs.kernel.tokens.language_tables import tokenizer_version
from plumbline.jobs.kernel.tokens.tokenizer import Answers, Targets, tokenize, tokenize_all
from plumbline.jobs.seed_words.vocabulary import build_vocabulary
from plumbline.pipelines.command.main import main
from plumbline.warehouse import languages
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.shards import documents, write_jsonl_zst
from plumbline.warehouse.languages import TokenRules
from plumbline.warehouse.storage.store import Store
from tests.oracle_counts import Tables, as_oracle, bare, count_texts, oracle, stored
from tests.spacy_reference import agreement, blank, language_tokens, language_words, words

pytest.importorskip("spacy")

BUNDLED = [name for name in languages.LANGUAGES.names() if name != languages.ENGLISH]
#: What each language does to its words, in text of our own.
TEXTS = {
    "fr": "« Qu'elle vienne ! » dit-elle à l'homme d’à côté ; aujourd'hui, il n'est-ce pas p.-ê. "
    "M. Dupont, a-t-il dit. Prud'homme, porte-monnaie, l’ŒUVRE, 12,5 km2, 3,50€, J.-C. C'est.",
    "de": "Die Straße, z. B. in „Gießen“, geht's gut? STRASSE, GROẞ und Übermut: Das ist u.a. "
    "d.h. Prof. Dr. Müllers Donaudampfschifffahrtsgesellschaftskapitän. Frau/Mann; 3,5 km.",
    "es": "¿Dámelo? ¡Ella, y él también! En (EE.UU.) el Sr. García pagó 3.50€ a.m. Añadió: "
    "«dígaselo a 5km». Ud. y Uds., pág. 12, el 25% del pío-pío. ¿¡Qué!? Aquél",
}


def rules(code: str) -> str:
    return languages.load(code).token_rules


@pytest.mark.reference
@pytest.mark.parametrize("code", ["fr", "de", "es"])
def test_agreement_on_the_reference_data(data: Path, code: str) -> None:
    targets = languages.load(code).lists["gendered"].targets
    every = 5 if code == "es" else 1
    texts = list(documents(data / "languages" / f"{code}.jsonl.zst"))[::every]
    common = total = 0
    for text, ours in zip(texts, tokenize_all(texts, targets, rules(code)), strict=True):
        same, length = agreement(ours, language_tokens(code, text, targets))
        common, total = common + same, total + length
    assert total > 14_000
    assert common == total  # docs/corpora.md says so


@cache
def glued(code: str) -> st.SearchStrategy[str]:
    """Letters and marks, and words and exceptions of a language, glued together."""
    exceptions = [s for s in blank(code).tokenizer.rules if not any(map(str.isspace, s))]
    pieces = st.sampled_from(TEXTS[code].split()) | st.sampled_from(exceptions)
    marks = st.text(st.sampled_from("aeEßÉœ'’-.,;!?«»¿(“”…\u201412€ \n\u00a0\u202f"), max_size=9)
    return st.lists(pieces | marks, max_size=8).map("".join)


@pytest.mark.parametrize("code", BUNDLED)
@given(st.data())
def test_any_text_is_cut_as_spacy_cuts_it(code: str, data: st.DataObject) -> None:
    text = data.draw(glued(code))
    assert words(text, rules(code)) == language_words(code, text)
    targets = languages.load(code).lists["gendered"].targets
    assert tokenize(text, targets, rules(code)) == language_tokens(code, text, targets)


def sample(code: str, n: int) -> list[str]:
    chance = random.Random(5)
    female, male = languages.load(code).lists["gendered"].targets[:2]
    pool = [*TEXTS[code].split(), female, male, female.title(), f"{male},"]
    return [" ".join(chance.choices(pool, k=chance.randint(1, 60))) for _ in range(n)]


@pytest.mark.parametrize("code", BUNDLED)
@pytest.mark.parametrize("rule", ["pairs", "windows"])
def test_counts_are_those_of_brute_force(code: str, rule: str) -> None:
    targets = languages.load(code).word_list("gendered").targets
    texts = sample(code, 40)
    counts = count_texts(texts, Targets(targets, rules(code)), bare(rule, 6))
    split = partial(language_tokens, code)
    assert as_oracle(*counts) == oracle(texts, targets, rule, 6, split=split)


def test_counts_stay_exact_when_answers_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"{k}x l'homme{k}, qu'elle{k} il a{'b' * (k % 40)}" for k in range(8_000)]
    options = Targets(("elle", "il"), rules("fr")), bare()
    expected = count_texts(texts, *options)
    cleared = []
    clear = Answers.clear
    monkeypatch.setattr(Answers, "clear", lambda self: (cleared.append(1), clear(self)))
    tables = Tables()
    limited = Kernel(*options, tables, Limits(cache_slots=1 << 12))
    assert limited._limits.n_answers == 1 << 12
    limited.feed_texts(texts)
    found = limited.result()
    assert len(cleared) > 1
    assert as_oracle(found, tables) == as_oracle(*expected)
    assert found.n_tokens == expected[0].n_tokens


def test_a_corpus_has_a_language_and_its_counts_are_never_mixed(
    store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl.zst"
    write_jsonl_zst(path, sample("de", 30))
    options = CorpusOptions(language="de")
    row = count_corpus(store, "c", (path,), options).row
    targets, split = options.word_list.targets, partial(language_tokens, "de")
    assert stored(store) == oracle(sample("de", 30), targets, "pairs", 10, split=split)
    assert row["language"] == "de" and row["tokenizer"] == tokenizer_version(rules("de"))
    assert corpus_language(row) == languages.load("de")
    with pytest.raises(UsageProblem, match="language de"):
        count_corpus(store, "c", (path,))
    several = [CorpusOptions(language=x) for x in ("de", "fr", "en")]
    assert len({partials_directory(store, x.listed, x) for x in several}) == 3
    with pytest.raises(UsageProblem, match="is in language de"):
        build_vocabulary(store, "c")
    build_vocabulary(store, "c", VocabularyOptions(quantile=0, any_language=True))
    kept = {r["word"] for r in store.read("vocabulary", corpus="c").to_pylist() if r["is_kept"]}
    assert "übermut" in kept and "3,5" not in kept
    english = count_corpus(store, "e", (path,)).row
    assert english["language"] is None and english["language_file"] is None


SWEDISH = """
description = "Swedish"
source = "spaCy's rules and stop words of Swedish; the list is our own"
rules = { spacy = "sv", added = "är" }

[lists.gendered]
description = "Swedish pronouns and nouns"
source = "our own"
groups = ["female", "male"]
pairs = [
  { a = "hon", b = "han" },
  { a = "kvinna", b = "man", weight = 0.5 },
]

[lists.nouns]
description = "Swedish nouns"
source = "our own"
pairs = [{ a = "mor", b = "far" }]
"""


def test_a_language_that_is_not_bundled_works_by_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "sv.toml"
    file.write_text(SWEDISH, encoding="utf-8")
    texts = ["Hon är sjuksköterska, mor och kvinna."] * 30 + ["Han är kapten, far och man."] * 30
    texts += ["Hon är kapten."] * 3 + ["Han är sjuksköterska."] * 3
    write_jsonl_zst(tmp_path / "a.jsonl.zst", texts)
    count = ["corpus", "count", "a.jsonl.zst", "--corpus", "s", "--language", "sv.toml"]
    assert main([*count, "--targets", "all", "--warehouse", "w"]) == 0
    file.unlink()  # what a corpus was counted with is in its row
    assert main(["corpus", "associate", "--corpus", "s", "--warehouse", "w"]) == 0
    nouns = ["corpus", "associate", "--corpus", "s", "--targets", "nouns", "--warehouse", "w"]
    assert main(nouns) == 0
    store = Store.open(tmp_path / "w")
    delta = {
        (r["contrast"], r["word"]): r["delta_nats"]
        for r in store.read("word_delta", corpus="s").to_pylist()
    }
    assert delta["hon/han", "sjuksköterska"] > 1 and delta["hon/han", "kapten"] < -1
    assert ("gendered", "kapten") in delta
    capsys.readouterr()
    assert main(["why", "kapten", "--corpus", "s", "--n", "1", "--warehouse", "w"]) == 0
    assert "leans to han" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ((SWEDISH[SWEDISH.index("[lists") :], "lists = {}"), "lists is empty"),
        (('spacy = "sv"', "spacy = 3"), "rules.spacy = 3: should be a valid string"),
        (('spacy = "sv"', 'spacy = "sv", stops = "x"'), "key 'rules.stops': is unknown"),
        (('added = "är"', 'kept = "a", added = "a b"'), "stop word a is both kept and added"),
        (('a = "mor"', 'a = "Mor"'), "'Mor' is not one lowercase word"),
    ],
)
def test_a_file_that_is_not_valid_is_one_line(change: tuple[str, str], problem: str) -> None:
    assert change[0] in SWEDISH
    with pytest.raises(BadInput) as error:
        languages.parse("sv", SWEDISH.replace(*change), "language sv.toml")
    assert problem in str(error.value) and "sv.toml" in str(error.value)


def test_templates_that_may_agree_are_refused(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "sv.toml"
    pairs = """
    [pairs]
    templates = ["{pronoun} är {work}.", "{pronoun} är glad.", "Tea är god.", "{x} är {work}."]
    invariable = "är god tea"
    forms = { pronoun = ["hon", "han"] }
    fill = { work = "läkare präst" }
    """
    file.write_text(SWEDISH + pairs, encoding="utf-8")
    done = import_benchmark(store, "sv-pairs", file, "r")
    assert (len(done.pairs), len(done.rejects)) == (2, 3)
    rows = store.read("benchmark_pair", benchmark="sv-pairs").to_pylist()
    assert [(r["sentence_a"], r["sentence_b"], r["category"], r["source_row"]) for r in rows] == [
        ("Hon är läkare.", "Han är läkare.", "work", 1),
        ("Hon är präst.", "Han är präst.", "work", 2),
    ]
    rejects = {r["source_row"]: r["reason"] for r in store.read("reject").to_pylist()}
    assert rejects == {
        3: "'glad' may change with the group: if it doesn't, list it in [pairs] invariable",
        4: "no placeholder for the groups, such as {pronoun}",
        5: "no [pairs.forms] or [pairs.fill] has {x}",
    }
    with pytest.raises(BadInput, match=r"has no \[pairs\]"):
        file.write_text(SWEDISH, encoding="utf-8")
        import_benchmark(store, "sv-pairs", file, "r")
    with pytest.raises(BadInput, match="64 rows rejected"):  # the pronouns of groups are English
        import_benchmark(store, "fr-pairs", None, "r", groups=("she", "they"))


@pytest.mark.parametrize(
    ("code", "problem"),
    [("xqz", "spaCy .* not support it"), ("ja", "not support it|is not installed|by rules")],
)
def test_a_language_that_spacy_cannot_cut_is_refused(code: str, problem: str) -> None:
    with pytest.raises(Exception, match=problem):
        tokenize("a", (), TokenRules(code).text)
