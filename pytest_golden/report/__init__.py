"""Results as files and lines for others: JUnit XML, the gate report in JSON, what GitHub shows. Decides nothing."""
