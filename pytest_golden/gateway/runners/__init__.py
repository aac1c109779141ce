"""Runners: each knows the command for one kind of pipeline. They start nothing; the gateway does.

The files ending in `_child.py` are scripts that stand between the gateway and a tool, run by the tool's own interpreter.
"""
