"""Gate runs and their results as lists show them: without steps, output and what else is long."""
