"""Text of Kafka's command-line tools: `kafka-dump-log.sh` and `kafka-console-consumer.sh`.

A text is read through `lines.TextLines`. Its doors are `dump_reader.DumpReader` and `console.read_console_text`. What they yield is
in `events`.
"""
