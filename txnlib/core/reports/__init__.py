"""The reports of a cluster, each as a function over rows: what is open, what it blocks, and what to do."""
