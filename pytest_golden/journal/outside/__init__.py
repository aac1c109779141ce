"""News from outside: GitHub's deliveries, people's messages and signed callbacks as arguments of `Journal.add_signal`.

Pure functions over texts and bytes. What the news does to an entry is the journal's.
"""
