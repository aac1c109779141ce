"""EXECUTED: the only way in which a pipeline is run. Permissions, view, seal, processes and runners in; facts out."""

import sys

if sys.platform == "win32":
    raise ImportError("pipelines cannot be run on Windows: run the gate in WSL, where the seal works too")
