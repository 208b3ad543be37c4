"""What a model hears and sees (ipython-and-plugins 3.2), of a service that says what it was asked."""

import base64
import json
import os
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer

from gloveport.skills import media
from support import InDirectory, printed, run

NAMES = ("OPENAI_API_KEY", "SANDBOX_ENV_OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "MAX_TOKEN")
TASK = "Describe this image as detail as possible."


class Service(BaseHTTPRequestHandler):
    """Speaks as much of the published interface as is used."""

    asked = []
    status = 200

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.asked.append((self.path, self.headers["Authorization"], self.headers["Content-Type"], body))
        text = f"answer {len(self.asked)}"
        answer = {"text": text} if "audio" in self.path else {"choices": [{"message": {"content": text}}]}
        data = json.dumps(answer if self.status == 200 else {"error": {"message": "no quota"}}).encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


class Media(InDirectory):
    def setUp(self):
        super().setUp()
        Service.asked, Service.status = [], 200
        service = HTTPServer(("127.0.0.1", 0), Service)
        self.addCleanup(service.server_close)
        thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(service.shutdown)
        self.address = f"http://127.0.0.1:{service.server_port}/v1"
        for name in NAMES:
            before = os.environ.pop(name, None)
            self.addCleanup(self.restore, name, before)
        os.environ.update(OPENAI_API_KEY="the key", OPENAI_BASE_URL=self.address)

    def restore(self, name, value):
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value

    def test_a_recording_is_sent_and_the_text_printed(self):
        self.write("a b.mp3", b"sound\r\n--")
        expected = "[Transcribing audio file from a b.mp3]\nanswer 1\n"
        self.assertEqual(printed(media.parse_audio, "a b.mp3"), expected)
        printed(media.parse_audio, "a b.mp3", model="another")
        (path, key, kind, body), (_, _, _, second) = Service.asked
        self.assertEqual((path, key), ("/v1/audio/translations", "Bearer the key"))
        mark = kind.split("boundary=")[1].encode()
        parts = body.split(b"--" + mark)
        self.assertEqual(parts[1], b'\r\nContent-Disposition: form-data; name="model"\r\n\r\nwhisper-1\r\n')
        self.assertIn(b'name="file"; filename="a b.mp3"\r\n', parts[2])
        self.assertTrue(parts[2].endswith(b"\r\n\r\nsound\r\n--\r\n"))
        self.assertEqual(parts[3], b"--\r\n")
        self.assertIn(b"\r\n\r\nanother\r\n", second)

    def test_a_picture_is_sent_with_the_task(self):
        self.write("p.jpg", b"\xff\xd8")
        self.assertEqual(printed(media.parse_image, "p.jpg"), "[Reading image file from p.jpg]\nanswer 1\n")
        os.environ.update(OPENAI_MODEL="mine", MAX_TOKEN="7", OPENAI_API_KEY="", SANDBOX_ENV_OPENAI_API_KEY="other key")
        printed(media.parse_image, "p.jpg", "Count.")
        url = "data:image/jpeg;base64," + base64.b64encode(b"\xff\xd8").decode()
        for (path, key, kind, body), wanted in zip(
            Service.asked, [("the key", "gpt-4o", 500, TASK), ("other key", "mine", 7, "Count.")]
        ):
            content = [{"type": "text", "text": wanted[3]}, {"type": "image_url", "image_url": {"url": url}}]
            expected = {"model": wanted[1], "max_tokens": wanted[2], "messages": [{"role": "user", "content": content}]}
            self.assertEqual((path, key, kind), ("/v1/chat/completions", f"Bearer {wanted[0]}", "application/json"))
            self.assertEqual(json.loads(body), expected)

    def test_what_fails_is_said_in_the_words_of_the_service_or_the_system(self):
        self.write("p", b"x")
        missing = "[Errno 2] No such file or directory: 'missing'"
        for function, head, error in (
            (media.parse_audio, "[Transcribing audio file from {}]", "Error transcribing audio file: {}"),
            (media.parse_image, "[Reading image file from {}]", "Error with the request: {}"),
        ):
            expected = f"{head.format('missing')}\n{error.format(missing)}\n"
            self.assertEqual(printed(function, "missing"), expected)
            Service.status = 429
            said = error.format(f'{self.address} answered with status 429: {{"error": {{"message": "no quota"}}}}')
            self.assertEqual(printed(function, "p"), f"{head.format('p')}\n{said}\n")

    def test_the_functions_are_there_only_with_a_key(self):
        code = "from gloveport.skills import *\nprint([name for name in dir() if name.startswith('parse_')])"
        without = ["parse_docx", "parse_latex", "parse_pdf", "parse_pptx"]
        every = sorted([*without, "parse_audio", "parse_image", "parse_video"])
        for keys, expected in (
            ({}, without), ({"OPENAI_API_KEY": ""}, without), ({"OPENAI_API_KEY": "x"}, every),
            ({"SANDBOX_ENV_OPENAI_API_KEY": "x"}, every),
        ):
            environment = {**{name: None for name in NAMES}, **keys}
            self.assertEqual(run(code, **environment), f"{expected}\n", keys)

    def test_about_thirty_pictures_of_a_video_are_described(self):
        for total, interval, count, distance in [
            (0, 1, 0, 10), (-1, 1, 0, 10), (1, 30, 1, 300), (5, 1, 1, 10), (60, 1, 6, 10), (61, 2, 4, 20), (127, 7, 2, 70),
            (400, 1, 40, 10), (599, 1, 30, 20), (599, 7, 9, 70), (950, 2, 32, 30), (3000, 7, 30, 100), (400, 0, 40, 10),
        ]:
            places = media._places(total, interval)
            self.assertEqual((len(places), places.step), (count, distance), (total, interval))

    def test_a_video_without_opencv_names_what_installs_it(self):
        hide = "sys.modules['cv2'] = None\n"
        said = run(f"{hide}from gloveport.skills.media import parse_video\nparse_video('v.mp4', frame_interval=5)")
        expected = (
            "[Processing video file from v.mp4 with frame interval 5]\n"
            "ERROR: The Python package opencv-python-headless is needed and is not installed. "
            "Install it with: pip install opencv-python-headless\n"
        )
        self.assertEqual(said, expected)


if __name__ == "__main__":
    unittest.main()
