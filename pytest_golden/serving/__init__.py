"""What stands between a network client and a face: addresses, sockets, hosts, origins, tokens, bodies and connections.

The faces that are served here are elsewhere, and so is what they answer.
"""
