"""The face for agents: tools of the Model Context Protocol. It calls services and decides nothing.

`import mcp` in this package is the official SDK. Nothing here is imported by any other room: `golden mcp` loads it when it runs.
"""
