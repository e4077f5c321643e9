"""Tables of a run about what is open, blocked, late or ended."""
