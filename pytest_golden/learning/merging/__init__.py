"""The memories of several stores made one."""
