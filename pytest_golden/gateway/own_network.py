"""The network of pipelines with `network: true`: the internet, without the servers of this machine.

Their supervisor has a network namespace of its own (`supervisor_child.py` makes it), and slirp4netns carries its packets
outside, as an ordinary program of this user would send them.

Source: https://github.com/rootless-containers/slirp4netns/blob/master/slirp4netns.1.md
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import tempfile
from pathlib import Path

from pytest_golden.errors import GatewayError
from pytest_golden.gateway.seal import Mounted

PROGRAM = "slirp4netns"
# Set aside for examples (RFC 5737), so that it hides no real server as 10.0.2.0/24 would. The third address answers DNS.
_RANGE, _RESOLVER = "198.51.100.0/24", "198.51.100.3"
# Clouds hand out the credentials of a machine there: by addresses of the link, and at Alibaba, Azure and Oracle.
_CLOUDS = ("169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32")
_MOST_OF_PACKET = "65520"
_READY_SECONDS = 10
_ROUTES = Path("/proc/net/fib_trie")
_OWN_ADDRESS = re.compile(r"\|-- ([0-9.]+)\n\s+(/[0-9]+) host LOCAL")
_LOOPBACK = r"(?:localhost|127\.0\.0\.1|::1)\b"
_SAYS_REFUSED = re.compile(
    rf"{_LOOPBACK}.{{0,200}}refused|refused.{{0,200}}{_LOOPBACK}|ConnectionRefusedError", re.IGNORECASE
)
_MOST_OF_TEXT = 16 << 10
_RESOLVER_FILE = "/etc/resolv.conf"


def find_closed_addresses() -> tuple[str, ...]:
    """List what must not be reached: the addresses of this machine, and those where clouds keep credentials.

    Raises:
        GatewayError: the addresses of this machine cannot be read.
    """
    try:
        found = parse_own_addresses(_ROUTES.read_text())
    except OSError as error:
        raise GatewayError(f"{_ROUTES} cannot be read: {error.strerror}") from error
    return (*found, *_CLOUDS)


def parse_own_addresses(table: str) -> tuple[str, ...]:
    """Return this machine's addresses, as ranges without loopback, from the text of /proc/net/fib_trie."""
    found = (address + length for address, length in _OWN_ADDRESS.findall(table))
    return tuple(dict.fromkeys(one for one in found if not one.startswith("127.")))


class NetworkHelper:
    """slirp4netns at work for the network of one process. It ends when this object, or we, are gone.

    Raises:
        GatewayError: it is not installed, or it failed.
    """

    def __init__(self, pid: int) -> None:
        program = shutil.which(PROGRAM)
        if program is None:
            raise GatewayError(f"{PROGRAM} is not installed")
        (ends, self._held), (is_ready, tells_ready) = os.pipe(), os.pipe()
        with tempfile.TemporaryFile() as said, os.fdopen(is_ready, "rb") as ready:
            self._process = subprocess.Popen(
                (
                    *(program, "--configure", "--disable-host-loopback", "--cidr", _RANGE, "--enable-seccomp"),
                    # Large packets cost a program like this as much as small ones.
                    *("--mtu", _MOST_OF_PACKET),
                    # Only in the network of root, which has a root, it can give up its rights.
                    *(["--enable-sandbox"] if os.getuid() == 0 else []),
                    *("--exit-fd", str(ends), "--ready-fd", str(tells_ready)),
                    *("--userns-path", f"/proc/{pid}/ns/user", str(pid), "tap0"),
                ),
                pass_fds=(ends, tells_ready),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=said,
                start_new_session=True,
            )
            os.close(ends)
            os.close(tells_ready)
            if not select.select([ready], [], [], _READY_SECONDS)[0] or not ready.read(1):
                self.close()
                said.seek(0)
                lines = said.read().decode("utf-8", "replace").strip().splitlines()
                # The last line is often only `child failed(1)`: the cause is in the one before it.
                told = "; ".join([line for line in lines if not line.startswith("WARNING")][-2:])
                raise GatewayError(f"{PROGRAM} failed: {told or 'it said nothing'}")

    @property
    def is_alive(self) -> bool:
        """Tell whether it still carries packets."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it; safe to call twice."""
        if self._held >= 0:
            os.close(self._held)
            self._held = -1
            self._process.kill()
            self._process.wait()


def explain_refused(*texts: str) -> tuple[str, ...]:
    """Say what to declare if these texts tell that a server of this machine was asked. Only their ends are read."""
    if not any(_SAYS_REFUSED.search(text[-_MOST_OF_TEXT:]) for text in texts):
        return ()
    return ("a pipeline has a loopback of its own: declare `network: host` if it needs a server of this machine",)


def write_resolver(folder: Path) -> Path:
    """Write what leads name lookups to the helper, with the other settings of this machine's; return the file."""
    try:
        lines = Path(_RESOLVER_FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    kept = [line for line in lines if line.split()[:1] != ["nameserver"]]
    file = folder / "resolv.conf"
    file.write_text("\n".join([f"nameserver {_RESOLVER}", *kept, ""]), encoding="utf-8")
    return file


def mount_resolver(file: Path) -> list[Mounted]:
    """Return the mount that shows it; none where the system has no such file."""
    place = os.path.realpath(_RESOLVER_FILE)
    return [Mounted(place, ("--ro-bind", str(file), place))] if os.path.exists(place) else []
