"""The calls that skills.py makes, and the files that they are about. What must differ has its reason beside it."""

import os

NAVIGATION = ["open_file", "goto_line", "scroll_down", "scroll_up", "search_dir", "search_file", "find_file"]


# Navigation.

WORDS = ["alpha", "beta", "gamma", "def", "ünï", "日本", "𝄞", "x = 1", "#", '"q"', "\t", "  ", "\\n", "a|b"]


def random_text(rng):
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(0, 5))) for _ in range(rng.choice([0, 1, 2, 5, 30, 99, 100, 101, 150, 401]))]
    end = rng.choice(["\n"] * 6 + ["\r\n", "\r"])
    text = end.join(lines) + rng.choice([end, "", end * 3])
    if rng.random() < 0.15 and text:
        at = rng.randrange(len(text))
        text = text[:at] + rng.choice(["\x0c", "\u2028", "\x1c", "\x85", "\x0b", "\0"]) + text[at:]
    return text


def furnish_navigation(base, rng):
    """Both sides look into the same directory: the order of its entries is the system's."""
    os.makedirs(f"{base}/many")
    os.makedirs(f"{base}/some/.hidden/deep")
    os.makedirs(f"{base}/some/empty")
    names = []
    for number in range(40):
        name = f"{base}/file{number}.txt"
        with open(name, "w", encoding="utf-8", newline="") as file:
            file.write(random_text(rng))
        names.append(name)
    for number in range(101):
        with open(f"{base}/many/a{number}.txt", "w") as file:
            file.write(f"needle {number}\n" + ("hundred\n" if number else ""))
    for path, content in (
        ("some/one.py", b"needle\n  needle needle \nno\n"), ("some/.secret", b"needle\n"),
        ("some/.hidden/deep/two.txt", b"a needle\r\nneedle"), ("some/bytes.bin", b"\xff\xfeneedle\xff\nx\x80y\n"),
        ("some/with blank.txt", b"\tneedle \xc3\xa9\n"), ("latin.txt", "é\n".encode("latin-1")), ("none.txt", b""),
    ):
        with open(f"{base}/{path}", "wb") as file:
            file.write(content)
    return names


def navigation(comparison, base, rng):
    names = furnish_navigation(base, rng)
    call = comparison.call
    call("chdir", base)
    for function in ("goto_line", "scroll_down", "scroll_up", "search_file"):
        call(function, *{"goto_line": [1], "search_file": ["x"]}.get(function, []))
    call("open_file", "missing.txt")
    call("search_file", "x", "missing.txt")
    call("goto_line", 1)
    call("scroll_up")
    for _ in range(500):
        function = rng.choice(NAVIGATION[:4] * 2 + ["open_file"] * 2 + ["search_file", "find_file", "search_dir"])
        name = rng.choice(names)
        name = rng.choice([name, os.path.basename(name), "./" + os.path.basename(name)])
        line = rng.choice([1, 2, 49, 50, 51, 99, 100, 101, 149, 150, 151, 300, 350, 351, 400, 401, 402, 0, -1, 7000])
        if function == "open_file":
            args = [name, *rng.choice([[], [line], [line, rng.choice([1, 2, 3, 5, 50, 99, 100, 101, 1000, 0, -5, None])]])]
        elif function == "goto_line":
            args = [line]
        elif function == "search_file":
            args = [rng.choice(WORDS + [""]), *rng.choice([[], [name]])]
        elif function in ("find_file", "search_dir"):
            term = rng.choice(["needle", "hundred", "file1", ".txt", "a1", "", "zzz", "one", " "])
            args = [term, *rng.choice([[], ["some"], ["some/"], ["./some"], ["many"], [f"{base}/some"], ["some/empty"], ["nodir"]])]
        else:
            args = []
        call(function, *args)
    call("search_dir", "needle", dir_path="many")
    call("search_dir", "hundred", dir_path="many")
    call("find_file", file_name="a5", dir_path="many")
    call("open_file", "none.txt")
    call("goto_line", 1)
    call("scroll_down")
    for line in (None, 1.5, "1", True, False):
        call("open_file", names[0], line)
    call("open_file", names[0], context_lines=7)
    call("open_file", "some")
    call("open_file", "")
    call("open_file", "latin.txt", reason="bytes that are no text are shown as such, and do not end the function")
    call("search_file", "x", "latin.txt", reason="bytes that are no text are shown as such, and do not end the function")


# Readers.


def pdf(pages):
    """A PDF file with a line of text on each page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", None, b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    kids = []
    for text in pages:
        stream = f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET".encode("latin-1")
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R "
            b"/Resources << /Font << /F1 3 0 R >> >> >>" % len(objects)
        )
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count %d >>" % (b" ".join(kids), len(kids))
    out, places = b"%PDF-1.4\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)


def furnish_readers(base, rng):
    import docx
    import pptx
    from pptx.util import Inches

    for number in range(8):
        texts = [" ".join(rng.choices(["Hello", "world", "(x)"[1:2], "2024", "end."], k=rng.randint(1, 8))) for _ in range(number)]
        with open(f"{base}/{number}.pdf", "wb") as file:
            file.write(pdf(texts or ["only"]))
        document = docx.Document()
        for text in texts:
            rng.choice([document.add_paragraph, document.add_heading])(text + rng.choice(["", "\n", "\t", " é"]))
        if number % 3 == 1:
            document.add_table(2, 2).cell(0, 0).text = "cell"
        document.save(f"{base}/{number}.docx")
        slides = pptx.Presentation()
        for text in texts:
            slide = slides.slides.add_slide(slides.slide_layouts[rng.choice([0, 1, 5, 6])])
            if slide.shapes.title is not None:
                slide.shapes.title.text = text
            if rng.random() < 0.5:
                box = slide.shapes.add_textbox(Inches(1), Inches(1), Inches(1), Inches(1))
                box.text_frame.text = "box\nof two lines"
            if rng.random() < 0.3:
                slide.shapes.add_table(2, 2, Inches(1), Inches(1), Inches(1), Inches(1))
        slides.save(f"{base}/{number}.pptx")
        parts = [
            r"\section{Title}", r"\textbf{bold} and \emph{it}", r"$a^2 + \alpha$", "plain % comment", r"\begin{itemize}\item a\item b\end{itemize}",
            r"caf\'e", "", r"\unknown{x}", "a~b -- c ``q''", r"\[ \frac{1}{2} \]",
        ]
        with open(f"{base}/{number}.tex", "w") as file:
            file.write("\n\n".join(rng.choices(parts, k=number * 2)) + rng.choice(["", "\n\n"]))
    for end in ("pdf", "docx", "pptx", "tex"):
        with open(f"{base}/bad.{end}", "wb") as file:
            file.write(b"this is none {" if end != "tex" else b"\\begin{x} { $")


def readers(comparison, base, rng):
    furnish_readers(base, rng)
    for kind in ("pdf", "docx", "pptx"):
        for name in (*range(8), "bad", "missing"):
            reason = "the successor of its PDF library reads the file" if (kind, name) == ("pdf", "bad") else None
            comparison.call(f"parse_{kind}", f"{base}/{name}.{kind}", reason=reason)
        comparison.call(f"parse_{kind}", file_path=f"{base}/3.{kind}")
    for name in (*range(8), "bad", "missing"):
        comparison.call("parse_latex", f"{base}/{name}.tex")


# The editor.


def furnish_editor(base):
    os.makedirs(f"{base}/d/e/f")
    os.makedirs(f"{base}/d/.hidden")
    os.symlink("c.txt", f"{base}/link")
    for path, content in (
        ("c.txt", b"a\nb\nc"), ("crlf.txt", b"a\r\nb\r\n"), ("long.txt", b"Line 1\n" * 4000), ("d/x.txt", b"x\n"),
        ("d/e/y.txt", b"y\n"), ("thirty.txt", b"".join(b"l%d\n" % line for line in range(30))), ("empty.txt", b""),
        ("binary.bin", bytes(range(256)) * 8), ("large.txt", b"x" * (10 * 1024 * 1024 + 1)), ("bom.txt", b"\xef\xbb\xbfbom\nx\n"),
        ("uni.txt", "é\u2028ü\x0c日本\n𝄞\n".encode()),
    ):
        with open(f"{base}/{path}", "wb") as file:
            file.write(content)


def editor_cases(call):
    path = "{B}/c.txt"
    edit = lambda *args, **kwargs: call("file_editor", *args, **kwargs)  # noqa: E731
    for name in ("c.txt", "crlf.txt", "long.txt", "thirty.txt", "empty.txt", "bom.txt", "uni.txt", "link", "large.txt",
                 "missing", "c.txt/", "./c.txt", "/c.txt", "d", "d/", "d/e", "c.txt/x", "new.pdf"):
        edit("view", "{B}/" + name)
        edit("str_replace", "{B}/" + name, old_str="nothing like it", new_str="y")
        edit("insert", "{B}/" + name, insert_line=99, new_str="y")
        edit("undo_edit", "{B}/" + name)
        if name in ("d/", "c.txt", "c.txt/", "missing/x", "c.txt/x", "new.pdf"):
            edit("create", "{B}/" + name, "text")
    for view_range in ([], [1, 2], [1, -1], [28, -1], [28, 40], [0, 2], [31, 32], [5, 3], [2, -5], [1], [1, 2, 3], ["a", 2], [1.5, 2],
                       "ab", [None, 1], [True, 2], [1, 10**25], ["'", '"']):
        edit("view", "{B}/thirty.txt", view_range=view_range)
    for view_range in ([], [1, 2], ["a", 2], "ab"):
        edit("view", "{B}/d", view_range=view_range)
    edit("create", "{B}/made.txt")
    edit("create", "{B}/made.txt", "")
    edit("view", "{B}/made.txt")
    edit("str_replace", "{B}/made.txt", old_str="", new_str="text")
    edit("create", "{B}/nodir/x", "text")
    edit("create", "rel.txt", "text")
    edit("view", "c.txt")
    edit("", path)
    edit("nope", path)
    edit(None, path)
    edit("nope", "{B}/missing")
    edit("str_replace", path)
    edit("str_replace", path, old_str="b", new_str="b")
    edit("str_replace", path, old_str="b", new_str="B")
    edit("str_replace", path, old_str="  B  ", new_str="  BB ")
    edit("str_replace", path, old_str="", new_str="x")
    edit("str_replace", path, old_str="BB")
    edit("insert", path)
    edit("insert", path, insert_line=1)
    for line in (0, 1, 2, -1, 3, 99, True):
        edit("insert", path, insert_line=line, new_str=f"line {line}\n")
    edit("insert", path, insert_line=1, new_str="")
    for _ in range(12):
        edit("undo_edit", path)
    edit("create", "{B}/u\u00e9 \U0001d11e.txt", "é\u2028\x01\"\\\n\t</x>")
    edit("view", "{B}/u\u00e9 \U0001d11e.txt")
    wrong_type = "an argument of a wrong type is refused before anything is done, and the error names it"
    edit("view", 5, reason=wrong_type)
    edit("view", None, reason=wrong_type)
    edit("create", "{B}/five.txt", 5, reason=wrong_type)
    edit("str_replace", path, old_str=5, reason=wrong_type)
    edit("view", path, view_range=5, reason=wrong_type)
    edit("insert", path, insert_line="1", new_str="x", reason=wrong_type)
    edit("insert", path, insert_line=1.5, new_str="x", reason=wrong_type)
    no_text = "text that is no Unicode is refused with an error that names the argument"
    edit("view", path + "\udc80", reason=no_text)
    edit("create", "{B}/s.txt", "\udc80", reason=no_text)
    edit("str_replace", "{B}/binary.bin", old_str="a", new_str="b", reason="a binary file is refused with the text for binary files")


def editor_at_random(call, rng):
    files = [f"{{B}}/r{number}.{end}" for number in range(4) for end in ("txt", "py")]
    pieces = ["a", "b\n", "ab", "\n", "x = 1\n", "def f():\n    return 1\n", "  ", "é", "\tc\n", "import os\n"]
    text = lambda most: "".join(rng.choices(pieces, k=rng.randint(0, most)))  # noqa: E731
    for _ in range(400):
        command = rng.choice(["view", "create", "str_replace", "str_replace", "insert", "insert", "undo_edit"])
        kwargs = {}
        if command == "create":
            kwargs["file_text"] = text(20)
        elif command == "view" and rng.random() < 0.6:
            kwargs["view_range"] = [rng.randint(-1, 12), rng.randint(-2, 15)]
        elif command == "str_replace":
            kwargs["old_str"], kwargs["new_str"] = text(2), rng.choice([None, text(3)])
        elif command == "insert":
            kwargs["insert_line"], kwargs["new_str"] = rng.randint(-1, 12), text(3)
        call("file_editor", command, rng.choice(files), **kwargs)


WRONG = [
    "x = y(\ny = 2\n", "def f(:\n  pass\n", "x = 'abc\n", "if x\n y", "  a = 1\n", "a b\n", "[1,2\n3]", "def f():\nreturn 1\n",
    "x = 1 +\n", "é = y(\n", "def f(a, a):\n  pass\n", "print(undefined)\n", "return 1\n", '"""\n', "a\n  b\n",
]


def linting(call, name, cut=None):
    """Edits that are judged; by flake8 if both sides find it."""
    lint = lambda *args, **kwargs: call("file_editor", *args, enable_linting=True, **kwargs)  # noqa: E731
    path = f"{{B}}/{name}.py"
    lint("create", path, "x = 1\ny = 2\n")
    for old, new in (("x = 1", "x = y("), ("x = y(", "x = 3"), ("y = 2", "y = undefined_name"), ("x = 3", "def f(:\n  pass"),
                     ("def f(:", "def f():"), ("y = undefined_name", "  y = 1"), ("  y = 1", "y = 1"), ("y = 1", "def g(a, a): pass")):
        lint("str_replace", path, old_str=old, new_str=new)
    lint("insert", path, insert_line=0, new_str="import os")
    lint("undo_edit", path)
    for number, text in enumerate(WRONG):
        path = f"{{B}}/{name}{number}.py"
        lint("create", path, "first = 1\npass\n")
        lint("str_replace", path, old_str="pass\n", new_str=text, reason=cut if "if x" in text else None)
        lint("insert", path, insert_line=0, new_str="import os")
    lint("create", f"{{B}}/{name}.txt", "x\n")
    lint("str_replace", f"{{B}}/{name}.txt", old_str="x", new_str="y (")


def editor(comparison, bases, rng):
    for base in bases:
        furnish_editor(base)
    editor_cases(comparison.call)
    editor_at_random(comparison.call, rng)
    linting(comparison.call, "lint")


# Media.


def media(comparison, base):
    for name, content in (("a.mp3", b"ID3 sound"), ("p.jpg", b"\xff\xd8 picture"), ("refuse.mp3", b"refuse"), ("v.mp4", b"")):
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


def without_key(comparison):
    comparison.call("names")
