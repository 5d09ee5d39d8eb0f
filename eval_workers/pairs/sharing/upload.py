"""Uploads files to a repository of the hub in one commit: all of them or none."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from plumbline.eval_workers.chat.redirects import Redirected, refuse_elsewhere
from plumbline.warehouse.errors import (
    BadInput,
    Interrupted,
    PlumblineError,
    UsageProblem,
    disk_problems,
    failure,
)

if TYPE_CHECKING:
    from huggingface_hub import HfApi

#: Tag of our repositories: ``push`` replaces no file in a repository without it.
TAG = "plumbline"
_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_ALWAYS_THERE = ".gitattributes"
#: HTTP status if the repository changed during the upload.
_CHANGED = 412
#: Status of the hub's answer -> its meaning, and how to fix it.
_REFUSALS = {
    401: ("the hub doesn't know the token", "set HF_TOKEN to one that is valid"),
    403: ("the token may not write there", "use a token with write access to it"),
    409: ("it exists, but not for this token", "give another name, or the token of its owner"),
    _CHANGED: ("it was changed meanwhile", "run the same command again"),
}


@dataclass(frozen=True)
class Repository:
    """A repository of the hub. Raises ``UsageProblem`` for a name that isn't ``OWNER/NAME``.

    >>> str(Repository("dataset", "me/pairs")), str(Repository("model", "me/gpt"))
    ('datasets/me/pairs', 'me/gpt')
    """

    kind: Literal["model", "dataset"]
    name: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UsageProblem(f"repository {self.name!r}", "is not a name", "expected OWNER/NAME")

    @property
    def url(self) -> str:
        """Address of the repository on the hub (``HF_ENDPOINT`` or huggingface.co)."""
        from huggingface_hub import constants

        return f"{constants.ENDPOINT}/{self}"

    def __str__(self) -> str:
        return self.name if self.kind == "model" else f"{self.kind}s/{self.name}"


@dataclass(frozen=True)
class Upload:
    """Result of an upload: address of the repository or pull request, and the commit.

    ``is_new`` is false where the repository held the same files before.
    """

    url: str
    commit: str
    is_new: bool


def push(
    to: Repository,
    files: Mapping[str, bytes],
    title: str,
    outdated: Sequence[str] = (),
    *,
    private: bool = False,
) -> Upload:
    """Put files into a repository of data, as one commit.

    A missing repository is created. The card of an existing one needs the tag ``plumbline`` and
    ``title`` as its name, unless the repository is empty. Its files that match a pattern of
    ``outdated`` are deleted unless they are replaced. The token is that of the environment
    (``HF_TOKEN``) or of ``hf auth login``; ``HF_ENDPOINT`` names another hub.

    Raises ``UsageProblem`` without a token or for a repository with other content, ``BadInput``
    for a request that the hub refuses, ``Interrupted`` for an outage. After an error no file has
    changed, but a new, empty repository may exist.
    """
    from huggingface_hub import CommitOperationDelete

    with _hub(to) as api:
        info = _info(api, to)
        if info is None:
            api.create_repo(to.name, repo_type=to.kind, private=private or None)
            info = _info(api, to)
        existing = {file.rfilename for file in info.siblings or ()} - {_ALWAYS_THERE}
        card = info.card_data or {}
        is_ours = TAG in (card.get("tags") or ()) and title == card.get("pretty_name")
        if existing and not is_ours:
            fix = "give the name of another one, or of one that doesn't exist"
            raise UsageProblem(str(to), f"holds something else than {title!r}", fix)
        to_delete = [
            f for f in existing - {*files} if any(fnmatch(f, pattern) for pattern in outdated)
        ]
        deletions = [CommitOperationDelete(path, is_folder=False) for path in sorted(to_delete)]
        done = api.create_commit(
            to.name,
            [*deletions, *_additions(files)],
            commit_message=f"{title}, from Plumbline",
            repo_type=to.kind,
            parent_commit=info.sha,
        )
        return Upload(to.url, done.oid, is_new=done.oid != info.sha)


def add(
    to: Repository, files: Mapping[str, bytes], title: str, *, pull_request: bool = True
) -> Upload:
    """Add or replace files of an existing repository, as a commit or a pull request.

    An open pull request of this title and user gets another commit. Raises as :func:`push`, and
    ``UsageProblem`` if the repository doesn't exist.
    """
    with _hub(to) as api:
        info = _info(api, to)
        if info is None:
            problem, fix = "no such repository", "check its name, and that the token may read it"
            raise UsageProblem(str(to), problem, fix)
        summary = f"{title}, from Plumbline"
        number = _open_pull_request(api, to, summary) if pull_request else None
        done = api.create_commit(
            to.name,
            _additions(files),
            commit_message=summary,
            repo_type=to.kind,
            revision=f"refs/pr/{number}" if number else None,
            create_pr=pull_request and not number,
        )
        url = f"{to.url}/discussions/{number}" if number else done.pr_url or to.url
        return Upload(url, done.oid, is_new=done.oid != info.sha)


def _open_pull_request(api: HfApi, to: Repository, title: str) -> int | None:
    """Number of the open pull request with this title by the token's owner; ``None`` if none."""
    name = api.whoami()["name"]
    requests = api.get_repo_discussions(
        to.name,
        author=name,
        discussion_type="pull_request",
        discussion_status="open",
        repo_type=to.kind,
    )
    return next((pr.num for pr in requests if (pr.title, pr.author) == (title, name)), None)


def written(files: Mapping[str, bytes], directory: Path) -> list[Path]:
    """Write the files into a directory and return their paths. Raises ``BadInput`` on failure."""
    with disk_problems(directory):
        for name, content in files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)
    return [directory / name for name in files]


def _additions(files: Mapping[str, bytes]) -> list[Any]:
    from huggingface_hub import CommitOperationAdd

    return [CommitOperationAdd(path, content) for path, content in files.items()]


def _info(api: HfApi, to: Repository) -> Any:
    """Metadata of a repository; ``None`` for one that doesn't exist."""
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        return api.repo_info(to.name, repo_type=to.kind)
    except RepositoryNotFoundError:
        return None


@contextmanager
def _hub(to: Repository) -> Iterator[HfApi]:
    """Client of the hub with a token; its errors become one line, which never shows the token."""
    from huggingface_hub import HfApi, get_session, get_token
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    token = get_token()
    if not token:
        fix = "set HF_TOKEN, or run `hf auth login`"
        raise UsageProblem(str(to), "the hub wants a token to write", fix)
    has_bars = not are_progress_bars_disabled()
    disable_progress_bars()  # the files are small
    try:
        with _no_redirects(get_session()):
            yield HfApi(token=token)
    except (PlumblineError, KeyboardInterrupt):
        raise
    except Redirected as e:
        problem = f"the hub redirects requests to {e}, where nothing was sent"
        raise BadInput(str(to), problem, "if you trust it, set HF_ENDPOINT to it") from e
    except HfHubHTTPError as e:
        status = e.response.status_code
        message = _line(e.server_message or str(e), token)
        problem, fix = _REFUSALS.get(status, ("the hub refused it", "nothing was changed"))
        line = f"{problem}: {message} ({status})"
        if status == _CHANGED:
            raise Interrupted(str(to), line, fix) from e
        raise failure(e, str(to), line, fix) from e
    except Exception as e:
        # The client has many layers: connections, uploads in threads, the hub's check of a card.
        reason = e.__cause__ if isinstance(e, RuntimeError) and e.__cause__ else e
        raise failure(reason, str(to), _line(str(reason), token), "no file was changed") from e
    finally:
        if has_bars:
            enable_progress_bars()


@contextmanager
def _no_redirects(client: Any) -> Iterator[None]:
    """Refuse redirects of uploads to another host in this context; downloads may be redirected."""
    from huggingface_hub import constants

    def refuse(response: Any) -> None:
        request = response.request
        if request.method not in ("GET", "HEAD") and str(request.url).startswith(
            constants.ENDPOINT
        ):
            refuse_elsewhere(response)

    before = client.event_hooks
    client.event_hooks = {**before, "response": [*before["response"], refuse]}
    try:
        yield
    finally:
        client.event_hooks = before


def _line(message: str, token: str) -> str:
    """One-line error with the token and the queries of addresses redacted."""
    words = message.replace(token, "***").split()
    return " ".join(word.partition("?")[0] for word in words)[:300]
