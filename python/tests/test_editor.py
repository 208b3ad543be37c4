"""file_editor (ipython-and-plugins 3.3), with a server of the socket that the environment names."""

import json
import os
import re
import signal
import socket
import tempfile
import threading
import unittest

from gloveport.skills import editor, file_editor
from support import InDirectory, run

MARKED = re.compile(r"<(oh_aci_output_[0-9a-f]{32})>\n(\{.*\})\n</\1>", re.DOTALL)


def body(text):
    """The JSON text between the marks."""
    match = MARKED.fullmatch(text)
    assert match, text
    return match.group(2)


def shown(text):
    return json.loads(body(text))["formatted_output_and_error"]


class Editor(InDirectory):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.directory, "a.txt")

    def test_the_answer_has_the_form_of_the_reference(self):
        created = body(file_editor("create", self.path, file_text='é "x"\n'))
        said = f"File created successfully at: {self.path}"
        expected = (
            f'{{"output": "{said}","error": null,"path": "{self.path}","prev_exist": false,"old_content": null,'
            f'"new_content": "\\u00e9 \\"x\\"\\n", "formatted_output_and_error": "{said}"}}'
        )
        self.assertEqual(created, expected)
        error = "Parameter `file_text` is required for command: create."
        expected = f'{{"output": null,"error": "{error}", "formatted_output_and_error": "ERROR:\\n{error}"}}'
        self.assertEqual(body(file_editor("create", self.path + "2")), expected)

    def test_each_answer_has_a_mark_of_its_own(self):
        marks = {MARKED.fullmatch(file_editor("view", self.directory)).group(1) for _ in range(20)}
        self.assertEqual(len(marks), 20)

    def test_every_command_reaches_the_editor(self):
        path = self.path
        file_editor("create", path, "a\nb\nc\n")
        head = f"Here's the result of running `cat -n` on {path}:\n"
        self.assertEqual(shown(file_editor("view", path, view_range=[2, 3])), f"{head}     2\tb\n     3\tc\n")
        self.assertEqual(shown(file_editor("view", path, view_range=(1, 1))), f"{head}     1\ta\n")
        replaced = json.loads(body(file_editor("str_replace", path, old_str="b", new_str="B")))
        self.assertEqual([replaced["old_content"], replaced["new_content"]], ["a\nb\nc\n", "a\nB\nc\n"])
        self.assertEqual([replaced["prev_exist"], replaced["path"]], [True, path])
        file_editor("insert", path, insert_line=0, new_str="first")
        with open(path) as file:
            self.assertEqual(file.read(), "first\na\nB\nc\n")
        undone = f"Last edit to {path} undone successfully. {head}     1\ta\n     2\tB\n     3\tc\n     4\t\n"
        self.assertEqual(shown(file_editor("undo_edit", path)), undone)
        file_editor("str_replace", path, old_str="B\n")
        with open(path) as file:
            self.assertEqual(file.read(), "a\nc\n")

    def test_a_directory_is_shown_with_an_empty_error(self):
        answer = json.loads(body(file_editor("view", self.directory)))
        self.assertEqual([answer["error"], answer["old_content"], answer["new_content"]], ["", None, None])

    def test_refusals_are_answers(self):
        unknown = (
            "ERROR:\nUnrecognized command {}. The allowed commands for the oh_editor tool are: "
            "view, create, str_replace, insert, undo_edit"
        )
        self.write("a.txt", "x\n")
        for arguments, expected in [
            (("nope", self.path), unknown.format("nope")),
            ((None, self.path), unknown.format("None")),
            (("view", "a.txt"), "ERROR:\nInvalid `path` parameter: a.txt. The path should be an absolute path, starting with `/`."),
            (("view", self.path, None, ["a", 1.5]), "ERROR:\nInvalid `view_range` parameter: ['a', 1.5]. It should be a list of two integers."),
            (("view", self.path, None, "ab"), "ERROR:\nInvalid `view_range` parameter: ab. It should be a list of two integers."),
            (("insert", self.path, None, None, None, "x", 10 ** 30),
             f"ERROR:\nInvalid `insert_line` parameter: {1 << 62}. It should be within the range of allowed values: [0, 1]"),
        ]:
            self.assertEqual(shown(file_editor(*arguments)), expected)

    def test_arguments_of_a_wrong_type_are_named(self):
        for arguments, error in [
            (dict(command="view", path=5), None),
            (dict(command="create", path=self.path, file_text=5), "file_text must be a string, not int"),
            (dict(command="str_replace", path=self.path, old_str=b""), "old_str must be a string, not bytes"),
            (dict(command="insert", path=self.path, insert_line="1"), "insert_line must be an integer, not str"),
            (dict(command="view", path=self.path, view_range=5), "view_range must be a list of two integers, not int"),
        ]:
            with self.assertRaises(TypeError) as raised:
                file_editor(**arguments)
            if error:
                self.assertEqual(str(raised.exception), error)
        with self.assertRaisesRegex(ValueError, "file_text can not be sent to the editor"):
            file_editor("create", self.path, "\udc80")

    def test_an_edit_is_judged_on_request(self):
        path = os.path.join(self.directory, "a.py")
        file_editor("create", path, "x = 1\n")
        change = {"old_str": "x = 1", "new_str": "x = ("}
        self.assertNotIn("linting", shown(file_editor("str_replace", path, **change)).lower())
        file_editor("undo_edit", path)
        judged = shown(file_editor("str_replace", path, enable_linting=True, **change))
        self.assertRegex(judged, r"\n\nLinting issues found in the changes:\n- Line 1, Column \d+: .*never closed\n\nReview")

    def test_threads_take_turns(self):
        answers = []
        paths = [self.write(f"{number}.txt", f"{number}\n" * 1000) for number in range(8)]

        def view(path):
            for _ in range(20):
                answers.append((path, json.loads(body(file_editor("view", path)))["path"]))

        threads = [threading.Thread(target=view, args=(path,)) for path in paths]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), 160)
        self.assertEqual([pair for pair in answers if pair[0] != pair[1]], [])

    def test_a_forked_process_has_a_history_of_its_own(self):
        file_editor("create", self.path, "one")
        file_editor("str_replace", self.path, old_str="one", new_str="two")
        read, write = os.pipe()
        with editor._editor._lock:
            pid = os.fork()
            if pid == 0:
                try:
                    os.write(write, shown(file_editor("undo_edit", self.path)).encode())
                finally:
                    os._exit(0)
        os.close(write)
        os.waitpid(pid, 0)
        with os.fdopen(read) as pipe:
            self.assertEqual(pipe.read(), f"ERROR:\nNo edit history found for {self.path}.")
        self.assertIn("undone successfully", shown(file_editor("undo_edit", self.path)))


class WithoutServer(InDirectory):
    """Servers that are not there, or not as they should be."""

    CODE = "from gloveport.skills import *\ntry: print(file_editor('view', '/'))\nexcept ConnectionError as error: print(error)"

    def test_a_kernel_that_was_not_started_by_gloveport_says_so(self):
        said = run(self.CODE, GLOVEPORT_EDITOR_SOCKET=None)
        self.assertIn("GLOVEPORT_EDITOR_SOCKET is not set", said)

    def test_a_server_that_is_gone_is_named(self):
        said = run(self.CODE, GLOVEPORT_EDITOR_SOCKET="/nowhere/socket")
        self.assertEqual(
            said,
            "The file editor of the sandbox's server can not be reached at /nowhere/socket: "
            "[Errno 2] No such file or directory. The server may have ended; start it again, and restart the kernel.\n",
        )

    def served(self, *answers):
        """A connection whose server answers so to one request each, and hangs up."""
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        path = os.path.join(directory.name, "socket")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(1)
        self.addCleanup(listener.close)

        def serve():
            stream, _ = listener.accept()
            with stream, stream.makefile("rwb") as file:
                for answer in answers:
                    file.readline()
                    file.write(answer)
                    file.flush()

        thread = threading.Thread(target=serve)
        thread.start()
        self.addCleanup(thread.join)
        before = os.environ.get(editor.VARIABLE)
        os.environ[editor.VARIABLE] = path
        self.addCleanup(lambda: os.environ.pop(editor.VARIABLE) if before is None else os.environ.update({editor.VARIABLE: before}))
        connection = editor._Editor()
        self.addCleanup(connection._close)
        return connection

    def test_a_server_that_hangs_up_is_an_error_that_says_what_is_unknown(self):
        with self.assertRaises(editor.EditorUnavailable) as raised:
            self.served(b"").ask({})
        self.assertIn("does not answer", str(raised.exception))
        self.assertIn("Whether the last edit was done is not known", str(raised.exception))

    def test_a_refusal_is_an_error_with_its_reason(self):
        with self.assertRaises(editor.EditorUnavailable) as raised:
            self.served(b'{"refused": "64 kernels are connected already; end one"}\n').ask({})
        expected = "The file editor refuses the request: 64 kernels are connected already; end one"
        self.assertEqual(str(raised.exception), expected)

    def test_the_answer_of_an_interrupted_request_is_passed_over(self):
        connection = self.served(b'{"id": 1, "error": "fi', b'rst"}\n{"id": 2, "error": "second"}\n')

        def interrupt(*_):
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGALRM, interrupt)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with self.assertRaises(KeyboardInterrupt):
            connection.ask({})
        self.assertEqual(connection.ask({}), {"id": 2, "error": "second"})


if __name__ == "__main__":
    unittest.main()
