"""The language model, optional and at the edge: prompts go out redacted, replies come back validated or as None."""

from pytest_golden.learning.language_model.asking import ask
from pytest_golden.learning.language_model.budget import BudgetedModel, ask_within
from pytest_golden.learning.language_model.client import LanguageModel
from pytest_golden.learning.language_model.port import CompletesPrompts
from pytest_golden.learning.language_model.prompting import write_data, write_prompt
from pytest_golden.learning.language_model.reflecting import reflect

__all__ = [
    "BudgetedModel",
    "CompletesPrompts",
    "LanguageModel",
    "ask",
    "ask_within",
    "reflect",
    "write_data",
    "write_prompt",
]
