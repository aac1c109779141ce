"""Checks that answer an expectation at a given time: a command that is run, or a page that is requested."""
