"""The seeded faults of `mutants.toml` still have their texts and tests, and the tool tells them."""

import ast
from collections import Counter

import duckdb
import jinja2

from tests.conftest import REPOSITORY
from tools.mutants import mutated, place, product, read

#: How many faults there are, by what they break; moving code may not lose one.
LEAST = {"counts": 12, "measures": 10, "metrics": 14, "clusters": 10, "storage": 14} | {
    **{"models": 14, "pairs": 10, "writing": 10, "fairpair": 8, "disclosure": 8, "evidence": 6},
    **{"commands": 4, "report": 4},
}


def test_no_fault_is_lost() -> None:
    mutants = read()
    found = Counter(mutant.group for mutant in mutants)
    assert found.keys() == LEAST.keys()
    assert all(found[group] >= n for group, n in LEAST.items())
    assert len({mutant.id for mutant in mutants}) == len(mutants), "two groups have one"


def test_every_fault_has_its_text_once_and_is_no_error_of_syntax() -> None:
    texts = product(REPOSITORY)
    for mutant in read():
        path = place(mutant, texts)
        faulty = mutated(mutant, texts[path])
        assert faulty != texts[path], mutant.id
        if path.suffix == ".py":
            ast.parse(faulty)
        elif path.suffix == ".jinja":
            jinja2.Environment().parse(faulty)
        else:
            duckdb.extract_statements(faulty)


def test_the_named_tests_are_there() -> None:
    contract = (REPOSITORY / "tests/backend_contract.py").read_text(encoding="utf-8")
    for mutant in read():
        assert mutant.tests, mutant.id
        for test in mutant.tests:
            file, name, *methods = test.partition("[")[0].split("::")
            tree = ast.parse((REPOSITORY / file).read_text(encoding="utf-8"))
            kinds = ast.ClassDef if methods else ast.FunctionDef
            assert name in {node.name for node in tree.body if isinstance(node, kinds)}, test
            for method in methods:  # a class of a backend inherits its tests
                assert f"    def {method}(" in contract, f"{mutant.id}: {test}"
