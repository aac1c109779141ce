"""Projects as lists and pages show them: what is declared beside what earlier runs say."""
