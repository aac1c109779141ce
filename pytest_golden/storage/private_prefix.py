"""How the folders are called in which gates run for a moment: the base of a verification, the proposals of a cycle.

Nobody's own folder is called so: runs below one are left out of what people's own runs tell. It imports nothing.
"""

PRIVATE_PREFIX = "pytest-golden-private-"
