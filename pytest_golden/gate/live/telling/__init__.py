"""The side of the gate that runs: it keeps a row of what it does now. It needs nothing of those who look."""
