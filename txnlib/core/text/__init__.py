"""Text of Kafka's command-line tools: `kafka-dump-log.sh` and `kafka-console-consumer.sh`.

A text is read through `lines.TextLines`. Its doors are `dump_reader.DumpReader` and `console.read_console_text`. What
they yield is in `events`. Of a dump: `dump_lines` what a line says, `dump_files` where each file ends, `batch_chain`
which positions continue a file, `free_text` what is no line of the tool. `coordinator_text` reads decoded records in
both texts, `dump_printer` prints lines of a dump for operators.
"""
