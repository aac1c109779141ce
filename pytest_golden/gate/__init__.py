"""The trip: run and judge one golden project or all of them. No pytest here; faces call this room and decide nothing."""
