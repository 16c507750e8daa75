#!/usr/bin/env python3
"""A web server for the download tests that can misbehave in every way a download meets.

    http_server.py FILE [--log LOG] [--seconds N]

Serves FILE, whatever path is asked for, on a free port of 127.0.0.1, prints the port, and ends when
stdin closes or after N seconds (60). Each request is one line in LOG: "STATUS RANGE IF-RANGE PATH",
"-" for a header that was not sent. The query tells how to answer; without one: ranges, If-Range,
a strong ETag and Last-Modified.

    times=K       only the first K requests of this path meet the troubles below (default: all)
    after=N       close the connection after N bytes of the body
    slow=N        N bytes at once, then a few bytes twenty times a second
    status=CODE   answer with this error
    claim=N       Content-Length is wrong by N
    silent=1      close the connection without an answer
    then=CODE     the request after these K answers with this error

    change=K      from request K + 1 on the file is another one: its bytes reversed, with a new ETag
    ranges=0      always the whole file
    piece=N       at most N bytes of a range at once
    careless=1    ranges are served whatever If-Range says
    etag=0        no ETag; etag=weak: a weak one
    dated=0       no Last-Modified
    chunked=1     no Content-Length, chunks instead
    html=1        an HTML page with status 200
    to=URL        redirect there
    hops=N        redirect to itself N times, with a misleading ETag, then answer
"""
import argparse
import email.utils
import hashlib
import http.server
import os
import re
import select
import socket
import sys
import threading
import time
import urllib.parse

HTML = b"<!DOCTYPE html>\n<html><head><title>Moved</title></head><body>Not here.</body></html>\n"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 20
    content = b""
    modified = ""
    log = None
    lock = threading.Lock()
    requests = {}

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        option = dict(urllib.parse.parse_qsl(url.query))
        with self.lock:
            number = self.requests[self.path] = self.requests.get(self.path, 0) + 1
        self.trouble = option if number <= int(option.get("times", 1 << 30)) else {}
        if "silent" in self.trouble:
            self.note(0)
            return self.hang_up()
        if "status" in self.trouble:
            return self.answer(int(self.trouble["status"]), [], b"no luck\n")
        if "then" in option and number == int(option["times"]) + 1:
            return self.answer(int(option["then"]), [], b"no luck\n")
        if "to" in option:
            return self.answer(302, [("Location", option["to"])], b"elsewhere\n")
        if int(option.get("hops", 0)) > 0:
            option["hops"] = int(option["hops"]) - 1
            onward = url.path + "?" + urllib.parse.urlencode(option)
            return self.answer(302, [("Location", onward), ("ETag", '"of-redirect"')], b"")
        if "html" in option:
            return self.answer(200, [("Content-Type", "text/html")], HTML)
        self.serve_file(option, number)

    def serve_file(self, option, number):
        changed = number > int(option.get("change", 1 << 30))
        body = self.content[::-1] if changed else self.content
        etag = '"%s"' % hashlib.sha256(body).hexdigest()[:16]
        headers = []
        if option.get("etag") != "0":
            headers.append(("ETag", ("W/" if option.get("etag") == "weak" else "") + etag))
        if option.get("dated") != "0":
            headers.append(("Last-Modified", self.modified))
        chunked = "chunked" in option
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        condition = self.headers.get("If-Range")
        valid = "careless" in option or condition in (None, etag, self.modified)
        if not wanted or not valid or option.get("ranges") == "0":
            return self.answer(200, headers, body, chunked)
        start, size = int(wanted.group(1)), len(body)
        if start >= size:
            return self.answer(416, [("Content-Range", "bytes */%d" % size)], b"")
        end = min(size, start + int(option.get("piece", size)))
        headers.append(("Content-Range", "bytes %d-%d/%d" % (start, end - 1, size)))
        self.answer(206, headers, body[start:end], chunked)

    def answer(self, status, headers, body, chunked=False):
        self.note(status)
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if chunked:
            self.send_header("Transfer-Encoding", "chunked")
            body = b"".join(b"%x\r\n%b\r\n" % (len(body[i:i + 4096]), body[i:i + 4096])
                            for i in range(0, len(body), 4096)) + b"0\r\n\r\n"
        else:
            length = len(body) + int(self.trouble.get("claim", 0))
            self.send_header("Content-Length", str(length))
        self.end_headers()
        after = int(self.trouble.get("after", len(body)))
        try:
            self.send_body(body[:after])
        except OSError:
            return self.hang_up()  # the client went away
        if after < len(body) or "claim" in self.trouble:
            self.hang_up()

    def send_body(self, body):
        at_once = int(self.trouble.get("slow", len(body)))
        self.wfile.write(body[:at_once])
        for i in range(at_once, len(body), 100):
            time.sleep(0.05)
            self.wfile.write(body[i:i + 100])

    def hang_up(self):
        self.close_connection = True
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the client was faster

    def note(self, status):
        if self.log:
            with self.lock:
                self.log.write("%d %s %s %s\n" % (
                    status, self.headers.get("Range", "-"),
                    self.headers.get("If-Range", "-").replace(" ", "_"), self.path))

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # a client that goes away is what these tests are about


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--log")
    parser.add_argument("--seconds", type=float, default=60)
    arguments = parser.parse_args()
    with open(arguments.file, "rb") as file:
        Handler.content = file.read()
    Handler.modified = email.utils.formatdate(1500000000, usegmt=True)
    if arguments.log:
        Handler.log = open(arguments.log, "w", buffering=1)
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    end = time.monotonic() + arguments.seconds
    while (left := end - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], left)[0] and not os.read(0, 4096):
            break
    os._exit(0)  # at once, whatever the handlers are doing


main()
