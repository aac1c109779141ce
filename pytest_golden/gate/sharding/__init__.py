"""One gate parted over several machines: which projects each of them runs, and whether all together ran everything."""
