"""Comparison of JSON documents by value: paths that do not count, arrays in any order, tolerances, masks in texts.

Nothing here recurses, so that no depth is too deep, and numbers are exact: an int of any length, else a `Decimal`.
"""
