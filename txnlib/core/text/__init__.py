"""Text of Kafka's command-line tools: `kafka-dump-log.sh` and `kafka-console-consumer.sh`.

A text is read through `lines.TextLines`. Its doors are `dump_reader.DumpReader` and `console.read_console_text`. What
they yield is in `printed`. `line_forms` is what stands around each line, `wrappings` around all of a text. Of a dump:
`dump_lines` what a line says, `dump_chain` what continues a file, `dump_files` where files begin and end,
`contents` where keys and payloads end. `coordinator_text` reads decoded records in both texts, `dump_printer` prints
lines of a dump for operators.
"""
