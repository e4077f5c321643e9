"""The command line `txn-audit`: `main` finds the command, `commands` lists them, and each has a file of its name."""
