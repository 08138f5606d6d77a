"""ClickHouse's own engine, chdb, behind as much of its HTTP interface as the export of logs uses.

Prints its URL. For each line of input, a statement as a JSON string, it prints the rows as a JSON line. The answer to the first try
of each insert is cut off after the rows were stored, as where a connection breaks.
"""

import gzip
import json
import os
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit

from chdb import session

folder = tempfile.mkdtemp(prefix="clickhouse-")
engine = session.Session(os.path.join(folder, "db"))
lock = threading.Lock()
seen = set()
# Settings of the HTTP interface, which an engine without one does not know.
OF_HTTP = {"query", "database", "wait_end_of_query"}


def zstd(body):
    path = os.path.join(folder, "batch.zst")
    with open(path, "wb") as file:
        file.write(body)
    sql = f"SELECT * FROM file('{path}', LineAsString, 'line String', 'zstd') FORMAT TSVRaw"
    return engine.query(sql).bytes()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        parameters = dict(parse_qsl(urlsplit(self.path).query))
        body = self.rfile.read(int(self.headers["content-length"]))
        with lock:
            encoding = self.headers.get("content-encoding")
            body = {"gzip": gzip.decompress, "zstd": zstd, None: bytes}[encoding](body)
            statement = parameters["query"]
            settings = {name: value for name, value in parameters.items() if name not in OF_HTTP}
            settings = ", ".join(f"{name} = '{value}'" for name, value in settings.items())
            into, form = statement.split(" FORMAT ")
            try:
                engine.query(f"{into} SETTINGS {settings} FORMAT {form}\n{body.decode()}")
            except Exception as error:
                sys.stderr.write(f"{error}\n")
                self.send_response(400)
                self.send_header("X-ClickHouse-Exception-Code", "27")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
        token = parameters["insert_deduplication_token"]
        if token not in seen:
            seen.add(token)
            self.close_connection = True
            return
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"http://127.0.0.1:{server.server_port}", flush=True)
for line in sys.stdin:
    with lock:
        found = engine.query(json.loads(line), "JSONEachRow").bytes().decode()
    rows = [json.loads(row) for row in found.splitlines() if row]
    print(json.dumps(rows), flush=True)
