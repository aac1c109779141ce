"""The language model, optional and at the edge: prompts go out redacted, replies come back validated or as None."""
