#!/usr/bin/env python3
"""serve.py [--plain] [--port N] [FOLDER]: serves the page (build/web/page) on a loopback address.

Its headers make the page cross-origin isolated, so that it has threads. --plain leaves them out, as a host does that knows
nothing of them: the page works there too, with one thread.
"""
import argparse
import functools
import http.server
import pathlib


class Handler(http.server.SimpleHTTPRequestHandler):
    plain = False
    extensions_map = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm",
                      ".js": "text/javascript", ".gz": "application/octet-stream"}

    def end_headers(self):
        if not self.plain:
            self.send_header("Cross-Origin-Opener-Policy", "same-origin")
            self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()

    def log_message(self, *_):
        pass


def main():
    parser = argparse.ArgumentParser(description="serves the page on a loopback address")
    parser.add_argument("--plain", action="store_true", help="without the headers of isolation")
    parser.add_argument("--port", type=int, default=8017, help="0: any that is free")
    parser.add_argument("folder", nargs="?", default=pathlib.Path(__file__).resolve().parents[1] / "build/web/page")
    args = parser.parse_args()
    Handler.plain = args.plain
    handler = functools.partial(Handler, directory=str(args.folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", args.port), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


main()
