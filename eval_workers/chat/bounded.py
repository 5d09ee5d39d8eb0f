"""What a server's response may be: of a largest size, not packed, and not sent on to another host.

Imports the HTTP client of the package openai, so it is imported only where that is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx2

from plumbline.eval_workers.chat.redirects import refuse_elsewhere

#: Bytes of a reply; the longest that a chat model writes has some hundred thousand.
LARGEST = 16 << 20
#: Said by a client that unpacks nothing: a packed reply of a kilobyte may hold gigabytes.
UNPACKED = {"Accept-Encoding": "identity"}


class TooLarge(Exception):
    """A reply that is not read to its end; its text says why."""


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
    """A hook on every response, before any of its body is read.

    Raises ``TooLarge`` for one that is packed, which was not asked for, and while it is read from
    the byte on that is one too many; ``Redirected`` as ``refuse_elsewhere``.
    """
    refuse_elsewhere(response)
    packed = response.headers.get("Content-Encoding", "identity")
    if packed.strip().lower() not in ("", "identity"):
        raise TooLarge(f"the reply is packed ({packed}), which was not asked for")
    response.stream = _Bounded(response.stream, LARGEST)
