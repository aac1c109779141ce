"""The pytest face: collects golden projects as items, runs them through the gate, shows and writes what came back."""
