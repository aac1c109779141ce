"""Executes the cells of a notebook in order, in a kernel of this very interpreter, and never writes the notebook.

Outputs are printed as they come and not kept. A failing cell ends with exit code 1, its number, source and traceback on
stderr; a kernel that a signal ended ends this process by the same signal. Each cell leaves a line in the file that
GOLDEN_STEPS names. The kernel speaks over local sockets, so it works where there is no network, and needs no kernelspec.

A script of its own: it runs where this package may be missing, and needs nbclient and ipykernel only.
"""

from __future__ import annotations

import os
import sys

if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
    # The folder of this script has modules of its own, none of them the notebook's.
    del sys.path[0]

import json
import re
import shutil
import signal
import tempfile
import time
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
INSTALLS = re.compile(r"^\s*[!%]\s*(?:python\d* -m |uv )?(?:pip|conda|mamba) install\b.*", re.MULTILINE)
SOURCE_LINES_SHOWN = 8
STEP_NAME_LENGTH = 80
# The path of a local socket holds 103 bytes at least, and the sockets' own names come after the folder's.
SOCKET_FOLDER_LENGTH = 80
# How long outputs may trail behind the end of their cell.
LATE_OUTPUT_SECONDS = 60


def main() -> int:
    """Execute the notebook that the only argument names; return 0, or 1 when a cell failed."""
    if len(sys.argv) != 2:
        print("A notebook takes no arguments: remove `args`, and pass values with `set_env`.", file=sys.stderr)
        return 2
    # jupyter_client, ipykernel and nbformat warn about their own parts and about notebooks that lack cell ids.
    warnings.simplefilter("ignore")
    notebook = read_notebook(sys.argv[1])
    if notebook is None:
        return 1
    folder = make_socket_folder()
    try:
        code = execute(notebook, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return code if code >= 0 else die_by(-code)


def read_notebook(path: str) -> Any:
    """Read a Python notebook, or say why not and return None."""
    try:
        notebook = import_module("nbformat").read(path, as_version=4)
    except Exception as error:
        print(f"{path} cannot be read as a notebook: {(str(error) or repr(error)).splitlines()[0]}", file=sys.stderr)
        return None
    metadata = notebook.metadata
    language = metadata.get("kernelspec", {}).get("language") or metadata.get("language_info", {}).get("name", "python")
    if "python" not in language.lower():
        print(f"{path} is written in {language}: give `command:` with a program that executes it.", file=sys.stderr)
        return None
    return notebook


def make_socket_folder() -> str:
    """Make a private folder with a short path for the kernel's sockets and files."""
    folder = tempfile.mkdtemp(prefix="nb")
    if len(folder) <= SOCKET_FOLDER_LENGTH:
        return folder
    shutil.rmtree(folder)
    return tempfile.mkdtemp(prefix="nb", dir="/tmp")


def execute(notebook: Any, folder: str) -> int:
    """Execute all cells; return the exit code, or the negative number of the signal that ended the kernel."""
    exceptions = import_module("nbclient.exceptions")
    client = make_client(notebook, folder)
    obey_signals(client.km, folder)
    cell_count = len(notebook.cells)
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            if cell.cell_type != "code" or not cell.source.strip():
                continue
            started = time.monotonic()
            try:
                client.execute_cell(cell, index)
            except exceptions.CellExecutionError as failure:
                error = f"{failure.ename}: {ANSI.sub('', failure.evalue)}".rstrip(": ")
                error += advise_install(failure.ename, [one.source for one in notebook.cells[: index + 1]])
                write_step(index, cell.source, started, error)
                explain(f"cell {index + 1} of {cell_count} failed: {error}", cell.source)
                return 1
            except exceptions.DeadKernelError:
                write_step(index, cell.source, started, "the kernel died")
                explain(f"the kernel died in cell {index + 1} of {cell_count}", cell.source)
                return -find_signal(client.km) or 1
            write_step(index, cell.source, started)
    return 0


def advise_install(exception: str, sources: list[str]) -> str:
    """Name the fix where a module is missing that a cell would have installed: the environment cannot be written to."""
    installing = next((found[0].strip() for source in sources if (found := INSTALLS.search(source))), None)
    if installing is None or exception not in {"ModuleNotFoundError", "ImportError"}:
        return ""
    return f" (`{installing}` cannot install into the view: install beforehand into the project's environment, `venv:`)"


def make_client(notebook: Any, folder: str) -> Any:
    """Make a client that prints outputs at once, with a kernel of this interpreter that keeps its files in `folder`."""
    kernelspec: Any = import_module("jupyter_client.kernelspec")

    class PrintingClient(import_module("nbclient").NotebookClient):  # type: ignore[misc]
        def output(self, _outs: Any, msg: Any, _display_id: Any, _cell_index: Any) -> None:
            print_output(msg["header"]["msg_type"], msg["content"])

    class OwnKernel(kernelspec.KernelSpecManager):  # type: ignore[misc]
        def get_kernel_spec(self, _name: str) -> Any:
            # Without a history file, which would be a database in HOME.
            launch = [
                sys.executable,
                "-m",
                "ipykernel_launcher",
                "-f",
                "{connection_file}",
                "--HistoryManager.enabled=False",
            ]
            return kernelspec.KernelSpec(argv=launch, display_name="Python", language="python")

    os.environ.update({"JUPYTER_RUNTIME_DIR": folder, "IPYTHONDIR": folder, "JUPYTER_PLATFORM_DIRS": "1"})
    address = {"connection_file": str(Path(folder, "kernel.json")), "transport": "ipc", "ip": str(Path(folder, "s"))}
    manager = import_module("jupyter_client.manager").AsyncKernelManager(kernel_spec_manager=OwnKernel(), **address)
    client = PrintingClient(notebook, km=manager, timeout=None, iopub_timeout=LATE_OUTPUT_SECONDS)
    client.owns_km = True
    return client


def obey_signals(manager: Any, folder: str) -> None:
    """Hand an interrupt on to the kernel, whose cell then fails with its traceback; end both on a termination."""

    def kernel_process() -> Any:
        return getattr(manager.provisioner, "process", None)

    def interrupt(number: int, _frame: Any) -> None:
        if kernel_process() is None:
            sys.exit(128 + number)
        kernel_process().send_signal(signal.SIGINT)

    def terminate(number: int, _frame: Any) -> None:
        if kernel_process() is not None:
            kernel_process().kill()
            kernel_process().wait()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(128 + number)

    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, terminate)


def print_output(kind: str, content: Any) -> None:
    """Print one output of a cell: text as it is, a rich display by its plain form, a traceback to stderr."""
    if kind == "stream":
        stream = sys.stderr if content["name"] == "stderr" else sys.stdout
        stream.write(content["text"])
    elif kind == "error":
        stream = sys.stderr
        stream.write(ANSI.sub("", "\n".join(content["traceback"])) + "\n")
    else:
        stream = sys.stdout
        data = content.get("data", {})
        stream.write(str(data.get("text/plain", ", ".join(data))) + "\n")
    stream.flush()


def explain(headline: str, source: str) -> None:
    """Say on stderr which cell it was and how it begins."""
    lines = source.strip("\n").splitlines()
    shown = [f"    {line}" for line in lines[:SOURCE_LINES_SHOWN]]
    if len(lines) > SOURCE_LINES_SHOWN:
        shown.append(f"    ... {len(lines) - SOURCE_LINES_SHOWN} more lines")
    print("\n".join([headline, *shown]), file=sys.stderr, flush=True)


def find_signal(manager: Any) -> int:
    """Return the number of the signal that ended the kernel, or 0."""
    code = getattr(getattr(manager.provisioner, "process", None), "returncode", None) or 0
    return max(0, -code)


def die_by(number: int) -> int:
    """End by this signal: a death by signal is not an ordinary failure."""
    if number not in {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    return 1


def write_step(index: int, source: str, started: float, error: str = "") -> None:
    """Append one line about a cell to the file that GOLDEN_STEPS names."""
    path = os.environ.get("GOLDEN_STEPS")
    if not path:
        return
    head = next((line.strip() for line in source.splitlines() if line.strip()), "")
    step = {
        "name": f"cell {index + 1}: {head}"[:STEP_NAME_LENGTH],
        "type": "action",
        "duration_ms": round((time.monotonic() - started) * 1000, 3),
    }
    if error:
        step["error"] = error
    with Path(path).open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(step) + "\n")


if __name__ == "__main__":
    sys.exit(main())
