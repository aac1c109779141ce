"""The web face: pages for people, a JSON API and webhooks over the same services. It decides nothing.

It needs the extra `web`, and is loaded by `golden serve` alone.
"""
