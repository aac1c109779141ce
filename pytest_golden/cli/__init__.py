"""The command line `golden`. It calls the stations and shows what comes back.

One module a command, each with `add_arguments(parser)` and `run(arguments) -> int`; `commands.py` lists them. Below the
first line of a command's module stands the end of its help.
"""
