"""Redirects: requests with texts or keys go only to the server that the user named.

HTTP clients follow a redirect to any host and send it the same texts. Downloads, which carry no
data of the user, are not checked here: the hub redirects them to its network of caches.
"""

from __future__ import annotations

from typing import Any


class Redirected(Exception):
    """Raised when a server redirects a request to another server; the text is the new address."""


def refuse_elsewhere(response: Any) -> None:
    """Raise ``Redirected`` for a response of httpx that leads to another host, port or protocol.

    As a hook on responses it is called before a redirect is followed.
    """
    if not response.has_redirect_location:
        return
    sent = response.request.url
    target = sent.join(response.headers["Location"])
    if (target.scheme, target.host, target.port) != (sent.scheme, sent.host, sent.port):
        host = target.netloc.decode().rpartition("@")[2]
        raise Redirected(f"{target.scheme}://{host}")
