"""The capacity ladder: how much memory a network needs, by how finely it is run."""
