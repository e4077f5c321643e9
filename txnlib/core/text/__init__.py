"""Text of Kafka's command-line tools: `kafka-dump-log.sh` and `kafka-console-consumer.sh`.

* `lines`: the lines of a text; `dump_reader`, `console`: the two readers of them; `printed`: what these yield
* `wrappings`: what stands around all of a text (JSON, CSV, a saved page)
* `line_forms`: what stands around each line (colours, a prefix, the JSON of a log shipper)
* `dump_lines`: what a line of a dump says; `dump_chain`: what continues a file
* `dump_files`: where files begin and end; `contents`: where keys and payloads end
* `coordinator_text`: decoded records in both texts
* `dump_printer`: lines of a dump, printed for operators
"""
