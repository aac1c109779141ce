"""Every option once: its flag, ini key, environment variable, default and help. What the options do is elsewhere.

The flag overrides the environment variable, which overrides the ini key, which overrides the default. One exception: the environment
variable overrides a `--golden-base` in addopts. Only the standard library is imported, because a plain pytest loads this
module too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MANIFEST_NAME = "golden_projects.yaml"
#: The folder of the baselines, beside the manifest.
BASELINES_FOLDER = "golden_baselines"
#: Names the language model that may word lessons; also read outside pytest.
MODEL_VARIABLE = "GOLDEN_LLM_MODEL"
#: Names the embedding model for searching memories by meaning.
EMBEDDER_VARIABLE = "GOLDEN_EMBEDDING_MODEL"
NO_STORE = "none"
#: pytest's options that only show something and run nothing.
SHOWS_ONLY = frozenset(
    {
        *("-h", "--help", "-V", "--version", "--co", "--collect-only", "--collectonly", "--markers", "--cache-show"),
        *("--fixtures", "--funcargs", "--fixtures-per-test"),
        *("--setup-only", "--setuponly", "--setup-plan", "--setupplan"),
    }
)
# The short options of pytest and xdist whose value can follow in the same word.
_LETTERS_WITH_VALUE = frozenset("kmpcorWn")
_TRUE_WORDS = frozenset({"1", "true", "yes", "on"})
_FALSE_WORDS = frozenset({"", "0", "false", "no", "off"})


# Plain classes: to make a dataclass or a named tuple takes longer than everything else that a plain pytest loads of ours.
class Setting:
    """One option. `kind` is `switch`, `text`, `count`, `path`, `store` or `choice`. Names that are not given are derived from `name`."""

    __slots__ = ("choices", "default", "environment", "has_environment", "has_ini", "help", "kind", "metavar", "name")

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002 - argparse's own word
        kind: str = "text",
        *,
        default: str | bool | None = None,
        choices: tuple[str, ...] = (),
        metavar: str | None = None,
        has_ini: bool = True,
        has_environment: bool = True,
        environment: str | None = None,
    ) -> None:
        self.name = name
        self.kind = "choice" if choices else kind
        self.help = help
        self.default = default
        self.choices = choices
        self.metavar = None if choices or kind == "switch" else metavar or kind.upper()
        self.has_ini = has_ini
        self.has_environment = has_environment
        self.environment = environment or self.key.upper()

    @property
    def flag(self) -> str:
        """Return the command line's form, `--golden-x`."""
        return f"--{self.name}"

    @property
    def key(self) -> str:
        """Return the ini key, which is also the attribute of the parsed flag."""
        return self.name.replace("-", "_")

    def arguments(self) -> dict[str, Any]:
        """Return the keywords of argparse's `add_argument`. The default is None, which means that the flag was not given."""
        told: dict[str, Any] = {"dest": self.key, "default": None, "help": self.described()}
        if self.kind == "switch":
            return {**told, "action": "store_true"}
        if self.choices:
            return {**told, "choices": self.choices}
        return {**told, "metavar": self.metavar}

    def described(self) -> str:
        """Return the help with the default and the other ways to set the option."""
        places = [f"ini {self.key}"] * self.has_ini + [f"env {self.environment}"] * self.has_environment
        default = f"default {self.default}" if isinstance(self.default, str) else ""
        notes = "; ".join(filter(None, [default, *places]))
        return f"{self.help} ({notes})" if notes else self.help


SETTINGS: Sequence[Setting] = (
    Setting(
        "golden",
        "Run the golden projects, alone or after the given tests.",
        "switch",
        has_ini=False,
        has_environment=False,
    ),
    Setting(
        "golden-manifest",
        f"Read the golden projects from this file instead of {MANIFEST_NAME} in the rootdir.",
        "path",
    ),
    Setting("golden-projects", 'Golden projects without a manifest: "a.yaml, b.yaml" or "name:path, name:path".'),
    Setting(
        "golden-mode",
        "Warn loudly about a gate without golden projects (improvement), or do not (learning).",
        default="improvement",
        choices=("improvement", "learning"),
    ),
    Setting(
        "golden-require", "Refuse to run without golden projects, and fail on skipped ones.", "switch", default=False
    ),
    Setting(
        "golden-sandbox",
        "How a pipeline sees its project's folder: copy-on-write (overlay), a private copy (copy), or the better one that works here (auto).",
        default="auto",
        choices=("auto", "overlay", "copy"),
    ),
    Setting(
        "golden-keep",
        "Keep the files written by failed projects, or by all, below .golden/kept.",
        default="none",
        choices=("none", "failed", "all"),
    ),
    Setting(
        "golden-base",
        "Compare the manifest with the one at this git ref; a weakened floor fails the gate.",
        metavar="REF",
    ),
    Setting(
        "golden-floor",
        "Fail on a weakened floor (check), or accept it as a person (accept). Not in addopts: a change must not accept itself.",
        default="check",
        choices=("check", "accept"),
        has_ini=False,
    ),
    Setting(
        "golden-store",
        "Where to record results: a file, sqlite:///PATH, postgresql://..., or none. By default .golden/golden.db in the workspace root.",
        "store",
        environment="GOLDEN_STORE_URL",
    ),
    Setting(
        "golden-learning",
        "Learn from results and show what is known (on), only show it (recall), or neither (off).",
        default="on",
        choices=("on", "recall", "off"),
    ),
    Setting(
        "golden-update",
        "Accept the outputs of projects that ran as expected as their new baselines. Not in addopts, and refused in CI.",
        "switch",
        default=False,
        has_ini=False,
        has_environment=False,
    ),
    Setting(
        "golden-no-calibrate",
        "With --golden-update: do not run a project a second time after its first outputs were accepted.",
        "switch",
        default=False,
        has_ini=False,
        has_environment=False,
    ),
    Setting(
        "golden-changed",
        "Run only the projects whose inputs changed since this git ref, or may have changed.",
        metavar="REF",
    ),
    Setting(
        "golden-reads",
        "Record which files of the repository each pipeline reads, so that --golden-changed runs it again when one of them changed.",
        "switch",
        default=False,
    ),
    Setting(
        "golden-shard",
        "Run only one shard of the projects, such as 2/4: shard 2 of 4. Other machines run the other shards.",
        metavar="I/N",
        has_ini=False,
    ),
    Setting(
        "golden-shard-plan",
        "Use this plan of `golden shards plan` instead of golden_shards.json beside the manifest.",
        "path",
    ),
    Setting(
        "golden-gateway",
        "Run the pipelines on the workers of an existing Dask cluster: dask://HOST:8786, or dask+tls://.",
        metavar="URL",
    ),
    Setting(
        "golden-fleet-trusted",
        "Accept that whoever reaches the cluster's network, pipelines included, can run code on every worker. Not in addopts.",
        "switch",
        default=False,
        has_ini=False,
        has_environment=False,
    ),
    Setting(
        "golden-workspace",
        "Run the projects of this folder instead of those in the manifest's workspace_root, as `golden verify` does.",
        "path",
        has_ini=False,
        has_environment=False,
    ),
    Setting(
        "golden-python",
        "The Python of pipelines that declare no venv, instead of the one that runs pytest.",
        "path",
        has_ini=False,
        has_environment=False,
    ),
    Setting(
        "golden-durations",
        "Show the N slowest golden projects, and how long each was prepared, run, compared and recorded; 0 shows all.",
        "count",
        metavar="N",
    ),
    Setting("golden-junit", "Write the results as JUnit XML.", "path"),
    Setting("golden-json", "Write the gate report as JSON.", "path"),
    Setting("golden-html", "Write the gate report as one HTML file that needs no network.", "path"),
    Setting(
        "golden-attest",
        "Write a signed statement about the commit, its judge and the verdict. GOLDEN_ATTEST_KEY names the key.",
        "path",
        has_ini=False,
    ),
)
_BY_NAME = {setting.name: setting for setting in SETTINGS}


class GoldenSettings:
    """The settings of this session, one attribute per option; paths are absolute.

    `require_said` names the source of `require`, for the reason of a skip that fails; empty if it is not set.
    """

    manifest: Path | None
    projects: str | None
    mode: str
    require: bool
    require_said: str
    sandbox: str
    keep: str
    base: str | None
    floor: str
    store: str | None
    learning: str
    durations: int | None
    junit: Path | None
    json: Path | None
    html: Path | None
    attest: Path | None
    update: bool
    no_calibrate: bool
    changed: str | None
    reads: bool
    shard: str | None
    shard_plan: Path | None
    gateway: str | None
    fleet_trusted: bool
    workspace: Path | None
    python: Path | None

    def __init__(self, values: Mapping[str, Any]) -> None:
        vars(self).update(values)


class Sources:
    """Where options can be set: `flag` and `ini` look one up by its key and return None if it is not set.

    `ini_file` is the configuration file that `ini` reads, or None.
    """

    __slots__ = ("environment", "flag", "ini", "ini_file", "invocation_dir", "rootdir")

    def __init__(
        self,
        flag: Callable[[str], Any],
        ini: Callable[[str], Any],
        environment: Mapping[str, str],
        invocation_dir: Path,
        rootdir: Path,
        ini_file: Path | None = None,
    ) -> None:
        self.flag = flag
        self.ini = ini
        self.ini_file = ini_file
        self.environment = environment
        self.invocation_dir = invocation_dir
        self.rootdir = rootdir


def read_settings(sources: Sources) -> GoldenSettings:
    """Read every option from its source.

    Raises:
        ValueError: an option has a value that is not allowed; the message names the source.
    """
    values = {
        name.removeprefix("golden-").replace("-", "_"): _read(setting, sources) for name, setting in _BY_NAME.items()
    }
    said = _say_where(_BY_NAME["golden-require"], sources) if values["require"] else ""
    return GoldenSettings({**values, "require_said": said})


def find_version(distribution: str) -> str | None:
    """Return the installed version of a distribution, or None."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def find_manifest_above(folder: Path) -> Path | None:
    """Find the nearest manifest of the default name, going up to the top of the repository that the folder is in."""
    for place in (folder, *folder.parents):
        if (place / MANIFEST_NAME).is_file():
            return place / MANIFEST_NAME
        if (place / ".git").exists():
            return None
    return None


def find_typed_flag(arguments: Sequence[str]) -> str | None:
    """Return the first of our flags among the typed arguments, which do not include addopts."""
    typed = (argument.partition("=")[0] for argument in arguments)
    return next((word for word in typed if word.startswith("--") and word[2:] in _BY_NAME), None)


def join_values(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Join each of our options with its value into one word, `--golden-x=VALUE`.

    Returns:
        All words, and the values that were separate words. Words after a `--` stay as they are.
    """
    joined: list[str] = []
    values: list[str] = []
    rest = iter(words)
    for word in rest:
        setting = _BY_NAME.get(word[2:]) if word.startswith("--") else None
        value = None if setting is None or setting.kind == "switch" else next(rest, None)
        if value is not None:
            values.append(value)
        joined.append(word if value is None else f"{word}={value}")
        if word == "--":
            joined += rest
    return joined, values


def place_values(words: Sequence[str], folder: Path) -> list[str]:
    """Return the words of a command line, with our options joined to their values and relative paths resolved against `folder`."""
    placed = []
    for word in join_values(words)[0]:
        flag, equals, value = word.partition("=")
        setting = _BY_NAME.get(flag[2:]) if equals and flag.startswith("--") else None
        is_path = setting is not None and (
            setting.kind == "path" or (setting.kind == "store" and value != NO_STORE and "://" not in value)
        )
        placed.append(f"{flag}={_place(folder, value)}" if is_path else word)
    return placed


def refuse_self_accepted_floor(floor: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Refuse `accept` for the floor unless it was typed: in addopts, a change that lowers the floor could accept itself.

    Raises:
        ValueError: `accept` came from a configuration file.
    """
    setting = _BY_NAME["golden-floor"]
    if floor != "accept" or environment.get(setting.environment):
        return
    if not _is_typed(setting, arguments, environment):
        message = (
            f"{setting.flag}=accept in addopts is refused, because a change could accept its own weakened floor: "
            f"give it on the command line or as {setting.environment}=accept."
        )
        raise ValueError(message)


def find_ci(environment: Mapping[str, str]) -> str | None:
    """Return the variable that says that this is CI; None if none does."""
    names = ("CI", "GITHUB_ACTIONS")
    return next((name for name in names if environment.get(name, "").strip().lower() not in _FALSE_WORDS), None)


def refuse_unasked_update(*, update: bool, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Refuse to accept outputs when nobody looks at them: in CI, or in every run because of addopts.

    Raises:
        ValueError: `CI` or `GITHUB_ACTIONS` is set to a true value, or the flag was not typed.
    """
    setting = _BY_NAME["golden-update"]
    if not update:
        return
    name = find_ci(environment)
    if name is not None:
        message = (
            f"{setting.flag} is refused in CI ({name} is set), because nobody would see what it accepts: "
            f"run it where a person sees the difference, and commit golden_baselines."
        )
        raise ValueError(message)
    _require_typed(setting, "every run would accept its own outputs", arguments, environment)


def refuse_untyped_trust(*, trusted: bool, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Refuse a trusted fleet unless the flag was typed.

    Raises:
        ValueError: the flag is in addopts.
    """
    if trusted:
        why = "a change could send its pipelines to any cluster"
        _require_typed(_BY_NAME["golden-fleet-trusted"], why, arguments, environment)


def split_flags(word: str) -> list[str]:
    """Return the options in one word of pytest's command line: `-qx` is `-q` and `-x`."""
    if not word.startswith("-") or word.startswith("--"):
        return [word]
    flags: list[str] = []
    for place, letter in enumerate(word[1:], start=1):
        if letter in _LETTERS_WITH_VALUE:
            return [*flags, f"-{word[place:]}"]
        flags.append(f"-{letter}")
    return flags or [word]


def refuse_configured_silence(addopts: Sequence[str]) -> None:
    """Refuse options in the configuration that would make a gate run nothing and still exit with 0.

    Raises:
        ValueError: `addopts` holds one of them.
    """
    words = (flag for word in addopts for flag in split_flags(word))
    silent = [word for word in words if word.partition("=")[0] in SHOWS_ONLY]
    if silent:
        message = f"{silent[0]} in addopts is refused, because the gate would run nothing: give it on the command line."
        raise ValueError(message)


def prefer_given_base(
    flag: Callable[[str], Any], arguments: Sequence[str], environment: Mapping[str, str]
) -> Callable[[str], Any]:
    """Return a look-up of flags that ignores a base in addopts if the environment sets one: a change must not choose its own base.

    `arguments` are the typed ones.
    """
    setting = _BY_NAME["golden-base"]
    yields = bool(environment.get(setting.environment)) and not _is_typed(setting, arguments, environment)

    def find_flag(key: str) -> Any:
        return None if yields and key == setting.key else flag(key)

    return find_flag


def _require_typed(setting: Setting, why: str, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    if not _is_typed(setting, arguments, environment):
        message = f"{setting.flag} in addopts is refused, because {why}: give it on the command line."
        raise ValueError(message)


def _is_typed(setting: Setting, arguments: Sequence[str], environment: Mapping[str, str]) -> bool:
    typed = (*arguments, *environment.get("PYTEST_ADDOPTS", "").split())
    return any(argument.partition("=")[0] == setting.flag for argument in typed)


def _read(setting: Setting, sources: Sources) -> Any:
    value, place, folder = _find_said(setting, sources)
    if value is None:
        return setting.default
    if setting.kind == "switch":
        return _parse_switch(value, place)
    if setting.choices and value not in setting.choices:
        message = f"{place}: {value!r} is not one of {', '.join(setting.choices)}."
        raise ValueError(message)
    if setting.kind == "store":
        if not value.strip():
            message = f"{place} is empty: give a file or none."
            raise ValueError(message)
        return value if value == NO_STORE or "://" in value else str(_place(folder, value))
    if setting.kind in {"path", "count"}:
        return _place(folder, value) if setting.kind == "path" else _parse_count(value, place)
    return value


def _place(folder: Path, value: Any) -> Path:
    return Path(os.path.abspath(folder / os.path.expanduser(value)))  # noqa: PTH100, PTH111 - symlinks stay; an unknown user is a name


def _find_said(setting: Setting, sources: Sources) -> tuple[Any, str, Path]:
    value = sources.flag(setting.key)
    if value is not None:
        return value, setting.flag, sources.invocation_dir
    if setting.has_environment and sources.environment.get(setting.environment):
        return sources.environment[setting.environment], setting.environment, sources.invocation_dir
    value = sources.ini(setting.key) if setting.has_ini else None
    return (None if value == "" else value), f"ini key {setting.key}", sources.rootdir


def _say_where(setting: Setting, sources: Sources) -> str:
    """Name the setting as it was set: `--golden-x`, `GOLDEN_X=1` or `golden_x in pytest.ini`."""
    value, place, _ = _find_said(setting, sources)
    if place == setting.environment:
        return f"{place}={value}"
    if place == setting.flag:
        return place
    return f"{setting.key} in {sources.ini_file.name}" if sources.ini_file is not None else f"-o {setting.key}={value}"


def _parse_switch(value: Any, place: str) -> bool:
    word = str(value).strip().lower()
    if word in _TRUE_WORDS:
        return True
    if word in _FALSE_WORDS:
        return False
    raise ValueError(f"{place}: {value!r} is neither true nor false.")


def _parse_count(value: str, place: str) -> int:
    if value.isascii() and value.isdigit():
        return int(value)
    raise ValueError(f"{place}: {value!r} is not a whole number from 0 on.")
