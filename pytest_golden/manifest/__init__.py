"""DECLARED: `golden_projects.yaml` and the inline forms to frozen values, with line and column for every mistake.

Nothing here asks whether a declared path exists or a program can be run: that is seen when the project is executed.
"""
