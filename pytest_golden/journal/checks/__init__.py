"""Expectations that find their answer themselves: a command that is run, or a page that is asked, when its time has come."""
