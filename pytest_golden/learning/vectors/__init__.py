"""Memories found by what they mean: vectors of them, made as they are asked for, and fused with the search by words."""
