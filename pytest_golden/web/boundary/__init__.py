"""What every request passes before anything else looks at it: its host, its origin, who sends it, and how much."""
