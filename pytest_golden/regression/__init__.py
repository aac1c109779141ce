"""JUDGED: what a run means. Facts become a result with its reasons, results a verdict; a weakened floor is noticed.

Nothing is executed here, and no result depends on anything but the manifest and the outcome.
"""
