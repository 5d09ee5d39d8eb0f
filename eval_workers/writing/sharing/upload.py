"""Files to a repository of the hub, in one commit: all of them are there afterwards, or none."""

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
    MissingComponent,
    PlumblineError,
    UsageProblem,
    disk_problems,
    failure,
)

if TYPE_CHECKING:
    from huggingface_hub import HfApi

#: What makes a repository one of ours: without this tag, nothing in it is replaced.
TAG = "plumbline"
_NAME = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)
_ALWAYS_THERE = ".gitattributes"
_CHANGED = 412
#: What a status of the hub means, and what to do.
_REFUSALS = {
    401: ("the hub doesn't know the token", "set HF_TOKEN to one that is valid"),
    403: ("the token may not write there", "use a token with write access to it"),
    409: ("it exists, but not for this token", "give another name, or the token of its owner"),
    _CHANGED: ("it was changed meanwhile", "run the same command again"),
}


@dataclass(frozen=True)
class Repository:
    """A repository of the hub: its kind, and its name as ``OWNER/NAME``; else ``UsageProblem``.

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
        """Its address on the hub of the environment."""
        from huggingface_hub import constants

        return f"{constants.ENDPOINT}/{self}"

    def __str__(self) -> str:
        return self.name if self.kind == "model" else f"{self.kind}s/{self.name}"


@dataclass(frozen=True)
class Pushed:
    """Where the files are: the repository or the pull request, and the commit.

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
) -> Pushed:
    """Make a repository of data hold these files, as one commit.

    A new one is created. An old one has to be ours and about the same: its card has the tag
    ``plumbline`` and ``title`` as its name. Its files that match a pattern of ``outdated`` go,
    unless they are among the new ones. The token is that of the environment (``HF_TOKEN``) or of
    ``hf auth login``; ``HF_ENDPOINT`` names another hub.

    Raises ``UsageProblem`` without a token or for a repository that holds anything else,
    ``BadInput`` for what the hub refuses, ``Interrupted`` for an outage: no file has changed then.
    """
    from huggingface_hub import CommitOperationDelete

    with _hub(to) as api:
        found = _info(api, to)
        if found is None:
            api.create_repo(to.name, repo_type=to.kind, private=private or None)
            found = _info(api, to)
        held = {file.rfilename for file in found.siblings or ()} - {_ALWAYS_THERE}
        if held and not _is_ours(found, title):
            fix = "give the name of another one, or of one that doesn't exist"
            raise UsageProblem(str(to), f"holds something else than {title!r}", fix)
        gone = [f for f in held - {*files} if any(fnmatch(f, pattern) for pattern in outdated)]
        deletions = [CommitOperationDelete(path, is_folder=False) for path in sorted(gone)]
        done = api.create_commit(
            to.name,
            [*deletions, *_additions(files)],
            commit_message=f"{title}, from Plumbline",
            repo_type=to.kind,
            parent_commit=found.sha,
        )
        return Pushed(to.url, done.oid, is_new=done.oid != found.sha)


def add(
    to: Repository, files: Mapping[str, bytes], title: str, *, pull_request: bool = True
) -> Pushed:
    """Add files to a repository that exists, or replace them there: as a pull request or commit.

    A pull request of the same title that is still open gets another commit instead of a new one.

    Raises as :func:`push`, and ``UsageProblem`` where there is no such repository.
    """
    with _hub(to) as api:
        found = _info(api, to)
        if found is None:
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
        return Pushed(url, done.oid, is_new=done.oid != found.sha)


def _open_pull_request(api: HfApi, to: Repository, title: str) -> int | None:
    """The number of the owner of the token's open pull request of a title, if there is one."""
    name = api.whoami()["name"]
    found = api.get_repo_discussions(
        to.name,
        author=name,
        discussion_type="pull_request",
        discussion_status="open",
        repo_type=to.kind,
    )
    return next((one.num for one in found if (one.title, one.author) == (title, name)), None)


def written(files: Mapping[str, bytes], directory: Path) -> list[Path]:
    """Write the same files to a directory instead. Raises ``BadInput`` when it can't be written."""
    with disk_problems(directory):
        for name, content in files.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_bytes(content)
    return [directory / name for name in files]


def _additions(files: Mapping[str, bytes]) -> list[Any]:
    from huggingface_hub import CommitOperationAdd

    return [CommitOperationAdd(path, content) for path, content in files.items()]


def _info(api: HfApi, to: Repository) -> Any:
    """What the hub knows of a repository; ``None`` for one that it hasn't."""
    from huggingface_hub.errors import RepositoryNotFoundError

    try:
        return api.repo_info(to.name, repo_type=to.kind)
    except RepositoryNotFoundError:
        return None


def _is_ours(found: Any, title: str) -> bool:
    card = found.card_data or {}
    return TAG in (card.get("tags") or ()) and title == card.get("pretty_name")


@contextmanager
def _hub(to: Repository) -> Iterator[HfApi]:
    """A client with a token; what goes wrong with it is one line, which never shows the token."""
    try:
        from huggingface_hub import HfApi, get_session, get_token
        from huggingface_hub.errors import HfHubHTTPError
        from huggingface_hub.utils.tqdm import (
            are_progress_bars_disabled,
            disable_progress_bars,
            enable_progress_bars,
        )
    except ModuleNotFoundError as e:
        fix = "pip install 'plumbline[cloud]'"
        raise MissingComponent("huggingface_hub", "is not installed", fix) from e
    token = get_token()
    if not token:
        fix = "set HF_TOKEN, or run `hf auth login`"
        raise UsageProblem(str(to), "the hub wants a token to write", fix)
    has_bars = not are_progress_bars_disabled()
    disable_progress_bars()  # its files are small
    try:
        with _staying(get_session()):
            yield HfApi(token=token)
    except (PlumblineError, KeyboardInterrupt):
        raise
    except Redirected as e:
        problem = f"the hub sends requests on to {e}, which nothing was sent to"
        raise BadInput(str(to), problem, "if you trust it, set HF_ENDPOINT to it") from e
    except HfHubHTTPError as e:
        status = e.response.status_code
        said = e.server_message or str(e)
        problem, fix = _REFUSALS.get(status, ("the hub refused it", "nothing was changed"))
        line = f"{problem}: {_line(said, token)} ({status})"
        if status == _CHANGED:
            raise Interrupted(str(to), line, fix) from e
        raise failure(e, str(to), line, fix) from e
    except Exception as e:
        # A client of many layers: connections, uploads in threads, what the hub says of a card.
        reason = e.__cause__ if isinstance(e, RuntimeError) and e.__cause__ else e
        raise failure(reason, str(to), _line(str(reason), token), "no file was changed") from e
    finally:
        if has_bars:
            enable_progress_bars()


@contextmanager
def _staying(client: Any) -> Iterator[None]:
    """Have what is sent to the hub go to no other host meanwhile; downloads may."""
    from huggingface_hub import constants

    def stay(response: Any) -> None:
        request = response.request
        if request.method not in ("GET", "HEAD") and str(request.url).startswith(
            constants.ENDPOINT
        ):
            refuse_elsewhere(response)

    before = client.event_hooks
    client.event_hooks = {**before, "response": [*before["response"], stay]}
    try:
        yield
    finally:
        client.event_hooks = before


def _line(said: str, token: str) -> str:
    """What the hub or its client said, without the token and the queries of addresses."""
    words = " ".join(said.replace(token, "***").split())
    return " ".join(word.partition("?")[0] for word in words.split())[:300]
