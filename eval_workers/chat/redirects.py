"""Redirects: requests with texts or keys go only to the server that the user named.

An HTTP client follows a redirect to any host and sends it the same texts. Downloads are not checked
here: they carry no data of the user, and the hub redirects them to its network of caches.
"""

from __future__ import annotations

from typing import Any


class Redirected(Exception):
    """A server redirects a request to another server; the text is the new address."""


def refuse_elsewhere(response: Any) -> None:
    """Raise ``Redirected`` if an httpx response redirects to another host, port or protocol.

    A response hook: the HTTP client calls it before it follows a redirect.
    """
    if not response.has_redirect_location:
        return
    sent = response.request.url
    target = sent.join(response.headers["Location"])
    if (target.scheme, target.host, target.port) != (sent.scheme, sent.host, sent.port):
        host = target.netloc.decode().rpartition("@")[2]
        raise Redirected(f"{target.scheme}://{host}")
