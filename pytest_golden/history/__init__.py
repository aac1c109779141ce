"""What git and earlier runs know of golden projects: checkouts, inputs, changes, trends, recorded runs."""
