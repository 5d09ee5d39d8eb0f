"""Limits on a server's response: its size, and no compression.

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


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        n_bytes = 0
        async for part in self._stream:
            n_bytes += len(part)
            if n_bytes > LARGEST:
                raise TooLarge(f"the reply has more than {LARGEST:,} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()


async def bound(response: httpx2.Response) -> None:
    """Response hook of the HTTP client: raise ``TooLarge`` for a compressed or too large body."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise TooLarge(f"the reply is compressed ({encoding}), which was not requested")
    response.stream = _Bounded(response.stream)
