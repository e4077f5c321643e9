"""Rules of findings: from typed rows to rows of `findings`."""
