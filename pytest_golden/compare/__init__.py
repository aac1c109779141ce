"""Outputs beside their baselines: whether what a run wrote is still what was accepted, and how it differs.

Files are only read; `accepting.py` alone puts new baselines in place.
"""
