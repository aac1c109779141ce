"""Cost against size, each beside its floor: `python benchmarks/scale`."""
