"""Reports from both sides: what is open, what it blocks, and what to do."""
