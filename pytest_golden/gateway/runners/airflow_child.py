"""Runs Airflow's command line in Airflow's interpreter, with a new database and the folder of one DAG file.

Where `AIRFLOW_HOME` is set, what is there is used as it is.

A script of its own: it runs where this package may be missing, and needs the standard library and Airflow only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

MODULE = (sys.executable, "-m", "airflow")


def main() -> int:
    """Run Airflow with this script's arguments behind the folder of the DAG file, and return its exit code."""
    folder, *arguments = sys.argv[1:]
    if not os.environ.get("AIRFLOW_HOME"):
        os.environ["AIRFLOW_HOME"] = tempfile.mkdtemp(prefix="golden-airflow-")
        os.environ.setdefault("AIRFLOW__CORE__DAGS_FOLDER", os.path.abspath(folder))
        made = subprocess.run([*MODULE, "db", "migrate"], capture_output=True, text=True, check=False)
        if made.returncode:
            print(made.stdout, made.stderr, sep="", file=sys.stderr)
            return made.returncode
    return subprocess.run([*MODULE, *arguments], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
