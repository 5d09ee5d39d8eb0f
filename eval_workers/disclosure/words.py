"""The list of gendered words that a warehouse is measured with: table ``attribute_pair``."""

from __future__ import annotations

from plumbline.eval_workers.disclosure.attributes import words_of
from plumbline.warehouse.errors import UsageProblem
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import WordList, load


def load_words(store: Store, name: str) -> WordList:
    """A word list by name or path, see ``warehouse.wordlists.load``, whose errors it raises.

    Raises ``BadInput`` for one without pairs or with a word on both sides, ``UsageProblem`` when
    its name stands for other words in this warehouse.
    """
    words = load(name)
    words_of(words.pairs, f"word list {words.name}")
    there = store.read("attribute_pair", word_list=words.name).sort_by("pair").to_pylist()
    if there and [(r["female"], r["male"]) for r in there] != _pairs(words):
        problem = "stands for other words in this warehouse"
        raise UsageProblem(f"word list {words.name}", problem, "give the list another name")
    return words


def publish_words(store: Store, words: WordList, run_id: str) -> None:
    """Write the list to ``attribute_pair``, unless it is there; the view ``gas`` needs no more.

    >>> import tempfile
    >>> store = Store.open(tempfile.mkdtemp() + "/w")
    >>> publish_words(store, load_words(store, "she-he"), "r")
    >>> [(r["female"], r["male"]) for r in store.read("attribute_pair").to_pylist()]
    [('she', 'he')]
    """
    if store.units("attribute_pair", word_list=words.name):
        return
    shared = {"word_list": words.name, "source": words.source, "run_id": run_id}
    rows = [
        {**shared, "pair": i, "female": female, "male": male}
        for i, (female, male) in enumerate(_pairs(words), 1)
    ]
    store.replace("attribute_pair", rows, {"word_list": words.name}, run_id)


def _pairs(words: WordList) -> list[tuple[str, str]]:
    return [(pair.female, pair.male) for pair in words.pairs]
