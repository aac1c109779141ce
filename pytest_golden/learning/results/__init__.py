"""What the learner reads of the gate's recorded results, and the outcome that it makes of each. It judges nothing anew."""
