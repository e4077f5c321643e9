"""What brokers log about causes and findings, and how to find it.

Read in the sources of the releases in `READ`: tags of apache/kafka up to 3.8.0, Maven Central's from 3.9.1 on. The files of the
loggers are those of the log4j configuration that Kafka ships.
"""

from __future__ import annotations

from txnlib.core.broker_logs.log_line import READ, OLDEST, NEWEST, PLACEHOLDERS
from txnlib.core.broker_logs.log_line import Writer, LogFile, Level, Form, LogLine, BrokerLogs, forms_of
from txnlib.core.broker_logs.kafka_lines import LOGS_OF_CAUSES, logs_of_cause
from txnlib.core.broker_logs.kafka_lines import LOGS_OF_FINDINGS
from txnlib.core.broker_logs.log_line import GrepCommand, grep_commands, pattern

__all__ = [
    "READ",
    "OLDEST",
    "NEWEST",
    "PLACEHOLDERS",
    "Writer",
    "LogFile",
    "Level",
    "Form",
    "LogLine",
    "BrokerLogs",
    "forms_of",
    "LOGS_OF_CAUSES",
    "logs_of_cause",
    "LOGS_OF_FINDINGS",
    "GrepCommand",
    "grep_commands",
    "pattern",
]
