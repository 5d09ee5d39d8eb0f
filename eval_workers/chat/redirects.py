"""Redirects: what carries texts or keys goes to the server that the user named, and to no other.

Clients of HTTP follow a redirect to any host and send it the same texts. Downloads, which carry
nothing of the user's, are not looked at here: the hub sends them to its network of caches.
"""

from __future__ import annotations

from typing import Any


class Redirected(Exception):
    """A request that its server sends on to another one; its text is that one's address."""


def refuse_elsewhere(response: Any) -> None:
    """Raise ``Redirected`` for a response of httpx that leads to another host, port or protocol.

    As a hook on responses it is called before a redirect is followed.
    """
    if not response.has_redirect_location:
        return
    asked = response.request.url
    to = asked.join(response.headers["Location"])
    if (to.scheme, to.host, to.port) != (asked.scheme, asked.host, asked.port):
        host = to.netloc.decode().rpartition("@")[2]
        raise Redirected(f"{to.scheme}://{host}")
