"""Redirects: requests with texts or keys go only to the server that the user named.

HTTP clients follow a redirect to any host and send it the same texts. Downloads, which carry no
data of the user, are not checked here: the hub redirects them to its network of caches.
"""

from __future__ import annotations

from typing import Any


class Redirected(Exception):
    """A request that its server redirects to another one; the text is that one's address."""


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
