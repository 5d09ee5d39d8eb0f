"""Made-up sets of neutral prompts and lists of paired words, for the tests of disclosure."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from plumbline.warehouse.storage.store import Store
from tests.metric_rows import fill

FEMALE = ("she", "her", "hers", "herself", "woman")


def put_prompts(
    store: Store,
    name: str,
    prompts: Sequence[str],
    counterparts: Sequence[str | None] | None = None,
    topics: Sequence[str | None] | None = None,
) -> None:
    """Make ``prompts`` the set of that name, with identifiers `00`, `01` and so on."""
    nothing = [None] * len(prompts)
    shared = {"probe_set": name, "language": "en", "source_file": f"{name}.txt", "run_id": "r"}
    rows = [
        {**shared, "prompt_id": f"{i:02}", "prompt": prompt, "source_row": i + 1}
        | {"perturbed_prompt": other, "topic": topic}
        for i, (prompt, other, topic) in enumerate(
            zip(prompts, counterparts or nothing, topics or nothing, strict=True)
        )
    ]
    store.replace("probe_prompt", rows, {"probe_set": name}, "r")


def list_file(path: Path, pairs: Iterable[tuple[str, str]], unpaired: Iterable[str] = ()) -> str:
    """Write a list of pairs, female and male, and of unpaired targets; returns its path."""
    rows = ", ".join(f'{{ a = "{f}", b = "{m}", weight = 1.0 }}' for f, m in pairs)
    head = 'description = "d"\nsource = "s"\ngroups = ["female", "male"]\n'
    path.write_text(f"{head}pairs = [{rows}]\nunpaired = {[*unpaired]}\n", encoding="utf-8")
    return str(path)


def put_words(store: Store, pairs: Iterable[tuple[str, str]], word_list: str = "l") -> None:
    """Make these pairs, female and male, the list of that name."""
    shared = {"word_list": word_list}
    rows = [{**shared, "pair": i, "female": f, "male": m} for i, (f, m) in enumerate(pairs, 1)]
    fill(store, "attribute_pair", rows, word_list)


def put_probabilities(
    store: Store,
    by_prompt: Iterable[Mapping[str, float]],
    word_list: str = "l",
    probe_set: str = "s",
    key: str = "key-m",
    instruction: str = "none",
) -> None:
    """Probabilities of the words after each prompt of a set."""
    shared = {"probe_set": probe_set, "model_key": key, "model": "m", "word_list": word_list}
    shared |= {"instruction_key": instruction}
    rows = [
        {**shared, "prompt_id": f"{i:02}", "word": word, "probability": float(p)}
        | {"gender": "f" if word in FEMALE else "m"}
        for i, one in enumerate(by_prompt)
        for word, p in one.items()
    ]
    fill(store, "pronoun_probability", rows, f"{key}{probe_set}{word_list}")


def put_continuations(
    store: Store,
    texts: Mapping[str, Sequence[str]],
    probe_set: str = "s",
    sampling: str = "greedy",
    key: str = "key-m",
    sides: Sequence[str] = ("original",),
) -> None:
    """Samples of each prompt of a set, the same on all sides."""
    shared = {"probe_set": probe_set, "model_key": key, "model": "m", "sampling_key": sampling}
    shared |= {"finish": "stop"}
    rows = [
        {**shared, "prompt_id": prompt, "side": side, "sample": k, "seed": k, "continuation": text}
        for prompt, several in texts.items()
        for side in sides
        for k, text in enumerate(several)
    ]
    fill(store, "continuation", rows)
