"""Plans that were read out of outcomes, as lists and pages show them. What makes and keeps them is `logger/`."""
