"""The search that proves its mapping to be the best; `search.complete` is its one entry."""
