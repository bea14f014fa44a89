"""Short-term memory: the attempt graph, the journal it is rebuilt from, and the store of sources and evaluations."""
