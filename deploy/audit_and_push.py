#!/usr/bin/env python3
"""An audit whose gauges go to a Prometheus Pushgateway.

    PUSHGATEWAY_URL=http://pushgateway:9091 deploy/audit_and_push.py audit --cluster blue --input PATH --output PATH

Runs spark-submit.sh with these arguments and `--metrics`, then replaces all gauges of the cluster in the Pushgateway. A
file on a node would stay there when the next night runs on another node. The exit code is that of the audit, or 1 if
only the push failed. Without PUSHGATEWAY_URL, nothing is pushed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import Request, urlopen

#: Seconds before each further attempt to push.
WAITS = (5, 15, 45)
TIMEOUT_SECONDS = 30


def main(argv: Sequence[str]) -> int:
    """Audits and pushes. Returns the exit code."""
    submit = str(Path(__file__).resolve().parent.parent / "spark-submit.sh")
    gateway = os.environ.get("PUSHGATEWAY_URL", "")
    if not gateway:
        return subprocess.call([submit, *argv])
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--cluster")
    cluster = parser.parse_known_args(argv)[0].cluster
    if not cluster or argv[:1] != ["audit"]:
        say("expected: audit --cluster NAME …, because gauges are pushed under the name of the cluster")
        return 2
    with TemporaryDirectory() as folder:
        metrics = Path(folder, "txnlib.prom")
        code = subprocess.call([submit, argv[0], "--metrics", str(metrics), *argv[1:]])
        if not metrics.exists():
            say("nothing to push: the audit wrote no metrics")
            return code
        return code if push(gateway, cluster, metrics.read_bytes()) else code or 1


def push(gateway: str, cluster: str, metrics: bytes) -> bool:
    """Replaces the gauges of the cluster. Returns whether the Pushgateway accepted them."""
    # In base64, because a name may contain slashes.
    group = urlsafe_b64encode(cluster.encode()).decode().rstrip("=")
    for wait in (*WAITS, None):
        try:
            request = Request(f"{gateway.rstrip('/')}/metrics/job/txnlib/cluster@base64/{group}", metrics, method="PUT")
            with urlopen(request, timeout=TIMEOUT_SECONDS):
                return True
        except (OSError, ValueError) as error:
            say(f"the Pushgateway did not accept the gauges: {error}")
        if wait is not None:
            time.sleep(wait)
    return False


def say(text: str) -> None:
    print(f"txnlib: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
