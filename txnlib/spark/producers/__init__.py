"""The partitions' side: the state of each producer on each partition."""
