"""The addresses that the processes of a session listen on, as the kernel has them."""

from __future__ import annotations

import ipaddress
import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

_LISTEN = "0A"


def listening(session: int) -> set[str]:
    """Addresses of the listening TCP sockets that processes of a session hold."""
    inodes: set[str] = set()
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            held = [*(entry / "fd").iterdir()] if os.getsid(int(entry.name)) == session else []
        except OSError:
            continue  # it has ended meanwhile
        for link in held:
            with suppress(OSError):  # closed meanwhile
                inodes.add(os.readlink(link).removeprefix("socket:[").removesuffix("]"))
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for row in Path(table).read_text().splitlines()[1:] if Path(table).exists() else ():
            fields = row.split()
            if fields[3] == _LISTEN and fields[9] in inodes:
                found.add(_address(fields[1].split(":")[0]))
    return found


def _address(text: str) -> str:
    """The kernel writes words of four bytes, each in the machine's order."""
    words = [struct.pack("=I", int(text[i : i + 8], 16)) for i in range(0, len(text), 8)]
    return str(ipaddress.ip_address(b"".join(words)))


def is_loopback(address: str) -> bool:
    """Whether only this machine can reach an address."""
    found = ipaddress.ip_address(address)
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback


def listener(address: str) -> socket.socket:
    """A socket that listens at a port of its own."""
    made = socket.socket()
    made.bind((address, 0))
    made.listen()
    return made
