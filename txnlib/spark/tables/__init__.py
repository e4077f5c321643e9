"""Tables about both sides of a transaction. `selections` has the rows that `core.tables` asks for."""
