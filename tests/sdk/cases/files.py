"""Files and directories."""

import os
import re
import uuid

from .harness import case


@case
def uploads(server):
    place = server.place("uploads")
    (place / "directory").mkdir()
    (place / "file").write_text("file")
    (place / "target").write_text("old")
    (place / "link").symlink_to("target")
    (place / "dangling").symlink_to("new")
    send = lambda path, files={"file": ("name", b"12345")}, **more: server.asked(
        "POST", "/api/file/upload", params={"path": str(path)}, files=files, **more
    )
    found = {
        "new": send(place / "new parents/one"),
        "over a file": send(place / "file"),
        "empty": send(place / "empty", {"file": ("name", b"")}),
        "through a link": send(place / "link"),
        "through a dangling link": send(place / "dangling"),
        "through parents": send(place / "directory/../through"),
        "onto a directory": send(place / "directory"),
        "onto a directory with a slash": send(f"{place}/directory/"),
        "a new one with a slash": send(f"{place}/slash/"),
        "below a file": send(place / "file/below"),
        "further below a file": send(place / "file/further/below"),
        "relative": send("relative"),
        "an empty path": send(""),
        "a long name": send(place / ("x" * 300)),
        "a byte of zero": send("/a\0b")["status"],
        "no path": server.asked("POST", "/api/file/upload", files={"file": ("name", b"1")}),
        "nothing": server.asked("POST", "/api/file/upload"),
        "no file": server.asked("POST", "/api/file/upload", params={"path": str(place / "x")}),
        "another name": send(place / "x", {"other": ("name", b"1")}),
        "a field": server.asked(
            "POST", "/api/file/upload", params={"path": str(place / "x")}, files={"file": (None, b"1")}
        ),
        "an empty filename": send(place / "x", {"file": ("", b"1")}),
        "no form": server.asked("POST", "/api/file/upload", params={"path": str(place / "x")}, content=b"1"),
        "JSON": server.asked("POST", "/api/file/upload", params={"path": str(place / "x")}, json={"file": "1"}),
        "a form without a boundary": server.asked(
            "POST", "/api/file/upload", params={"path": str(place / "x")}, content=b"1",
            headers={"Content-Type": "multipart/form-data"},
        ),
        "further fields": send(place / "further", data={"destination_path": "/other"}),
        "two files": send(place / "two", [("file", ("a", b"first")), ("file", ("b", b"second one"))]),
        "a type": send(place / "typed", {"file": ("name", b"12", "text/plain")}),
        "a path in the query twice": server.asked(
            "POST", f"/api/file/upload?path={place}/q1&path={place}/q2", files={"file": ("name", b"1")}
        ),
        "of an older client": server.asked(
            "POST", f"/api/file/upload/{place}/older", files={"file": ("name", b"1")},
            data={"destination_path": str(place / "older")},
        ),
        "large": send(place / "large", {"file": ("name", b"x" * 5_000_000)}),
    }  # fmt: skip
    found["there"] = {
        str(path.relative_to(place)): ["link" if path.is_symlink() else "file", path.stat().st_size]
        for path in sorted(place.rglob("*"))
        if path.is_file() and path.name != "older"
    }
    return found


@case
def downloads(server):
    place = server.place("downloads")
    (place / "directory").mkdir()
    (place / "file").write_bytes(b"0123456789")
    (place / "empty").write_bytes(b"")
    (place / "a b").write_bytes(b"1")
    (place / "ü 😀.txt").write_bytes(b"2")
    (place / 'q"uote\\\'.txt').write_bytes(b"3")
    (place / "page.html").write_bytes(b"<p>")
    (place / "bytes").write_bytes(bytes(range(256)))
    (place / "link").symlink_to("file")
    (place / "dangling").symlink_to("no such")
    os.mkfifo(place / "pipe")
    for path in place.iterdir():
        if path.is_file():
            os.utime(path, (1_700_000_000, 1_700_000_000))
    names = ["content-type", "content-length", "content-disposition", "accept-ranges", "last-modified", "content-range"]
    get = lambda path, **more: server.asked("GET", "/api/file/download", *names, params={"path": str(path)}, **more)
    etag = server.send("GET", "/api/file/download", params={"path": str(place / "file")}).headers["etag"]

    def part(header, **more):
        found = get(place / "file", headers={"Range": header} | more)
        if (found["content-type"] or "").startswith("multipart/byteranges"):
            return [found["status"], "several parts", "0123456789"[4:6] in found["body"]]
        return found

    data = server.send("GET", "/api/file/download", params={"path": str(place / "bytes")}).content
    return {
        "file": get(place / "file"),
        "the mark of its state": bool(re.fullmatch(r'"[^"]+"', etag)),
        "the mark is the same again": etag
        == server.send("GET", "/api/file/download", params={"path": str(place / "file")}).headers["etag"],
        "empty": get(place / "empty"),
        "with a space": get(place / "a b"),
        "with letters": get(place / "ü 😀.txt"),
        "with quotes": get(place / 'q"uote\\\'.txt'),
        "a page": get(place / "page.html"),
        "bytes": data == bytes(range(256)),
        "a link": get(place / "link"),
        "through parents": get(place / "directory/../file"),
        "with a slash": get(f"{place}/file/"),
        "with dots": get(f"{place}/./file"),
        "a dangling link": get(place / "dangling"),
        "missing": get(place / "no such"),
        "below a file": get(place / "file/below"),
        "a directory": get(place / "directory"),
        "a pipe": get(place / "pipe"),
        "a device": get("/dev/null"),
        "relative": get("downloads/file"),
        "an empty path": get(""),
        "a tilde": get("~/file"),
        "a long name": get(place / ("x" * 300)),
        "a byte of zero": get("/a\0b")["status"],
        "no path": server.asked("GET", "/api/file/download"),
        "of an older client": server.asked("GET", f"/api/file/download/{place}/file"),
        "an older client's missing one": server.asked("GET", f"/api/file/download/{place}/no%20such"),
        "the first bytes": part("bytes=0-3"),
        "one byte": part("bytes=9-9"),
        "from a byte on": part("bytes=5-"),
        "the last bytes": part("bytes=-3"),
        "more than there are": part("bytes=5-100"),
        "more last bytes than there are": part("bytes=-100"),
        "behind the end": part("bytes=10-20"),
        "backwards": part("bytes=5-2"),
        "several": part("bytes=0-1,4-5"),
        "several that touch": part("bytes=0-1,2-5"),
        "no range": part("bytes=x"),
        "an empty range": part("bytes="),
        "another unit": part("lines=1-2"),
        "with the same mark": part("bytes=0-3", **{"If-Range": etag}),
        "with another mark": part("bytes=0-3", **{"If-Range": '"other"'}),
        "with the time": part("bytes=0-3", **{"If-Range": "Tue, 14 Nov 2023 22:13:20 GMT"}),
        "unless it is the same": get(place / "file", headers={"If-None-Match": etag}),
        "a range of an empty file": get(place / "empty", headers={"Range": "bytes=0-3"}),
        "a trajectory": server.asked("GET", f"/api/file/download-trajectory/{uuid.uuid4()}"),
        "a trajectory of no id": server.asked("GET", "/api/file/download-trajectory/x"),
    }


@case
def new_directories(server):
    place = server.place("new-directories")
    (place / "file").write_text("")
    make = lambda path: server.asked("POST", "/api/file/create_directory", params={"path": str(path)})
    found = {
        "new": make(place / "a/b c/ü"),
        "again": make(place / "a/b c/ü"),
        "onto a file": make(place / "file"),
        "below a file": make(place / "file/below"),
        "further below a file": make(place / "file/further/below"),
        "relative": make("relative"),
        "an empty path": make(""),
        "a long name": make(place / ("x" * 300)),
        "where nothing can be": make("/proc/x"),
        "no path": server.asked("POST", "/api/file/create_directory"),
        "a path in the body": server.asked("POST", "/api/file/create_directory", json={"path": str(place / "x")}),
    }
    found["there"] = sorted(str(path.relative_to(place)) for path in place.rglob("*"))
    return found


@case
def lists_of_directories(server):
    place = server.place("lists")
    for name in ["b", "A", "a", "Ü", "é", ".hidden", "with space", "B/inner"]:
        (place / name).mkdir(parents=True)
    (place / "file").write_text("")
    (place / "link").symlink_to("b")
    many = server.place("many")
    for number in range(105):
        (many / f"d{number:03}").mkdir()
    get = lambda path, **more: server.asked("GET", "/api/file/search_subdirs", params={"path": str(path)} | more)

    def pages(path, **more):
        found, page = [], None
        for _ in range(20):
            body = get(path, **more | ({"page_id": page} if page else {}))["body"]
            found.append([one["name"] for one in body["items"]])
            page = body["next_page_id"]
            if page is None:
                return found
        return "no end"

    return {
        "all": get(place),
        "hidden ones, too": get(place, include_hidden="true"),
        "hidden ones by 1": get(place, include_hidden="1")["status"],
        "hidden ones by a word": get(place, include_hidden="maybe"),
        "pages of two": pages(place, limit=2),
        "more than a page": [len(page) for page in pages(many)],
        "of many, the next": get(many)["body"]["next_page_id"],
        "a page in lower case": get(place, page_id="with space", limit=1),
        "a page of another case": get(place, page_id="ü", limit=1),
        "an unknown page": get(place, page_id="zzz", limit=1),
        "with a slash": get(f"{place}/", limit=1),
        "with dots": get(f"{place}/b/../b"),
        "through a link": get(place / "link"),
        "empty": get(place / "b"),
        "missing": get(place / "no such"),
        "a file": get(place / "file"),
        "relative": get("lists"),
        "an empty path": get(""),
        "no path": server.asked("GET", "/api/file/search_subdirs"),
        "limit 0": get(place, limit=0),
        "limit 101": get(place, limit=101),
        "limit x": get(place, limit="x"),
    }


@case
def the_home(server):
    for name in ["Projects", "alpha", ".kept"]:
        (server.home / name).mkdir(exist_ok=True)
    (server.home / "link").unlink(missing_ok=True)
    (server.home / "link").symlink_to("alpha")
    get = lambda **more: server.asked("GET", "/api/file/home", params=more)
    plain, hidden = get(), get(include_hidden="true")
    hidden["body"]["favorites"] = [one for one in hidden["body"]["favorites"] if one["label"] in ("alpha", ".kept")]
    return {"plain": plain, "hidden ones, too": hidden, "no word": get(include_hidden="x")}
