"""The jobs: a command line in, an audit or one of its stages, an exit code out.

In reading order: `command` is the program of the wheel. `audit` has the jobs, `stages` what they do once their options
are right. Then what they share: `options`, `main` (exceptions to exit codes), `memory`, `progress`, `result_files`,
`traces`.
"""
