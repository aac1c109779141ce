"""Step readers: each turns what one kind of pipeline left behind into steps. What the steps mean is not decided here."""
