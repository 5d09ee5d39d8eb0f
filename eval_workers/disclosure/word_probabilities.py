"""Compute the probabilities of gendered words after the prompts of a set.

Any backend that scores texts can be used. It scores each prompt followed by each form of each word.

A word w has two forms v: a space followed by the word as listed, and a space followed by the
capitalised word. (A prompt that ends with white space has no probabilities, because the forms would
merge with its last token.) If t_1 ... t_k are the tokens that v adds to the prompt x, then

    P(w | x) = sum over v of  prod over j of  p(t_j | BOS, x, t_1 ... t_{j-1}),

so the probability of a word includes all of its tokens, not just the first. If both forms have the
same tokens, they count once. P(w | x) includes every text that continues these tokens. So if `hers`
is tokenised as `her` and `s`, P(her) includes P(hers).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from plumbline.eval_workers.models.scoring_contract import NONE, Instruction, TextScore, short_hash
from plumbline.eval_workers.scoring.continuations import check_prompts
from plumbline.eval_workers.scoring.model_step import ModelStep, publish_instruction
from plumbline.warehouse.errors import BadInput, UsageProblem
from plumbline.warehouse.input.input_rows import rejected
from plumbline.warehouse.steps.claimed_chunks import Chunk
from plumbline.warehouse.steps.step import ComputedStep, NewRows, Row, State, state_of
from plumbline.warehouse.storage.store import Store
from plumbline.warehouse.wordlists import GENDERS, LISTS, WordList, WordPair, load

if TYPE_CHECKING:
    from plumbline.eval_workers.models.scoring_contract import Backend, Tokens

#: Prompts per chunk. With the list `disclosure`, each prompt has 17 texts.
CHUNK_PROMPTS = 32
#: Default word list for probabilities, GAS, GLD, ADD and tuning (section 3 of the paper). The list
#: `pronouns` has the same words in other pairs, as we read the authors' code. With it, ADD and L_d
#: differ. The list `gendered` also has nouns such as *mother*. With it, a text discloses a gender
#: whenever it mentions a mother.
WORD_LIST = "disclosure"
_OWN_LISTS = (WORD_LIST, "her-him", "her-his")
_OTHER_TOKENS = "together with the prompt it changes the prompt's own tokens"


def word_list(name: str) -> WordList:
    """Load a word list by name or path. Raises the errors of ``warehouse.wordlists.load``.

    ``disclosure``, ``her-him`` and ``her-his`` are in this package, not in ``warehouse``, because
    they aren't used for counting words in a corpus.

    >>> [pair.contrast for pair in word_list("disclosure").pairs]
    ['she/he', 'her/his', 'herself/himself', 'hers/him']
    """
    if name in _OWN_LISTS:
        return load(str(Path(__file__).with_name(f"{name}.toml")))
    if Path(name).suffix != ".toml":
        replace(LISTS, made=_OWN_LISTS).find(name)  # raises if the name is unknown
    return load(name)


def variants(word: str) -> tuple[str, ...]:
    """Return the word as listed and capitalised, each after a space. Leave out a duplicate."""
    return tuple(dict.fromkeys((f" {word}", f" {word[:1].upper()}{word[1:]}")))


def texts_to_score(prompt: str, words: Sequence[str]) -> list[str]:
    """Return the texts whose scores ``spelled`` needs: the prompt, alone and with each word form.

    >>> texts_to_score("It was", ["he"])
    ['It was', 'It was he', 'It was He']
    """
    return [prompt, *(prompt + variant for word in words for variant in variants(word))]


def added_tokens(
    prompt: str, word: str, encoded: Mapping[str, Tokens | str]
) -> dict[Tokens, str] | str:
    """Return the tokens that each form of the word adds to the prompt.

    The tokens are the keys of a dictionary. Each value is the prompt with the form. If the form as
    listed has a problem, return the problem instead. If only the capitalised form has one, such as
    a letter that is not in the vocabulary, leave this form out. The prompt itself must have no
    problem. ``spelled`` explains ``encoded``.

    >>> encoded = {"It was": (1, 2), "It was hers": (1, 2, 3, 4), "It was Hers": "no letter"}
    >>> added_tokens("It was", "hers", encoded)
    {(3, 4): 'It was hers'}
    >>> added_tokens("It was", "hers", {**encoded, "It was hers": (1, 5)})
    "together with the prompt it changes the prompt's own tokens"
    """
    before, n_before = encoded[prompt], len(encoded[prompt])
    added: dict[Tokens, str] = {}
    for is_capital, variant in enumerate(variants(word)):
        tokens = encoded[prompt + variant]
        if not isinstance(tokens, str) and len(tokens) > n_before and tokens[:n_before] == before:
            added[tokens[n_before:]] = prompt + variant
        elif not is_capital:
            return tokens if isinstance(tokens, str) else _OTHER_TOKENS
    return added


def spelled(
    prompt: str, pairs: Sequence[WordPair], encoded: Mapping[str, Tokens | str]
) -> dict[str, dict[Tokens, str]] | str:
    """Map each word that can follow the prompt to its ``added_tokens``.

    A word can't follow the prompt if ``added_tokens`` returns a problem. A pair with such a word is
    left out, because its other word alone would bias the measures. If no pair is left, or the
    prompt can't be used, return the problem as a string. ``encoded`` maps each text of
    ``texts_to_score`` to its tokens, or to a problem.
    """
    if prompt[-1:].isspace():
        return "ends with white space, but the next word brings its own"
    if isinstance(problem := encoded[prompt], str):
        return problem
    forms: dict[str, dict[Tokens, str]] = {}
    first = ""
    for word in words_of(pairs):
        added = added_tokens(prompt, word, encoded)
        if isinstance(added, str):
            first = first or f"{word!r}: {added}"
        else:
            forms[word] = added
    usable = [pair for pair in pairs if pair.a in forms and pair.b in forms]
    if not usable:
        return f"no pair of words can be spelled after it; {first}"
    return {word: forms[word] for word in words_of(usable)}


def probabilities(
    prompt: str, pairs: Sequence[WordPair], scores: Mapping[str, TextScore]
) -> dict[str, tuple[float, int]] | str:
    """Map each word to P(word | prompt) and the number of the word's usable forms.

    If the prompt can't be used, return the reason. ``scores`` has the score of each text of
    ``texts_to_score``. Log-probabilities are added in float64.

    >>> from plumbline.eval_workers.models.scoring_contract import TextScore
    >>> half, quarter = math.log(0.5), math.log(0.25)
    >>> scores = {"It was": TextScore(-3.0, (1, 2), (-1.0, -2.0)),
    ...     "It was hers": TextScore(0.0, (1, 2, 3, 4), (-1.0, -2.0, half, quarter)),
    ...     "It was Hers": TextScore(math.nan, problem="no letter"),
    ...     "It was his": TextScore(0.0, (1, 2, 5), (-1.0, -2.0, half)),
    ...     "It was His": TextScore(0.0, (1, 2, 6), (-1.0, -2.0, quarter))}
    >>> found = probabilities("It was", [WordPair("hers", "his")], scores)
    >>> [(word, round(p, 12), n) for word, (p, n) in found.items()]
    [('hers', 0.125, 1), ('his', 0.75, 2)]
    """
    encoded: dict[str, Tokens | str] = {
        text: score.problem or tuple(score.token_ids)  # a list if read from a file
        for text, score in scores.items()
    }
    words = spelled(prompt, pairs, encoded)
    if isinstance(words, str):
        return words
    n_prompt, by_word = len(encoded[prompt]), {}
    for word, forms in words.items():
        added = [scores[text].token_logprobs_nats[n_prompt:] for text in forms.values()]
        by_word[word] = (math.fsum(math.exp(math.fsum(form)) for form in added), len(forms))
    return by_word


def words_of(pairs: Sequence[WordPair], what: str = "word list") -> dict[str, str]:
    """Map each word of the pairs to its gender, `f` or `m`, in order of first mention.

    Raises ``BadInput`` if there are no pairs, or if a word is both `f` and `m`.

    >>> words_of([WordPair("she", "he"), WordPair("her", "his"), WordPair("her", "him")])
    {'she': 'f', 'he': 'm', 'her': 'f', 'his': 'm', 'him': 'm'}
    """
    if not pairs:
        raise BadInput(what, "holds no pairs of words")
    genders: dict[str, str] = {}
    for pair in pairs:
        for word, gender in ((pair.a, "f"), (pair.b, "m")):
            if genders.setdefault(word, gender) != gender:
                raise BadInput(what, f"has {word!r} on both sides")
    return genders


@dataclass(frozen=True)
class ProbeStep(ModelStep):
    """Computes P(word | prompt) for each word of a list, after each prompt that has no rows yet.

    The ``instruction`` is put before each prompt, and each instruction has separate rows. Reads
    the column ``prompt`` of ``probe_prompt``. Writes ``pronoun_probability``, ``attribute_pair``
    and ``instruction``. If a prompt has changed, its old rows are replaced. A prompt gets a row in
    ``reject`` if it can't be scored, or if no pair of words can follow it (see ``spelled``). The
    next run tries such a prompt again. If only some pairs can follow a prompt, the other pairs have
    no rows. Raises ``UsageProblem`` for a set that is not in the warehouse.
    """

    probe_set: str
    words: WordList
    instruction: Instruction = NONE

    table = "pronoun_probability"
    key = ("prompt_id",)
    order = ("prompt_id", "word")
    stage = "probe"
    verb = "probe"
    unit = "prompts"
    result_type = TextScore

    @property
    def label(self) -> str:
        return self.probe_set

    def check(self, store: Store) -> None:
        check_prompts(store, self.probe_set)

    def partition(self, model: Backend) -> dict[str, str]:
        return {
            "probe_set": self.probe_set,
            "model_key": model.identity.key,
            "word_list": self.words.name,
            "instruction_key": self.instruction.key,
        }

    def state(self, store: Store, model: Backend) -> State:
        """Return prompts and stored rows. Column ``sent`` is the instruction plus the prompt."""
        lead = model.lead(self.instruction)
        read = store.read("probe_prompt", probe_set=self.probe_set).to_pylist()
        prompts = [{**row, "sent": f"{lead}{row['prompt']}"} for row in read]
        prompts = [{**row, "text_id": short_hash(self.texts(row))} for row in prompts]
        rows = store.read(self.table, **self.partition(model)).to_pylist()
        return state_of(prompts, rows, *self.key)

    def texts(self, prompt: Row) -> list[str]:
        return texts_to_score(prompt["sent"], self.words.targets)

    def chunks(self, missing: Sequence[Row]) -> Iterator[Chunk]:
        """Yield chunks of texts. Prompts are sorted, so prompts that start alike are together."""
        by_prompt = {row["prompt"]: row for row in missing}
        ordered = [by_prompt[prompt] for prompt in sorted(by_prompt)]
        for start in range(0, len(ordered), CHUNK_PROMPTS):
            part = ordered[start : start + CHUNK_PROMPTS]
            texts = dict.fromkeys(text for row in part for text in self.texts(row))
            yield Chunk(list(texts), len(part))

    def new_rows(self, model: Backend, state: State, results: Mapping[str, TextScore]) -> NewRows:
        """Return a row for each prompt and word. Reject a prompt that can't be used."""
        genders = words_of(self.words.pairs)
        rows, rejects = list[Row](), list[Row]()
        for prompt in state.missing:
            scores = {text: results[text] for text in self.texts(prompt)}
            by_word = probabilities(prompt["sent"], self.words.pairs, scores)
            if isinstance(by_word, str):
                rejects.append(rejected(prompt, by_word, prompt["prompt"]))
                continue
            rows += [
                {
                    **{name: prompt[name] for name in ("prompt_id", "text_id")},
                    "model": model.identity.model,
                    "word": word,
                    "gender": genders[word],
                    "probability": probability,
                    "n_variants": n_variants,
                }
                for word, (probability, n_variants) in by_word.items()
            ]
        return NewRows(rows, rejects)

    def publish_before(self, done: ComputedStep) -> None:
        super().publish_before(done)
        publish_words(done.store, self.words, done.run_id)
        publish_instruction(done.store, self.instruction, done.run_id)


def load_words(store: Store | None, name: str) -> WordList:
    """Load and check a word list. ``store`` is ``None`` if there is no warehouse yet.

    Raises ``BadInput`` for a list that has no pairs, has a word as both female and male, or puts
    male words first. Raises ``UsageProblem`` if the warehouse has a different list of the same
    name. Also raises the errors of ``word_list``.
    """
    words = word_list(name)
    words_of(words.pairs, f"word list {words.name}")
    if words.groups == GENDERS[::-1]:
        problem = "names its groups male and female, but the first words of pairs have to be female"
        raise BadInput(f"word list {words.name}", problem, "exchange a and b, and the groups")
    rows = store.read("attribute_pair", word_list=words.name).to_pylist() if store else []
    pairs = {(pair.a, pair.b) for pair in words.pairs}
    if rows and {(row["female"], row["male"]) for row in rows} != pairs:
        problem = "stands for other words in this warehouse"
        raise UsageProblem(f"word list {words.name}", problem, "give the list another name")
    return words


def publish_words(store: Store, words: WordList, run_id: str) -> None:
    """Write the word list to the table ``attribute_pair`` unless the table already has it."""
    if store.units("attribute_pair", word_list=words.name):
        return
    rows = [
        {"source": words.source, "pair": i, "female": pair.a, "male": pair.b}
        for i, pair in enumerate(words.pairs, 1)
    ]
    store.replace("attribute_pair", rows, {"word_list": words.name}, run_id)
