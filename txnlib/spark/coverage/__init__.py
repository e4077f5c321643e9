"""What transforms of tables of the log need to know of copies."""
