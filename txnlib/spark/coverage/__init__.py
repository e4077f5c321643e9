"""Facts about copies, for transforms of tables of the log."""
