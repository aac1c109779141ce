"""Everything of several stores made one, as after shards of a gate that each had a store of its own."""
