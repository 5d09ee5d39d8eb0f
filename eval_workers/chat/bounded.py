"""Limits on a server's response: its size, no compression, no redirect to another host.

Imports httpx2, the HTTP client of the package openai: import this module only where openai is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2

#: Most bytes of a reply; the longest replies of chat models have a few hundred thousand bytes.
LARGEST = 16 << 20
#: Header that forbids compression: a kilobyte may unpack to gigabytes.
UNPACKED = {"Accept-Encoding": "identity"}


class TooLarge(Exception):
    """The reply is too large or compressed and isn't read to its end; the text is the reason."""


class Redirected(Exception):
    """A server redirects a request to another server; the text is the new address."""


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: Any, largest: int) -> None:
        self._stream, self._largest = stream, largest

    async def __aiter__(self) -> AsyncIterator[bytes]:
        n_bytes = 0
        async for part in self._stream:
            n_bytes += len(part)
            if n_bytes > self._largest:
                raise TooLarge(f"the reply has more than {self._largest:,} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


async def bound(response: httpx2.Response) -> None:
    """Response hook of the HTTP client: checks a response before its body is read.

    Raises ``Redirected`` if the client would send the texts and the key on to another host, port
    or protocol, and ``TooLarge`` for a compressed response. Reading more than ``LARGEST`` bytes of
    the body raises ``TooLarge`` too.
    """
    if response.has_redirect_location:
        sent = response.request.url
        target = sent.join(response.headers["Location"])
        if (target.scheme, target.host, target.port) != (sent.scheme, sent.host, sent.port):
            host = target.netloc.decode().rpartition("@")[2]
            raise Redirected(f"{target.scheme}://{host}")
    encoding = response.headers.get("Content-Encoding", "identity")
    if encoding.strip().lower() not in ("", "identity"):
        raise TooLarge(f"the reply is compressed ({encoding}), which was not requested")
    response.stream = _Bounded(response.stream, LARGEST)
