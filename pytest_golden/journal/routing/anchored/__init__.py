"""Expectations that are found by the anchors under which their hints are kept."""
