"""Texts of pipelines and agents as pages show them: nothing unseen, nothing that is taken for HTML."""
