"""What a hub does with uploads: repositories, large files, commits, pull requests."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

#: Status, body, headers.
Answer = tuple[int, bytes, dict[str, str]]
Files = dict[str, bytes]
_REPOSITORY = r"(models|datasets)/([^/]+/[^/]+)"


class Died(Exception):
    """The server ends the connection without an answer."""


@dataclass
class Uploads:
    """Repositories as ``kind/OWNER/NAME``, each a list of commits: hash and all files.

    The newest commit of a data set lies at ``top/kind/OWNER/NAME/HASH``.

    Attributes:
        tokens: what each may do: ``read``, or ``write`` as well.
        dies_at: part of an address at which every connection ends.
        elsewhere: where every POST is sent on to.
        refused: part of an address -> status of the answer there, and what it says.
        pulls: repository and files of each pull request; ``titles`` by number, those ``closed``.
    """

    top: Path
    tokens: dict[str, str] = field(default_factory=lambda: {"hf_writes": "write"})
    dies_at: str = ""
    elsewhere: str = ""
    refused: dict[str, tuple[int, str]] = field(default_factory=dict)
    commits: dict[str, list[tuple[str, Files]]] = field(default_factory=dict)
    pulls: list[tuple[str, Files]] = field(default_factory=list)
    titles: dict[int, str] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    large: Files = field(default_factory=dict)
    private: set[str] = field(default_factory=set)
    tokens_seen: set[str] = field(default_factory=set)
    url: str = ""

    def files(self, name: str) -> Files:
        """What the newest commit of a repository holds."""
        return self.commits[name][-1][1]

    def make(self, name: str, files: Mapping[str, bytes] | None = None) -> None:
        """Make a repository, as somebody else did."""
        self.commits[name] = []
        self._commit(name, {".gitattributes": b"*.parquet filter=lfs\n", **(files or {})})

    def _commit(self, name: str, files: Files) -> str:
        made = hashlib.sha1(f"{name} {len(self.commits[name])}".encode()).hexdigest()
        where = self.top / name / made
        for path, content in files.items():
            (where / path).parent.mkdir(parents=True, exist_ok=True)
            (where / path).write_bytes(content)
        self.commits[name].append((made, files))
        return made

    def directory(self, name: str) -> Path | None:
        """Where the newest files of a repository lie; ``None`` for one that there isn't."""
        return self.top / name / self.commits[name][-1][0] if name in self.commits else None

    def answer(self, method: str, address: str, headers: Any, body: bytes) -> Answer | None:
        """The answer to a request about uploads; ``None`` for any other request."""
        parts = urlsplit(address)
        path, query = parts.path, parse_qs(parts.query)
        if self.dies_at and self.dies_at in path:
            raise Died
        if self.elsewhere and method == "POST":
            return 307, b"", {"Location": f"{self.elsewhere}{address}"}
        for place, (status, said) in self.refused.items():
            if place in path:
                return status, json.dumps({"error": said}).encode(), {"X-Error-Message": said}
        if token := headers.get("Authorization", "").removeprefix("Bearer "):
            self.tokens_seen.add(token)
            if token not in self.tokens:
                said = "Invalid credentials in Authorization header"
                return 401, json.dumps({"error": said}).encode(), {"X-Error-Message": said}
        if method == "GET" and (what := re.fullmatch(f"/api/{_REPOSITORY}(/revision/.*)?", path)):
            return self._info(f"{what[1]}/{what[2]}")
        if method == "GET" and path == "/api/whoami-v2":
            return 200, json.dumps({"type": "user", "name": "me"}).encode(), {}
        if method == "GET" and (what := re.fullmatch(f"/api/{_REPOSITORY}/discussions", path)):
            return self._discussions(f"{what[1]}/{what[2]}", query)
        if method == "PUT" and path.startswith("/lfs/"):
            assert hashlib.sha256(body).hexdigest() == path[5:]
            self.large[path[5:]] = body
            return 200, b"", {}
        if method != "POST" or "paths-info" in path:
            return None
        if path == "/api/validate-yaml":
            return self._validated(json.loads(body)["content"])
        if self.tokens.get(token) != "write":
            said = "You don't have the rights to write here"
            return 403, json.dumps({"error": said}).encode(), {"X-Error-Message": said}
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        if path.endswith(".git/info/lfs/objects/batch"):
            return self._batch(json.loads(body))
        place = f"/api/{_REPOSITORY}/(preupload|commit)/(?:main|refs%2Fpr%2F([0-9]+))"
        if what := re.fullmatch(place, path):
            name, number = f"{what[1]}/{what[2]}", int(what[4] or 0)
            if what[3] == "preupload":
                return self._preupload(name, json.loads(body), number)
            return self._received(name, body, number, is_pull="create_pr" in query)
        return None

    def _info(self, name: str) -> Answer:
        if name not in self.commits:
            return 404, b"{}", {"X-Error-Code": "RepoNotFound"}
        sha, files = self.commits[name][-1]
        info: dict[str, Any] = {"_id": "0", "id": name.partition("/")[2], "sha": sha}
        info["private"] = name in self.private
        info["siblings"] = [{"rfilename": path} for path in files]
        if front := _front(files.get("README.md", b"").decode()):
            info["cardData"] = front
        return 200, json.dumps(info).encode(), {}

    def _validated(self, text: str) -> Answer:
        try:
            front = _front(text)
        except yaml.YAMLError as e:
            return 400, json.dumps({"errors": [{"message": str(e)}]}).encode(), {}
        said = [] if front else [{"message": "empty or missing yaml metadata in repo card"}]
        return 200, json.dumps({"errors": [], "warnings": said}).encode(), {}

    def _create(self, asked: dict[str, Any]) -> Answer:
        kind = f"{asked.get('type', 'model')}s"
        name = f"{kind}/{asked['organization']}/{asked['name']}"
        if name in self.commits:
            said = "You already created this repo"
            return 409, json.dumps({"error": said}).encode(), {"X-Error-Message": said}
        self.make(name)
        if asked.get("visibility") == "private":
            self.private.add(name)
        return 200, json.dumps({"url": f"{self.url}/{name}", "name": name}).encode(), {}

    def _preupload(self, name: str, asked: dict[str, Any], number: int) -> Answer:
        if name not in self.commits:
            return 404, b"{}", {"X-Error-Code": "RepoNotFound"}
        found, files = [], self.pulls[number - 1][1] if number else self.files(name)
        for file in asked["files"]:
            path, is_large = file["path"], file["path"].endswith(".parquet")
            one = {"path": path, "uploadMode": "lfs" if is_large else "regular"}
            if path in files:
                one["oid"] = _oid(files[path], is_large)
            found.append({**one, "shouldIgnore": False})
        return 200, json.dumps({"files": found}).encode(), {}

    def _batch(self, asked: dict[str, Any]) -> Answer:
        objects = []
        for one in asked["objects"]:
            upload = {"upload": {"href": f"{self.url}/lfs/{one['oid']}"}}
            known = one["oid"] in self.large
            objects.append({**one, **({} if known else {"actions": upload})})
        return 200, json.dumps({"transfer": "basic", "objects": objects}).encode(), {}

    def _discussions(self, name: str, query: dict[str, list[str]]) -> Answer:
        assert (query["author"], query["type"]) == (["me"], ["pull_request"])
        open_ones = {n: title for n, title in self.titles.items() if n not in self.closed}
        found = [
            {
                **{"title": title, "num": number, "status": "open", "isPullRequest": True},
                **{"author": {"name": "me"}, "createdAt": "2026-11-23T00:00:00.000Z"},
                "repo": {"name": name.partition("/")[2], "type": name.partition("s/")[0]},
            }
            for number, title in open_ones.items()
            if self.pulls[number - 1][0] == name
        ]
        said = {"discussions": found, "count": len(found), "start": 0}
        return 200, json.dumps(said).encode(), {}

    def _received(self, name: str, body: bytes, number: int, *, is_pull: bool) -> Answer:
        lines = [json.loads(line) for line in body.splitlines()]
        header = lines[0]["value"]
        files = dict(self.pulls[number - 1][1] if number else self.files(name))
        if header.get("parentCommit") not in (None, self.commits[name][-1][0]):
            said = "A commit has happened since. Please refresh and try again."
            return 412, json.dumps({"error": said}).encode(), {"X-Error-Message": said}
        for line in lines[1:]:
            value, path = line["value"], line["value"]["path"]
            if line["key"] == "file":
                files[path] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[path] = self.large[value["oid"]]
                assert len(files[path]) == value["size"]
            else:
                assert line["key"] == "deletedFile"
                del files[path]
        made = hashlib.sha1(body).hexdigest()
        if is_pull:
            self.pulls.append((name, files))
            self.titles[len(self.pulls)] = header["summary"]
        elif number:
            self.pulls[number - 1] = (name, files)
        else:
            made = self._commit(name, files)
        url = f"{self.url}/{name.removeprefix('models/')}"
        pull = f"{url}/discussions/{len(self.pulls)}" if is_pull else None
        said_of = {"commitUrl": f"{url}/commit/{made}", "commitOid": made, "pullRequestUrl": pull}
        return 200, json.dumps(said_of).encode(), {}


def _front(text: str) -> dict[str, Any]:
    """The metadata at the start of a card."""
    found = re.match(r"---\n(.*?)\n---\n", text, re.S)
    return yaml.safe_load(found[1]) if found else {}


def _oid(content: bytes, is_large: bool) -> str:
    """The name that git gives to a file, or the hash of a large one."""
    if is_large:
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
