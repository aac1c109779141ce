"""Base against head: was it this change that broke a golden project? Both sides run as the gate does, as processes.

The verdicts are in `regression/comparison.py`. Modules that the head's gate waits for before it starts load little.
"""
