"""Tasks, buffers and dependencies: what has to be done, before when and where."""
