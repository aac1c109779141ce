"""The session that the token opens, for people: cookies that only this server can make."""
