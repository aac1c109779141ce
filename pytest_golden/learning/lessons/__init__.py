"""Lessons: what failed, what worked and why, with the evidence. Found in attempts and in the gate's runs, kept, recalled, credited."""
