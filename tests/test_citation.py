"""CITATION.cff and codemeta.json say of Plumbline what pyproject.toml says."""

from __future__ import annotations

import json
from typing import Any

import yaml

from tests.conftest import REPOSITORY
from tests.test_extras import PROJECT

CFF: dict[str, Any] = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))
META: dict[str, Any] = json.loads((REPOSITORY / "codemeta.json").read_text(encoding="utf-8"))


def test_the_software_is_described_alike() -> None:
    facts = [PROJECT["version"], PROJECT["description"], PROJECT["keywords"]]
    assert [CFF["version"], CFF["abstract"], CFF["keywords"]] == facts
    assert [META["version"], META["description"], META["keywords"]] == facts
    assert META["identifier"] == PROJECT["name"] and META["name"] == CFF["title"]
    assert META["license"] == f"https://spdx.org/licenses/{CFF['license']}"
    assert CFF["license"] == PROJECT["license"]
    assert META["runtimePlatform"] == f"Python {PROJECT['requires-python']}"
    assert PROJECT["authors"] == CFF["authors"] == [{"name": a["name"]} for a in META["author"]]


def test_the_papers_are_those_of_the_citation() -> None:
    cited = [
        (paper["title"], str(paper["year"]), [tuple(a.values()) for a in paper["authors"]])
        for paper in CFF["references"]
    ]
    assert len(cited) == 3
    assert cited == [
        (
            paper["name"],
            paper["datePublished"],
            [(author["familyName"], author["givenName"]) for author in paper["author"]],
        )
        for paper in META["referencePublication"]
    ]


def test_the_changelog_has_the_version() -> None:
    text = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{PROJECT['version']}] - " in text
