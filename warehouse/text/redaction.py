"""Redaction of secrets, which servers and libraries repeat in their messages."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from urllib.parse import quote

HIDDEN = "***"
#: Least length of a secret; shorter values are plain words, or dummies (`EMPTY`).
_SHORTEST = 8
#: Names of environment variables that hold a secret: of S3, Azure, the hub, chat servers, ...
_SECRET = re.compile(
    r"(?:^|_)(?:(?:API)?KEYS?|TOKENS?|SECRETS?|PASSPHRASE|SAS|CONNECTION_STRING)(?:_|$)|PASSWORD"
)
#: Exceptions: the names that match both patterns hold a path or an address.
_PLACE = re.compile(r"_(?:FILE|PATH|URI|URL|ENDPOINT|DIR)$")
_SECRET_PARAMETERS = (
    r"x-(?:amz|goog)-(?:signature|credential|security-token)|sig|signature|(?:access[_-]?)?token|"
    r"(?:api[_-]?)?key|password|passwd|secret|awsaccesskeyid"
)
_FORMS = (
    # user:password@host. A user name without a password counts as a secret only on the web:
    # abfs://container@account is a place.
    re.compile(r"(?<=://)[^\s/?#@:]*:[^\s/?#]*(?=@)|(?<=http://)[^\s/?#]+(?=@)"),
    re.compile(r"(?<=https://)[^\s/?#]+(?=@)"),
    re.compile(rf"(?<=[?&;])((?:{_SECRET_PARAMETERS})=)[^\s&\"'<>)]+", re.I),
    re.compile(r"\b((?:AccountKey|SharedAccessSignature|Credential|Signature)=)[^\s,;&\"'<>)]+"),
    re.compile(r"(authorization['\"]?\s*[:=]\s*['\"]?(?:bearer|basic) )[\w.~+/=-]{8,}", re.I),
    # The header's name is missing: the match could be prose, such as "Basic tokenizer".
    re.compile(r"\b((?:Bearer|Basic) )(?=\S*\d|\S{24})[\w.~+/=-]{8,}"),
    re.compile(r"(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?=-----END|\Z)", re.S),
)


def hidden(text: str, environment: Mapping[str, str] | None = None) -> str:
    """The text with ``***`` instead of each secret; idempotent.

    Secrets are credentials in addresses and headers, and the values of variables with a name like
    ``HF_TOKEN``: plain, percent-encoded, escaped as in JSON, or cut off by the end of the text.
    """
    for name, value in (os.environ if environment is None else environment).items():
        if _SECRET.search(name.upper()) and not _PLACE.search(name.upper()):
            for spelling in spellings(value.strip()):
                text = _without(text, spelling)
    for form in _FORMS:
        text = form.sub(lambda match: (match[1] if match.re.groups else "") + HIDDEN, text)
    return text


def spellings(secret: str) -> tuple[str, ...]:
    """Spellings of a secret, the longest first; empty for a value that is too short."""
    if len(secret) < _SHORTEST:
        return ()
    forms = {secret, quote(secret, safe=""), quote(secret), json.dumps(secret)[1:-1]}
    return tuple(sorted(forms, key=len, reverse=True))


def _without(text: str, secret: str) -> str:
    text = text.replace(secret, HIDDEN)
    cut = next((n for n in range(len(secret), _SHORTEST - 1, -1) if text.endswith(secret[:n])), 0)
    return text[:-cut] + HIDDEN if cut else text
