"""The names under which the functions are found, and what they look like."""

import inspect
import os
import unittest

import gloveport.skills as skills
from support import PACKAGES, InDirectory, run

NAMES = [
    "open_file", "goto_line", "scroll_down", "scroll_up", "search_dir", "search_file", "find_file", "parse_pdf",
    "parse_docx", "parse_latex", "parse_pptx", "file_editor",
]
TASK = "'Describe this image as detail as possible.'"
SIGNATURES = {
    "open_file": "path: str, line_number: int | None = 1, context_lines: int | None = 100",
    "goto_line": "line_number: int",
    "scroll_down": "",
    "scroll_up": "",
    "search_dir": "search_term: str, dir_path: str = './'",
    "search_file": "search_term: str, file_path: str | None = None",
    "find_file": "file_name: str, dir_path: str = './'",
    "parse_pdf": "file_path: str",
    "parse_docx": "file_path: str",
    "parse_latex": "file_path: str",
    "parse_pptx": "file_path: str",
    "parse_audio": "file_path: str, model: str = 'whisper-1'",
    "parse_image": f"file_path: str, task: str = {TASK}",
    "parse_video": f"file_path: str, task: str = {TASK}, frame_interval: int = 30",
    "file_editor": (
        "command: str, path: str, file_text: str | None = None, view_range: list[int] | None = None, "
        "old_str: str | None = None, new_str: str | None = None, insert_line: int | None = None, "
        "enable_linting: bool = False"
    ),
}
THEIRS = "openhands.runtime.plugins.agent_skills.agentskills"
STAR = f"from {THEIRS} import *\nprint(open_file.__module__)"


class Package(InDirectory):
    def test_every_function_has_the_signature_of_the_spec(self):
        for name, expected in SIGNATURES.items():
            function = getattr(skills, name, None) or getattr(skills.media, name)
            returned = "str" if name == "file_editor" else "None"
            signature = f"({expected}) -> {returned}"
            self.assertEqual(str(inspect.signature(function)).replace("'", ""), signature.replace("'", ""), name)
            self.assertTrue(inspect.getdoc(function), name)

    def test_both_names_give_the_same_functions_and_nothing_else(self):
        for module in ("gloveport.skills", THEIRS):
            code = f"before = set(dir())\nfrom {module} import *\nprint(sorted(set(dir()) - before - {{'before'}}))"
            said = run(code, OPENAI_API_KEY=None, SANDBOX_ENV_OPENAI_API_KEY=None)
            self.assertEqual(said, f"{sorted(NAMES)}\n")

    def test_nothing_is_read_or_written_when_it_is_imported(self):
        code = "import os; before = set(sys.modules)\nimport gloveport.skills\nprint(sorted(set(sys.modules) & {'docx', 'pypdf', 'pptx', 'cv2', 'openai', 'pylatexenc'}))"
        self.assertEqual(run(code), "[]\n")
        self.assertEqual(os.listdir(self.directory), [])

    def test_an_installed_package_of_that_name_comes_first_and_is_whole(self):
        self.write("site/openhands/__init__.py", "mine = 1\n")
        self.write("site/openhands/runtime/__init__.py", "mine = 2\n")
        code = f"import openhands, openhands.runtime\nprint(openhands.mine, openhands.runtime.mine)\ntry:\n    import {THEIRS}\nexcept ModuleNotFoundError as error: print(error)\n"
        code += "from gloveport.skills import *\nprint(open_file.__module__)"
        said = run(code, path=[os.path.join(self.directory, "site")])
        self.assertEqual(said, "1 2\nNo module named 'openhands.runtime.plugins'\ngloveport.skills.navigation\n")

    def test_an_installed_package_without_init_files_is_added_to(self):
        self.write("site/openhands/sdk/__init__.py", "mine = 1\n")
        said = run(f"import openhands.sdk\nprint(openhands.sdk.mine)\n{STAR}", path=[os.path.join(self.directory, "site")])
        self.assertEqual(said, "1\ngloveport.skills.navigation\n")

    def test_the_real_functions_of_that_name_are_not_replaced(self):
        self.write("site/openhands/__init__.py", "")
        for part in ("runtime", "runtime/plugins", "runtime/plugins/agent_skills"):
            self.write(f"site/openhands/{part}/__init__.py", "")
        self.write("site/openhands/runtime/plugins/agent_skills/agentskills.py", "def open_file(): pass\n")
        self.assertEqual(run(STAR, path=[os.path.join(self.directory, "site")]), f"{THEIRS}\n")

    def test_no_directory_of_the_other_name_is_a_package_of_its_own(self):
        files = [name for _, _, names in os.walk(os.path.join(PACKAGES, "openhands")) for name in names if name.endswith(".py")]
        self.assertEqual(files, ["agentskills.py"])


if __name__ == "__main__":
    unittest.main()
