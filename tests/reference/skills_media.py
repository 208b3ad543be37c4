"""Calls of skills.py that are about sounds, pictures and videos, and the service that describes them."""

import json
import re
from http.server import BaseHTTPRequestHandler


class Service(BaseHTTPRequestHandler):
    """Speaks as much of the interface of OpenAI as is used, and says what it was asked."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        kind = self.headers["Content-Type"]
        if kind.startswith("multipart/"):
            mark = kind.split("boundary=")[1].strip('"').encode()
            asked = sorted(
                re.sub(rb"Content-Type: [^\r]*\r\n", b"", part).strip().decode("latin-1").replace("\r\n", "|")
                for part in body.split(b"--" + mark)[1:-1]
            )
        else:
            asked = json.dumps(json.loads(body), sort_keys=True)
        said = json.dumps([self.path, self.headers["Authorization"], asked])
        if "refuse" in said:
            status, answer = 400, {"error": {"message": "refused", "type": "invalid_request_error"}}
        elif kind.startswith("multipart/"):
            status, answer = 200, {"text": said}
        else:
            message = {"role": "assistant", "content": said}
            status, answer = (
                200,
                {
                    "id": "1",
                    "object": "chat.completion",
                    "created": 1,
                    "model": "m",
                    "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
                },
            )
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def media(comparison, base):
    for name, content in (
        ("a.mp3", b"ID3 sound"),
        ("p.jpg", b"\xff\xd8 picture"),
        ("refuse.mp3", b"refuse"),
        ("v.mp4", b""),
    ):
        with open(f"{base}/{name}", "wb") as file:
            file.write(content)
    call = comparison.call
    call("names")
    words = "the service's own words are shown in another order"
    call("parse_audio", f"{base}/a.mp3")
    call("parse_audio", f"{base}/a.mp3", model="whisper-2")
    call("parse_audio", f"{base}/refuse.mp3", reason=words)
    call("parse_audio", f"{base}/missing.mp3")
    call("parse_image", f"{base}/p.jpg")
    call("parse_image", f"{base}/p.jpg", task="Say é.")
    call("parse_image", f"{base}/p.jpg", "refuse", reason=words)
    call("parse_image", f"{base}/missing.jpg")
    call("setenv", OPENAI_MODEL="another", MAX_TOKEN="7", OPENAI_API_KEY="key two")
    call("parse_image", f"{base}/p.jpg")
    videos(comparison, base)


def videos(comparison, base):
    call = comparison.call
    try:
        import cv2
        import numpy
    except ModuleNotFoundError:
        call("parse_video", f"{base}/v.mp4", reason="a missing library is named, with what installs it")
        print("skipped videos: the reference has no OpenCV")
        comparison.skipped += 1
        return
    for count in (0, 1, 5, 40, 100, 950):
        path = f"{base}/{count}.avi"
        video = cv2.VideoWriter(path, cv2.VideoWriter_fourcc(*"MJPG"), 25, (16, 16))
        for number in range(count):
            video.write(numpy.full((16, 16, 3), number % 256, numpy.uint8))
        video.release()
        for words in ({}, {"frame_interval": 1}, {"frame_interval": 7, "task": "Count."}, {"frame_interval": 1000}):
            call("parse_video", path, **words)
    call("parse_video", f"{base}/5.avi", "refuse", reason="the service's own words are shown in another order")
    call("parse_video", f"{base}/p.jpg")
    call("parse_video", f"{base}/missing.avi")
