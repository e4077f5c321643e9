"""An HTTP server on loopback that keeps what it receives."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Receiver:
    """Requests as (method, path, content type, body), and the status codes of the next answers; then 200."""

    url: str = ""
    requests: list[tuple[str, str, str | None, bytes]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A server that runs until the block ends."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.requests.append((self.command, self.path, self.headers["Content-Type"], body))
            self.send_response(receiver.answers.pop(0) if receiver.answers else 200)
            self.end_headers()

        do_PUT = do_POST

        def log_message(self, *_: object) -> None:
            """Prints nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
