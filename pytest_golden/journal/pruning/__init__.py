"""Old entries leave the journal, as whole trees of closed ones."""
