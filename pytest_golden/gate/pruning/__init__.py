"""Old runs and entries leave the store, without what the next gate run needs."""
