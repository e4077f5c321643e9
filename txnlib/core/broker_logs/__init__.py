"""What brokers log about causes and findings, and how to find it.

`log_line` a line and the commands that find it · `kafka_lines` all lines.
Read in the sources of the releases in `READ`: tags of apache/kafka up to 3.8.0, Maven Central's from 3.9.1 on. The
files of the loggers are those of the log4j configuration that Kafka ships.
"""
