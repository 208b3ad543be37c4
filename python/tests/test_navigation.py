"""The window on text files, and the searches (ipython-and-plugins 3.1)."""

import importlib
import unittest

from gloveport.skills import navigation
from support import InDirectory, printed

NONE_OPEN = "ERROR: No file open. Use the open_file function first.\n"
BEGIN, END = "(this is the beginning of the file)", "(this is the end of the file)"
HINT = "[Use `scroll_down` to view the next 100 lines of the file!]"


def lines(first, last):
    return [f"{number}|Line {number}" for number in range(first, last + 1)]


class Navigation(InDirectory):
    def setUp(self):
        super().setUp()
        importlib.reload(navigation)

    def numbered(self, count, name="file.txt"):
        return self.write(name, "".join(f"Line {number}\n" for number in range(1, count + 1)))

    def shown(self, path, total, *parts):
        return "\n".join([f"[File: {path} ({total} lines total)]", *parts]) + "\n"

    def test_a_short_file_is_shown_whole(self):
        path = self.numbered(5)
        expected = self.shown(path, 5, BEGIN, *lines(1, 5), END)
        for argument in (path, "file.txt", "./file.txt"):
            self.assertEqual(printed(navigation.open_file, argument), expected)

    def test_a_long_file_is_shown_in_part_with_a_hint(self):
        path = self.numbered(1000)
        expected = self.shown(path, 1000, BEGIN, *lines(1, 50), "(950 more lines below)", HINT)
        self.assertEqual(printed(navigation.open_file, path, 1, 50), expected)
        self.assertEqual(printed(navigation.open_file, path, line_number=1, context_lines=50), expected)

    def test_the_window_keeps_its_size_at_both_ends(self):
        path = self.numbered(1000)
        for line, window, first, last in [
            (1, 100, 1, 100), (50, 100, 1, 100), (51, 100, 1, 100), (52, 100, 2, 102), (500, 100, 450, 550),
            (950, 100, 901, 1000), (1000, 100, 901, 1000), (500, 1, 499, 501), (1, 1, 1, 1), (1000, 1, 1000, 1000),
            (500, 11, 495, 505), (500, 0, 450, 550), (500, -7, 450, 550), (500, None, 450, 550), (500, 101, 450, 550),
        ]:
            with self.subTest(line=line, window=window):
                above, below = first - 1, 1000 - last
                parts = [f"({above} more lines above)" if above else BEGIN, *lines(first, last)]
                parts += [f"({below} more lines below)", HINT] if below else [END]
                self.assertEqual(printed(navigation.open_file, path, line, window), self.shown(path, 1000, *parts))

    def test_what_can_not_be_opened_is_said(self):
        self.assertEqual(printed(navigation.open_file, "missing.txt"), "ERROR: File missing.txt not found.\n")
        self.assertEqual(printed(navigation.open_file, "."), "ERROR: File . not found.\n")
        self.assertEqual(printed(navigation.goto_line, 1), NONE_OPEN)
        path = self.numbered(5)
        for line in (0, -1, 6, None, "1", 1.5):
            self.assertEqual(printed(navigation.open_file, path, line), "ERROR: Line number must be between 1 and 5\n")

    def test_a_file_that_was_asked_for_with_a_wrong_line_is_open(self):
        path = self.numbered(5)
        printed(navigation.open_file, path, 9)
        self.assertEqual(printed(navigation.goto_line, 2), self.shown(path, 5, BEGIN, *lines(1, 5), END))

    def test_an_empty_file_has_one_line(self):
        path = self.write("empty.txt", "")
        self.assertEqual(printed(navigation.open_file, path), self.shown(path, 1, BEGIN, "1|", END))

    def test_goto_line_moves_the_window(self):
        path = self.numbered(1000)
        self.assertEqual(printed(navigation.goto_line, 1), NONE_OPEN)
        printed(navigation.open_file, path)
        expected = self.shown(path, 1000, "(449 more lines above)", *lines(450, 550), "(450 more lines below)")
        self.assertEqual(printed(navigation.goto_line, 500), expected)
        for line in (0, -1, 1001, "1", None):
            self.assertEqual(printed(navigation.goto_line, line), "ERROR: Line number must be between 1 and 1000.\n")

    def test_scrolling_shows_the_next_and_the_former_hundred(self):
        path = self.numbered(250)
        for scroll in (navigation.scroll_down, navigation.scroll_up):
            self.assertEqual(printed(scroll), NONE_OPEN)
        printed(navigation.open_file, path)
        for scroll, first, last in [
            (navigation.scroll_down, 101, 201), (navigation.scroll_down, 151, 250), (navigation.scroll_down, 151, 250),
            # From line 150 on; what is shown keeps its size at the end.
            (navigation.scroll_up, 151, 250), (navigation.scroll_up, 50, 150), (navigation.scroll_up, 1, 100),
            (navigation.scroll_up, 1, 100),
        ]:
            above, below = first - 1, 250 - last
            parts = [f"({above} more lines above)" if above else BEGIN, *lines(first, last)]
            parts.append(f"({below} more lines below)" if below else END)
            self.assertEqual(printed(scroll), self.shown(path, 250, *parts), (scroll.__name__, first))

    def test_the_last_line_needs_no_end_and_bytes_that_are_no_text_are_shown_as_such(self):
        path = self.write("a.txt", b"one\r\ntwo \xff\nthree")
        expected = self.shown(path, 3, BEGIN, "1|one", "2|two \ufffd", "3|three", END)
        self.assertEqual(printed(navigation.open_file, path), expected)

    def test_a_directory_is_searched_with_all_below_it(self):
        self.write("some/a.txt", "needle\n  a needle needle \nno\n")
        self.write("some/.hidden.txt", "needle\n")
        self.write("some/.git/b.bin", b"\xffneedle\xfe\n")
        found = printed(navigation.search_dir, "needle", "some").splitlines()
        self.assertEqual(found[0], '[Found 3 matches for "needle" in some]')
        self.assertEqual(found[-1], '[End of matches for "needle" in some]')
        expected = ["some/.git/b.bin (Line 1): needle", "some/a.txt (Line 1): needle", "some/a.txt (Line 2): a needle needle"]
        self.assertEqual(sorted(found[1:-1]), expected)

    def test_paths_of_the_current_directory_begin_with_a_dot(self):
        self.write("a50.txt", "bingo\n")
        expected = '[Found 1 matches for "bingo" in ./]\n./a50.txt (Line 1): bingo\n[End of matches for "bingo" in ./]\n'
        self.assertEqual(printed(navigation.search_dir, "bingo"), expected)

    def test_a_search_in_a_directory_that_finds_nothing_or_too_much_says_so(self):
        for number in range(101):
            self.write(f"many/{number}", "bingo\n" + "rare\n" * (number > 0))
        self.assertEqual(printed(navigation.search_dir, "no", "many"), 'No matches found for "no" in many\n')
        too_much = 'More than 101 files matched for "bingo" in many. Please narrow your search.\n'
        self.assertEqual(printed(navigation.search_dir, "bingo", "many"), too_much)
        self.assertTrue(printed(navigation.search_dir, "rare", "many").startswith('[Found 100 matches for "rare" in many]\n'))
        self.assertEqual(printed(navigation.search_dir, "x", "nodir"), "ERROR: Directory nodir not found\n")

    def test_a_file_is_searched(self):
        path = self.write("a.txt", "needle\nno\n\tneedle  \n")
        expected = '[Found 2 matches for "needle" in {0}]\nLine 1: needle\nLine 3: needle\n[End of matches for "needle" in {0}]\n'
        self.assertEqual(printed(navigation.search_file, "needle", "a.txt"), expected.format("a.txt"))
        self.assertEqual(printed(navigation.search_file, "x", "a.txt"), '[No matches found for "x" in a.txt]\n')
        self.assertEqual(printed(navigation.search_file, "x", "missing"), "ERROR: File missing not found.\n")
        nothing = "ERROR: No file specified or open. Use the open_file function first.\n"
        self.assertEqual(printed(navigation.search_file, "needle"), nothing)
        printed(navigation.open_file, "a.txt")
        self.assertEqual(printed(navigation.search_file, "needle"), expected.format(path))

    def test_files_are_found_by_a_part_of_their_name(self):
        for name in ("some/a.txt", "some/deep/ba.txt", "some/.hidden/a.txt", "some/b.py"):
            self.write(name, "")
        found = printed(navigation.find_file, "a.txt", "some").splitlines()
        self.assertEqual([found[0], found[-1]], ['[Found 3 matches for "a.txt" in some]', '[End of matches for "a.txt" in some]'])
        self.assertEqual(sorted(found[1:-1]), ["some/.hidden/a.txt", "some/a.txt", "some/deep/ba.txt"])
        self.assertEqual(printed(navigation.find_file, "zz", "some"), '[No matches found for "zz" in some]\n')
        self.assertEqual(printed(navigation.find_file, "zz"), '[No matches found for "zz" in ./]\n')
        self.assertEqual(printed(navigation.find_file, "x", "nodir"), "ERROR: Directory nodir not found\n")


if __name__ == "__main__":
    unittest.main()
