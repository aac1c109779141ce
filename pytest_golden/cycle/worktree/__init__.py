"""The cycle of the command line: improvement and review are commands in a git worktree, and the floor is that of its base.

Nothing is merged or undone. Whatever the commands left is committed on a branch of the cycle's own, also when they failed.
"""
