"""The jobs: a command line in, an audit or one of its stages, an exit code out.

In reading order: `command` starts programs. `audit` has the jobs, `stages` what they do once their options are right.
Then what they share: `options`, `fail_on` (the exit code of an audit that ended), `program` (exceptions to exit codes,
and a word before memory ends), `progress`, `result_files`, `traces`.
"""
