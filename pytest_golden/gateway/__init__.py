"""EXECUTED: the only way in which a pipeline is run. Permissions, view, seal, processes and runners in; facts out."""
