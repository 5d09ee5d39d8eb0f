"""`docs/papers.md`: every command runs on small input, and no verdict falls below its floor."""

import json
import re
import shlex
import tomllib
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import pytest

from plumbline.pipelines.command.main import main
from plumbline.warehouse.input.shards import write_jsonl_zst
from tests.chat_server import Say, good_script, serving
from tests.conftest import REPOSITORY
from tests.released_files import score_rows, write_scores
from tests.test_fairpair_command import PROMPTS
from tests.test_generation_released import files
from tests.test_generation_released import released as wordings
from tests.test_reproduce import released
from tests.tiny_models import save

TEXTS = [
    f"{who} {verb} the {thing} and some tea near the {place}."
    for who in ("She", "He")
    for verb in ("saw", "found")
    for thing in ("lamp", "table", "garden", "letter", "bottle", "window")
    for place in ("river", "station", "harbour")
]


def script(prompt: str, count: int) -> Say:
    """A well-behaved model, for sentences around a word and for prompts like a seed sentence."""
    if "My friend" not in prompt:
        return good_script(prompt, count)
    return Say("1. My friend likes green.\n2. My friend likes tea and cake.\n")


def commands() -> list[list[str]]:
    listed = [c for row in rows() for c in re.findall(r"`plumbline ([^`]+)`", row.command)]
    return [shlex.split(command) for command in dict.fromkeys(listed)]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The files that the page names, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLUMBLINE_API_KEY", "none")
    write_jsonl_zst(Path("novels/a.jsonl.zst"), TEXTS)
    release = released(Path("unstereo-eval"), score_rows())
    for k, size in enumerate(("70m", "160m", "410m", "1b")):
        for twin in ("", "-deduped"):
            name = f"EleutherAI__pythia-{size}{twin}"
            scores = score_rows(name)
            for row in scores:
                less = (k + len(row["template"])) % 3 + (0.5 if twin else 0.0)
                row["F_logprob"] = str(float(row["M_logprob"]) - less)
            write_scores(release / "results", scores, f"{name}.csv")
    for name in ("facebook__opt-125m", "mosaicml__mpt-7b", "allenai__OLMo-1B"):
        write_scores(release / "results", score_rows(name), f"{name}.csv")
    config = save("neox", Path("models/small")) / "config.json"
    longer = json.loads(config.read_text()) | {"max_position_embeddings": 256}
    config.write_text(json.dumps(longer))
    Path("few.toml").write_text(PROMPTS)
    wordings(release / "benchmark-creation-configs", files())
    return tmp_path


@pytest.mark.slow
def test_every_command_runs(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    failed = []
    with serving(script) as server:
        for name, model in (("demo", "model-a"), ("long", "model-b")):
            served = f'corpus = "novels"\nmodel = "{model}"\nbase_url = "{server.url}"\n'
            Path(f"{name}.toml").write_text(f"[benchmark.build]\n{served}")
        for command in commands():
            given = [word.replace("URL", server.url) for word in command]
            # Made scores aren't those that the paper's figures are of.
            fine = (0, 1) if command[:2] == ["reproduce", "unstereoeval"] else (0,)
            if "--models" in command:  # of the hub, which isn't there in tests
                fine = (0, 3, 5)
            status, said = main(given), capsys.readouterr()
            if status not in fine or (command[0] == "sql" and "\n0 rows" in said.out):
                failed.append((command, said.err or said.out))
    assert not failed


PAGE = (REPOSITORY / "docs" / "papers.md").read_text(encoding="utf-8")
FLOORS = tomllib.loads((REPOSITORY / "tests" / "papers.toml").read_text(encoding="utf-8"))
#: From worst to best. A verdict is exact in part if ours differs in the rest.
CLASSES = ("not computable", "ours differs", "exact in part", "exact")
LEFT = "left, tag v0.2.0"


class Row(NamedTuple):
    """One row of the page's tables."""

    paper: str
    item: str
    place: str
    command: str
    verdict: str


def rows(page: str = PAGE) -> list[Row]:
    """Return the tables' rows, with the heading that each table is under."""
    found: list[Row] = []
    paper = ""
    for line in page.splitlines():
        if line.startswith("## "):
            paper = line[3:]
        elif line.startswith("| ") and not line.startswith("| item "):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            assert len(cells) == 4 and all(cells), line
            found.append(Row(paper, *cells))
    return found


def rank(verdict: str) -> tuple[int, Fraction]:
    """Return the class of a verdict or floor, and the share of figures that are exact."""
    best = next(k for k, name in enumerate(CLASSES) if verdict.startswith(name.split(" in ")[0]))
    if best >= 2:
        partly = re.search(r"in part|ours differs|not computable", verdict)
        best = 2 if partly else 3
    number = r"(\d[\d,]*)"
    share = re.match(rf"exact(?: in part)?,?(?: in| for)? {number} of {number}", verdict)
    if share is None:
        return best, Fraction(1)
    n, of = (int(text.replace(",", "")) for text in share.groups())
    return best, Fraction(n, of)


def broken(page: str) -> list[str]:
    """Return what breaks the contract: one line for each row."""
    listed = {(row.paper, row.item): row.verdict for row in rows(page)}
    floors = {
        (paper, item): floor
        for paper, items in FLOORS["floor"].items()
        for item, floor in items.items()
    }
    problems = [f"{item}: the row is missing" for _, item in floors.keys() - listed.keys()]
    for (paper, item), verdict in listed.items():
        if (paper, item) not in floors:
            problems.append(f"{item}: no floor in tests/papers.toml")
        elif verdict.startswith(LEFT):
            if item not in FLOORS["may_leave"]:
                problems.append(f"{item}: its feature doesn't leave")
        elif rank(verdict) < rank(floor := floors[paper, item]):
            problems.append(f"{item}: {verdict[:40]!r} is below {floor!r}")
    return sorted(problems)


def test_no_row_goes_and_no_verdict_falls() -> None:
    assert not broken(PAGE)


@pytest.mark.parametrize(
    ("item", "old", "new", "problem"),
    [
        ("PMI, delta", "exact by", "ours differs because", "is below 'exact'"),
        ("PMI, delta", "| PMI, delta |", "| PMI |", "the row is missing"),
        ("statistics of the sets", "66 of 70", "65 of 70", "is below 'exact in part 66 of 70'"),
    ],
)
def test_a_lower_verdict_is_noticed(item: str, old: str, new: str, problem: str) -> None:
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {item} "))
    assert old in line
    problems = broken(PAGE.replace(line, line.replace(old, new)))
    assert any(p.startswith(f"{item}: ") and p.endswith(problem) for p in problems)


def test_every_row_says_where_on_the_page_and_what_came_out() -> None:
    assert len(rows()) > 70
    place = r"(sections?|App\.|abstract)( [0-9A-H.]+)?.*"
    verdict = rf"(exact|ours differs because|not computable because|{re.escape(LEFT)})\b.*"
    for row in rows():
        assert re.fullmatch(place, row.place), row
        assert "`plumbline " in row.command or row.verdict.startswith(LEFT), row
        assert re.fullmatch(verdict, row.verdict), row
    keys = [(row.paper, row.item) for row in rows()]
    assert len(set(keys)) == len(keys)
    assert not re.search("our reading|as described|known to us|could not read", PAGE)
