"""Comparison of texts line by line: lines that do not count, masks, any order, and a diff that a person reads."""
