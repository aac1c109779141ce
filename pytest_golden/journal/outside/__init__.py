"""Signals from outside: read GitHub's deliveries, people's messages and signed callbacks as arguments of `Journal.add_signal`.

Pure functions over text and bytes.
"""
