"""A local OpenAI-compatible server whose answers are scripted: what a provider may do, good and bad, without a network."""

import json
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def completion(text, finish_reason="stop", prompt_tokens=100, reply_tokens=50, refusal=None):
    """The body of an ordinary answer."""
    message = {"role": "assistant", "content": text} | ({"refusal": refusal} if refusal else {})
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "scripted",
            "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
            "usage": {"prompt_tokens": prompt_tokens, "completion_tokens": reply_tokens,
                      "total_tokens": prompt_tokens + reply_tokens}}


def block(code, before="", after=""):
    """An answer with a code block."""
    return completion(f"{before}\n```python\n{code}\n```\n{after}")


def error(status, message, **headers):
    """An answer of the provider's own."""
    return {"status": status, "headers": headers, "body": {"error": {"message": message, "type": "x", "code": str(status)}}}


class ModelServer:
    """`script`: answers in order, the last one for ever; one may be a function of the request's body."""

    def __init__(self, script):
        self.script, self.requests, self.keys = list(script), [], []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.keys.append(self.headers.get("Authorization", ""))
                server.requests.append(body)
                answer = server.script[min(len(server.requests), len(server.script)) - 1]
                server.reply(self, answer(body) if callable(answer) else answer)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.base = f"http://127.0.0.1:{self.http.server_port}/v1"

    def reply(self, handler, answer):
        """Send it: a dict, text (an HTML page), or seconds to hang."""
        if isinstance(answer, (int, float)):
            time.sleep(answer)
            return
        page = isinstance(answer, str)
        status = 200 if page else answer.get("status", 200)
        data = answer.encode() if page else json.dumps(answer.get("body", answer)).encode()
        handler.send_response(status)
        for name, value in ({} if page else answer.get("headers", {})).items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Type", "text/html" if page else "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)


@contextmanager
def serving(*script):
    """The server, while it runs."""
    server = ModelServer(script)
    thread = threading.Thread(target=server.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.http.shutdown()
        server.http.server_close()
