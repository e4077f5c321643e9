"""An HTTP server on loopback that keeps what it receives."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@dataclass
class Receiver:
    """Requests as (method, path, headers, body), and the next answers as (status code, body); then `otherwise`."""

    url: str = ""
    requests: list[tuple[str, str, Message, bytes]] = field(default_factory=list)
    answers: list[tuple[int, bytes]] = field(default_factory=list)
    otherwise: tuple[int, bytes] = (200, b"")


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A server that runs until the block ends."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"] or 0))
            receiver.requests.append((self.command, self.path, self.headers, body))
            code, said = receiver.answers.pop(0) if receiver.answers else receiver.otherwise
            self.send_response(code)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        do_GET = do_HEAD = do_PUT = do_POST

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
