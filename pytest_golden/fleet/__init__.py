"""A fleet: golden projects executed by the workers of an existing Dask cluster. Judging and recording stay in the gate.

`fleet_gateway.py` replaces the execution gateway here, and `worker.py` runs on a worker. Nothing of it is imported, and nothing of
Dask, unless a cluster is named.
"""
