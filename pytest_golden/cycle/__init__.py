"""The improvement cycle: ten fixed steps around a proposal, of which the gate is the seventh.

It decides by rules (`rules.py`) and saves its state after every step (`cycle_record.py`). Nothing that it does merges or
undoes a proposal: it only flags what is wrong with one. `service.py` is the cycle of the command line, whose improvement
and review are commands.
"""
