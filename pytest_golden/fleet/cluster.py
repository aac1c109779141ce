"""Connect to a Dask cluster, send errands to its workers, and notice in bounded time when one of them is lost."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import pickletools
import re
import sys
import threading
import warnings
from contextlib import suppress
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import dask
from dask.utils import parse_timedelta
from distributed import Client
from distributed.protocol.pickle import dumps
from distributed.security import Security
from distributed.utils import LoopRunner, sync

from pytest_golden.clock import monotonic_seconds
from pytest_golden.errors import GatewayError, SettingsError
from pytest_golden.regression.wording import count_of
from pytest_golden.settings import find_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from distributed import Future

_PYTHON, PACKAGES = "Python", ("pytest-golden-projects", "distributed")
_CONNECT_SECONDS = 3.0
_ANSWER_SECONDS = 10.0
_PULSE_SECONDS = 2.0
_WORKERS_KEY = "distributed.scheduler.no-workers-timeout"
_WORKERS_SECONDS = 300.0
_CALL_SECONDS = 120.0
#: How the cluster may write what is read here; Dask's other ways are pickles.
_PLAIN = ["msgpack"]
_THREAD = "golden-fleet"
_KILLED = "KilledWorker"
_CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
DEFAULT_PORT = 8786
_SCHEMES = {"dask": "tcp", "dask+tls": "tls"}
_URL_FORM = re.compile(
    r"(?P<scheme>dask(?:\+tls)?)://(?P<host>\[[0-9A-Fa-f:.]+\]|[^:/\[\]@\s]+)(?::(?P<port>\d{1,5}))?/?"
)


class Cluster:
    """A connection to the cluster at `url`. `say` receives messages for a person who waits."""

    def __init__(self, client: Client, url: str, say: Callable[[str], None]) -> None:
        self._greet: Callable[[tuple[str, ...]], None] | None = None
        self._tend: Callable[[], None] | None = None
        self._client = client
        self._url = url
        self._say = say
        self._known: frozenset[str] = frozenset()
        self._unfit: dict[str, str] = {}
        self._pulsed = 0.0
        self._alone_since: float | None = None
        self._is_gone = False
        told = dask.config.get(_WORKERS_KEY, default=None)
        self._workers_seconds = _WORKERS_SECONDS if told is None else parse_timedelta(told)

    @classmethod
    def connect(cls, url: str, address: str, say: Callable[[str], None]) -> Cluster:
        """Connect to a scheduler and require the versions of this machine everywhere; `url` is the address to show.

        Raises:
            SettingsError: no scheduler answers, or it or one of its workers has other versions.
        """
        # We report the loss of a scheduler ourselves, for each project that it concerns.
        for name in ("distributed", "distributed.client"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        _require_certificates(url, address)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                client = _make_client(address)
        except (OSError, RuntimeError, ValueError, TypeError) as error:
            raise SettingsError(
                f"--golden-gateway: no Dask scheduler answers at {url} ({_first_line(error)}): is it running, is this its "
                "address, and does it want TLS (dask+tls://)?"
            ) from None
        cluster = cls(client, url, say)
        try:
            cluster._require_likeness()
        except GatewayError as error:
            cluster.close()
            raise SettingsError(str(error)) from None
        return cluster

    def attend(self, greet: Callable[[tuple[str, ...]], None], tend: Callable[[], None]) -> None:
        """Call `greet` with new workers from now on, and `tend` every two seconds, while waiting."""
        self._greet, self._tend = greet, tend

    def describe(self) -> str:
        """Return how many workers and threads the fleet has now."""
        workers = self._list_workers()
        threads = sum(workers.values())
        return f"{count_of(len(workers), 'worker')} with {count_of(threads, 'thread')} at {self._url}"

    def submit(
        self, function: Callable[..., bytes], *arguments: object, read: Callable[[Any], Any], key: str, priority: int
    ) -> Errand:
        """Send an errand, preferably to workers that were not left out; an idle one may still take it over. `read` reads its answer.

        Raises:
            GatewayError: the scheduler is gone.
        """
        self._require_presence()
        # Workers are named only if some are left out: the scheduler spreads tasks better without names.
        to = {"workers": self.list_fit(), "allow_other_workers": True} if self._unfit else {}
        try:
            future = self._client.submit(function, *arguments, key=key, priority=priority, pure=False, **to)
        except Exception:
            raise self._lose() from None
        return Errand(future, read)

    def wait(self, errand: Errand) -> None:
        """Wait until an errand has ended, with an answer or an error.

        Raises:
            GatewayError: the scheduler is gone, or there was no worker for too long.
        """
        while not errand.wait(max(0.0, self._pulsed + _PULSE_SECONDS - monotonic_seconds())):
            self._require_presence()
            self._look_around()
        if errand.was_cancelled:
            self._require_presence()

    def wait_for_worker(self) -> None:
        """Wait until there is a worker that was not left out.

        Raises:
            GatewayError: the scheduler is gone, or there was no such worker for too long.
        """
        while not self.list_fit():
            self._look_around()
            threading.Event().wait(_PULSE_SECONDS)

    def call(
        self, function: Callable[..., object], *arguments: object, workers: Iterable[str] | None = None
    ) -> dict[str, Any]:
        """Call a function on workers while they run tasks; return by worker its result. Workers that fail are left out.

        Raises:
            GatewayError: the scheduler is gone.
        """
        chosen = None if workers is None else list(workers)
        # `Client.run` loads the errors of workers as pickles.
        message = {"op": "run", "function": dumps(function), "args": dumps(arguments), "wait": True}
        ask = partial(self._client.scheduler.broadcast, msg=message, workers=chosen, on_error="ignore")
        told = self._ask(ask, callback_timeout=_CALL_SECONDS)
        return {worker: one["result"] for worker, one in told.items() if one["status"] == "OK"}

    def leave_out(self, worker: str, reason: str) -> None:
        """Stop sending errands to a worker, and say why."""
        if worker not in self._unfit:
            self._unfit[worker] = reason
            self._say(f"{worker} gets no project: {reason}")

    def is_left_out(self, worker: str) -> bool:
        """Tell whether a worker was left out."""
        return worker in self._unfit

    def list_fit(self) -> list[str]:
        """Return the connected workers that were not left out.

        Raises:
            GatewayError: the scheduler is gone.
        """
        return sorted(self._list_workers().keys() - self._unfit.keys())

    def require_fit(self) -> None:
        """Raise if every worker was left out.

        Raises:
            GatewayError: every worker was left out, or the scheduler is gone.
        """
        # First, since this forgets workers that disconnected meanwhile.
        fit = self.list_fit()
        if self._unfit and not fit:
            worker, reason = next(iter(self._unfit.items()))
            raise GatewayError(f"no worker at {self._url} can take a project, as {worker}: {reason}")

    def find_metadata(self, keys: list[str]) -> Any:
        """Return what the scheduler keeps under these keys; None if it keeps nothing.

        Raises:
            GatewayError: the scheduler is gone.
        """
        return self._ask(self._client.get_metadata, keys, default=None)

    def peek_metadata(self, keys: list[str]) -> Any:
        """Return what the scheduler keeps under these keys; None if it does not answer now."""
        if self._is_gone or self._client.status != "running":
            return None
        try:
            return self._client.sync(self._client.get_metadata, keys, default={}, callback_timeout=_PULSE_SECONDS)
        except Exception:
            return None

    def forget_metadata(self, keys: list[str]) -> None:
        """Make the scheduler forget what it keeps under these keys.

        Raises:
            GatewayError: the scheduler is gone.
        """
        self._ask(self._client.set_metadata, keys, {})

    def close(self) -> None:
        """Disconnect from the cluster, which cancels errands whose answers were not fetched."""
        with suppress(Exception):
            self._client.close(timeout=_PULSE_SECONDS)

    @property
    def _wanted(self) -> str:
        return "worker that can have the workspace" if self._unfit else "worker"

    def _look_around(self) -> None:
        workers = self._list_workers()
        self._pulsed = monotonic_seconds()
        new = tuple(sorted(workers.keys() - self._known))
        self._known = frozenset(workers)
        if new and self._greet is not None:
            self._greet(new)
        if self._tend is not None:
            self._tend()
        if workers.keys() - self._unfit.keys():
            self._alone_since = None
            return
        if self._alone_since is None:
            self._alone_since = self._pulsed
            self._say(f"no {self._wanted} is at {self._url}: waiting for one, {self._workers_seconds:g} s at most")
        if self._pulsed - self._alone_since >= self._workers_seconds:
            message = f"no {self._wanted} has come to {self._url} for {self._workers_seconds:g} s: start one, or look at why none stays"
            raise GatewayError(message)

    def _list_workers(self) -> dict[str, int]:
        found: dict[str, int] = self._ask(self._client.nthreads)
        # Another process with more disk space may come to the same address.
        self._unfit = {worker: reason for worker, reason in self._unfit.items() if worker in found}
        return found

    def _ask(
        self, method: Callable[..., Any], *arguments: Any, callback_timeout: float = _ANSWER_SECONDS, **named: Any
    ) -> Any:
        self._require_presence()
        try:
            return self._client.sync(method, *arguments, callback_timeout=callback_timeout, **named)
        except TypeError:
            message = (
                f"the cluster at {self._url} answered with objects, which are not loaded here: find out who reaches it"
            )
            raise GatewayError(message) from None
        except Exception:
            raise self._lose() from None

    def _require_presence(self) -> None:
        if self._is_gone or self._client.status != "running":
            raise self._lose()

    def _lose(self) -> GatewayError:
        self._is_gone = True
        return GatewayError(
            f"the scheduler {self._url} is gone: it answered when the gate began, and no longer does; look at its log, then "
            "run the gate again"
        )

    def _require_likeness(self) -> None:
        told = self._ask(self._client.get_versions, packages=list(PACKAGES))
        everyone = {"the scheduler": told["scheduler"], **told["workers"]}
        unlike = {name: describe_difference(find_versions(), _read_versions(one)) for name, one in everyone.items()}
        if any(unlike.values()):
            raise GatewayError(explain_unlike({name: what for name, what in unlike.items() if what}))


class Errand:
    """A task on the cluster. Its answer is fetched at once, since it would be lost with its worker.

    `answer` is what `read` makes of the bytes that came. `error` is what was raised instead, such as a `CancelledError`.
    """

    def __init__(self, future: Future, read: Callable[[Any], Any]) -> None:
        self.answer: Any = None
        self.error: BaseException | None = None
        self._future = future
        self._read = read
        self._ended = threading.Event()
        future.add_done_callback(self._take)

    def wait(self, seconds: float) -> bool:
        """Wait up to `seconds` for it to end, and tell whether it has ended."""
        return self._ended.wait(seconds)

    @property
    def has_ended(self) -> bool:
        """Tell whether it has ended, with an answer or an error."""
        return self._ended.is_set()

    def cancel(self) -> None:
        """Cancel it, wherever it is."""
        if not self._ended.is_set():
            with suppress(Exception):
                self._future.cancel()

    def _take(self, future: Future) -> None:
        try:
            self.answer = self._read(future.result(timeout=_ANSWER_SECONDS))
        except BaseException as error:
            if isinstance(error, TimeoutError) and not future.done():
                # Its worker was lost before the answer was fetched, so it runs again.
                future.add_done_callback(self._take)
                return
            self.error = error
        self._ended.set()
        with suppress(Exception):
            future.release()

    @property
    def was_cancelled(self) -> bool:
        """Tell whether it was cancelled: by us, by others, or because the scheduler was lost."""
        return isinstance(self.error, _CANCELLED)

    @property
    def was_killed(self) -> bool:
        """Tell whether the scheduler gave it up after losing several workers with it."""
        return _KILLED in _list_words(self.error)

    def explain(self) -> str:
        """Return why there is no answer."""
        if isinstance(self.error, GatewayError):
            return str(self.error)
        return f"a worker could not take it: {' '.join(_list_words(self.error))} (see the log of the workers)"


def _make_client(address: str) -> Client:
    """Return a client that loads no object that comes from the cluster, and shows nothing that workers print."""
    _watch_pickles()
    runner = LoopRunner(asynchronous=False)
    runner.start()
    try:
        sync(runner.loop, _name_thread)
        client = Client(
            address,
            loop=runner.loop,
            timeout=_CONNECT_SECONDS,
            set_as_default=False,
            name="pytest-golden",
            serializers=_PLAIN,
            deserializers=_PLAIN,
        )
    finally:
        # From here on the client alone keeps the loop running.
        runner.stop()
    for topic in ("print", "warn"):
        client.subscribe_topic(topic, lambda _: None)
    return client


async def _name_thread() -> None:
    threading.current_thread().name = _THREAD


@cache
def _watch_pickles() -> None:
    sys.addaudithook(_refuse_objects)


def _refuse_objects(event: str, arguments: tuple[Any, ...]) -> None:
    """Refuse pickles that name a class or a function in the threads that read what comes from a cluster: to load one runs it."""
    # Dask names the class of bytes in this way, and loads in another thread what is large.
    if event != "pickle.find_class" or arguments == ("builtins", "bytes"):
        return
    if threading.current_thread().name.startswith((_THREAD, "Dask-Offload")):
        raise TypeError(f"{'.'.join(arguments)} of a cluster is not loaded here")


def _list_words(error: BaseException | None) -> list[str]:
    """Return the words in an error of the cluster, which stays a pickle, and the text of another error."""
    pickled = error.args[0] if error is not None and error.args else b""
    if not isinstance(pickled, bytes):
        return [type(error).__name__, str(error)]
    with suppress(ValueError):
        return [word for _, word, _ in pickletools.genops(pickled) if isinstance(word, str)]
    return []


def find_address(url: str) -> str:
    """Return the scheduler's address that Dask connects to.

    Raises:
        SettingsError: the URL names no fleet.
    """
    found = _URL_FORM.fullmatch(url.strip())
    port = int(found["port"] or DEFAULT_PORT) if found else 0
    if found is None or not 0 < port < 1 << 16:
        message = f"--golden-gateway: {url!r} names no fleet: give dask://HOST:PORT, or dask+tls://HOST:PORT."
        raise SettingsError(message)
    return f"{_SCHEMES[found['scheme']]}://{found['host']}:{port}"


@cache
def find_versions() -> Mapping[str, str | None]:
    """Return the versions of this process that must be the same at both ends; None for a package that is not installed."""
    return {_PYTHON: f"{sys.version_info[0]}.{sys.version_info[1]}", **{name: find_version(name) for name in PACKAGES}}


def describe_difference(wanted: Mapping[str, str | None], found: Mapping[str, str | None]) -> str:
    """Return which of the found versions are missing or not the wanted ones, as text; empty if there are none."""
    unlike = [name for name, version in wanted.items() if version is None or found.get(name) != version]
    return ", ".join(f"{name} {found[name]}" if found.get(name) else f"no {name}" for name in unlike)


def explain_unlike(unlike: Mapping[str, str]) -> str:
    """Return a message that names who differs from this machine, and how."""
    rows = "".join(f"\n  {name}: {what}" for name, what in unlike.items())
    ours = ", ".join(f"{name} {version or '(missing)'}" for name, version in find_versions().items())
    return f"the workers differ from this machine ({ours}), install the same there:{rows}"


def _read_versions(told: Mapping[str, Any]) -> Mapping[str, str | None]:
    packages = told["packages"]
    # Such as `3.12.1.final.0`, of which the first two parts must be the same.
    return {**packages, _PYTHON: ".".join(str(packages["python"]).split(".")[:2])}


def _require_certificates(url: str, address: str) -> None:
    """Refuse TLS without certificates, which Dask itself would notice only later."""
    if not address.startswith("tls://"):
        return
    try:
        is_set = Security().get_connection_args("client")["ssl_context"] is not None
    except (OSError, ValueError, TypeError) as error:
        raise SettingsError(
            f"--golden-gateway: the certificates for {url} cannot be used ({_first_line(error)}): correct distributed.comm.tls "
            "in Dask's configuration"
        ) from None
    if not is_set:
        raise SettingsError(
            f"--golden-gateway: {url} needs certificates, and not all are set: give distributed.comm.tls in Dask's configuration "
            "a ca-file, and a client's cert and key (https://distributed.dask.org/en/stable/tls.html)"
        )


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
