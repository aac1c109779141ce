"""Embedders, optional and at the edge: one at an OpenAI-compatible endpoint, and one that is a folder on this machine.

What is done with their vectors is elsewhere: `MemoryStore.hybrid_search`.
"""

from pytest_golden.learning.embedding.choosing import embedder_from_env
from pytest_golden.learning.embedding.endpoint import EmbeddingEndpoint
from pytest_golden.learning.embedding.static import StaticEmbedder

__all__ = ["EmbeddingEndpoint", "StaticEmbedder", "embedder_from_env"]
