"""Finds hanging, late and stuck Kafka transactions from copies of the logs."""

__version__ = "0.1.0"
