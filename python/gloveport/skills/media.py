"""Has sounds and pictures described by a model of a service that speaks the interface of OpenAI.

The key is ``OPENAI_API_KEY`` or ``SANDBOX_ENV_OPENAI_API_KEY``, the service ``OPENAI_BASE_URL``, the model for pictures
``OPENAI_MODEL``, and the length of its answers ``MAX_TOKEN``. All are read at each call. ``parse_video`` needs OpenCV.
"""

from __future__ import annotations

import base64
import json
import os
import urllib.error
import urllib.request
import uuid
from typing import Any

__all__ = ["parse_audio", "parse_video", "parse_image"]

KEYS = ("OPENAI_API_KEY", "SANDBOX_ENV_OPENAI_API_KEY")
SERVICE = "https://api.openai.com/v1"
MODEL = "gpt-4o"
MAX_TOKEN = "500"
TASK = "Describe this image as detail as possible."

TIME_LIMIT = 600.0
"""Seconds that the service may be silent."""

DISTANCE = 10
"""From one picture of a video to the next that may be described."""

MOST_FRAMES = 30
"""About how many pictures of one video are described."""


def is_configured() -> bool:
    """Whether there is a key of the service."""
    return bool(_key())


def _key() -> str:
    return next((os.environ[name] for name in KEYS if os.environ.get(name)), "")


def _asked(path: str, body: bytes, content_type: str) -> dict[str, Any]:
    """The service's answer. An error has the service's own words."""
    service = (os.environ.get("OPENAI_BASE_URL") or SERVICE).rstrip("/")
    headers = {"Authorization": f"Bearer {_key()}", "Content-Type": content_type, "Accept": "application/json"}
    request = urllib.request.Request(f"{service}/{path}", data=body, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=TIME_LIMIT) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        said = error.read(10_000).decode("utf-8", "replace")
        raise RuntimeError(f"{service} answered with status {error.code}: {said}") from error
    except urllib.error.URLError as error:
        raise RuntimeError(f"{service} can not be reached: {error.reason}") from error


def _transcribed(file_path: str, model: str) -> str:
    mark = uuid.uuid4().hex
    name = os.path.basename(file_path).replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    with open(file_path, "rb") as file:
        sound = file.read()
    body = (
        f'--{mark}\r\nContent-Disposition: form-data; name="model"\r\n\r\n{model}\r\n'
        f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode() + sound + f"\r\n--{mark}--\r\n".encode()
    return _asked("audio/translations", body, f"multipart/form-data; boundary={mark}")["text"]


def _described(picture: bytes, task: str) -> str:
    url = f"data:image/jpeg;base64,{base64.b64encode(picture).decode()}"
    request = {
        "model": os.environ.get("OPENAI_MODEL") or MODEL,
        "messages": [
            {
                "role": "user",
                "content": [{"type": "text", "text": task}, {"type": "image_url", "image_url": {"url": url}}],
            }
        ],
        "max_tokens": int(os.environ.get("MAX_TOKEN") or MAX_TOKEN),
    }
    answer = _asked("chat/completions", json.dumps(request).encode(), "application/json")
    return answer["choices"][0]["message"]["content"]


def parse_audio(file_path: str, model: str = "whisper-1") -> None:
    """Prints what is said in a recording, in English.

    Args:
        file_path: The recording.
        model: The model that listens to it.
    """
    print(f"[Transcribing audio file from {file_path}]")
    try:
        print(_transcribed(file_path, model))
    except Exception as error:
        print(f"Error transcribing audio file: {error}")


def parse_image(file_path: str, task: str = TASK) -> None:
    """Prints what a model sees in a picture.

    Args:
        file_path: The picture.
        task: What the model is to do.
    """
    print(f"[Reading image file from {file_path}]")
    try:
        with open(file_path, "rb") as file:
            print(_described(file.read(), task))
    except Exception as error:
        print(f"Error with the request: {error}")


def _places(total: int, interval: int) -> range:
    """Which of the pictures of a video are described: of every tenth one in so many, or fewer if they are too many."""
    places = range(0, max(0, total), DISTANCE)
    return places[:: max(1, interval, len(places) // MOST_FRAMES)]


def _frames(cv2: Any, file_path: str, interval: int) -> list[bytes]:
    """Pictures of a video as JPEG."""
    video = cv2.VideoCapture(file_path)
    try:
        pictures = []
        for place in _places(int(video.get(cv2.CAP_PROP_FRAME_COUNT)), interval):
            video.set(cv2.CAP_PROP_POS_FRAMES, place)
            there, frame = video.read()
            if not there:
                break
            pictures.append(cv2.imencode(".jpg", frame)[1].tobytes())
        return pictures
    finally:
        video.release()


def parse_video(file_path: str, task: str = TASK, frame_interval: int = 30) -> None:
    """Prints what a model sees in some pictures of a video.

    Args:
        file_path: The video.
        task: What the model is to do with each picture.
        frame_interval: Of every tenth picture one in so many is looked at; fewer, if that is more than about 30.
    """
    print(f"[Processing video file from {file_path} with frame interval {frame_interval}]")
    try:
        import cv2
    except ModuleNotFoundError:
        print(
            "ERROR: The Python package opencv-python-headless is needed and is not installed. "
            "Install it with: pip install opencv-python-headless"
        )
        return
    try:
        pictures = _frames(cv2, file_path, frame_interval)
        print(f"Totally {len(pictures)} would be analyze...\n")
        for number, picture in enumerate(pictures, 1):
            print(f"Process the {file_path}, current No. {number * frame_interval} frame...")
            print(f"Frame {number}'s content: {_described(picture, task)}\n")
    except Exception as error:
        print(f"Error with the request: {error}")
