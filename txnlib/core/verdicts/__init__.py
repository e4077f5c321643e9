"""What an open transaction is, why, and what to do about it."""
