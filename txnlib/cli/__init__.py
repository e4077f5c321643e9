"""The command line `txn-audit`: arguments to a query to a renderer. It decides nothing, and nothing imports it.

In reading order: `main` runs a command, `commands` lists them. Then the commands: `report`, `explain`, `timeline`, `diff`,
`transactions` (those of Kafka's tool), `abort_plan`, `overviews`, `collect_plan`, `locate`, `completion`.
"""
