"""Lessons: what failed, what worked and why. Found in attempts and in the gate's runs, kept, recalled, credited.

`model.py` has the values; `patterns.py` finds them in attempts, `lesson_wording.py` words them, `quality.py` refuses weak ones;
`service.py` keeps them.
"""
