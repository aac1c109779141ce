"""An embedder that is a folder on this machine: a static model of Model2Vec, small, without torch and without network."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_golden.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

# Of these a model consists, besides notes for people.
_PARTS = ("*.safetensors", "*.json")
_DIGITS = 16


class StaticEmbedder:
    """A model that `StaticModel.save_pretrained` of Model2Vec wrote. Nothing is fetched: the folder must be there.

    Raises:
        SettingsError: it is not, holds no such model, or the extra `embeddings` is not installed.
    """

    def __init__(self, folder: str | Path) -> None:
        place = Path(folder).expanduser()
        # A name that is no folder would be looked for on a hub.
        if not place.is_dir():
            raise SettingsError(f"model2vec:{folder}: there is no such folder; put the model's files there")
        try:
            from model2vec import StaticModel  # noqa: PLC0415 - an extra
        except ImportError as error:
            message = (
                f"model2vec:{folder}: it takes an extra: pip install 'pytest-golden-projects[embeddings]' ({error})"
            )
            raise SettingsError(message) from None
        try:
            self._model: Any = StaticModel.from_pretrained(place.resolve())
            self.model = f"model2vec:{place.resolve().name}@{_digest(place)}"
        except Exception as error:
            kind = type(error).__name__
            raise SettingsError(f"model2vec:{folder}: there is no model that can be loaded ({kind}: {error})") from None

    def __repr__(self) -> str:
        """Give the name that its vectors are kept under."""
        return f"StaticEmbedder({self.model!r})"

    def __call__(self, texts: Sequence[str]) -> Any:
        """Give an array with a row for each text; one in which no word is known is zeros."""
        return self._model.encode(list(texts), use_multiprocessing=False)


def _digest(folder: Path) -> str:
    """Digest the model: the vectors of another one in the same place are no longer its own."""
    digest = hashlib.sha256()
    for path in sorted({path for part in _PARTS for path in folder.rglob(part)}):
        digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:_DIGITS]
