#!/usr/bin/env python3
"""Writes golden/language.json: how BrowserGym reads texts of actions.

Run it with a Python that has `browsergym-core==0.13.3` (and with it `pyparsing==3.2.5`) installed:

    python record_language.py

The file is a list of `[text, calls, error]`. The calls are those that its parser finds, each as the line of Python that
it makes of it, or null if the parser fails. The error is what the whole action gives before anything of it runs, or
null.
"""

import json
import keyword
import pathlib
import re
import warnings

from browsergym.core.action.highlevel import HighLevelActionSet
from browsergym.core.action.parsers import highlevel_action_parser

ARGUMENTS = [
    "", ",", "'1'", "'1',", "'1',,", " '1' ", "\n'1'\n,\n'2'\n", "'1' '2'", "'1', '2',", "'1', a=2", "'1' a=2", "'1', , a=2",
    "a=1", "a=1,", "a=1, 2", "a=1 b=2", "a=1, b=2,", "a = 1", "a\n=\n1", "a==1", "=1", "a=", "a", "True", "Truex", "True1",
    "True=1", "a=1, True=2", "if=1", "a=1, a=2", "None", "False", "none", "true", "null", "_a=1", "a1=1", "1a=1", "é=1",
    # Numbers
    "1", "-1", "+1", "- 1", "--1", "0", "00", "007", "1_000", "1.0", "1.", ".5", "-.5", "+.5", ".", "1e3", "1E3", "1e+3",
    "1e-3", "1e", "1.5e3", "1.e3", ".5e3", "1e400", "-1e400", "a=1e400", "[1e400]", "0x10", "0b1", "1j", "1L", "inf", "nan",
    "9223372036854775808", "123456789012345678901234567890", "-0", "-0.0", "1e16", "123456789.125", "1e22", "0.1", "1.5.5",
    "1 2", "1,2", "1-2", "1 + 2", "5e-324", "1e-400", "0.00001", "0.0001", "1e15", "12345678901234567.0", "1.7976931348623157e308",
    # Texts
    "''", '""', "'a\"b'", '"a\'b"', "'''a'''", '"""a"""', "'''a'b'''", '"""a"b"""', '"""a""b"""', '"""a""""', '""""a"""',
    "''''a'''", "'''a\nb'''", '"""a\nb"""', "'a\nb'", "'a\\\nb'", "'''a\\\nb'''", '"""a\\\nb"""', "'a\rb'", "'''a\r\nb'''",
    "'''a\rb'''", '"""a\n\n\rb"""', "'a\\\r\nb'", "'a\\\rb'", "'a\\nb'", "'a\\tb'", "'a\\\\b'", "'a\\'b'", "'a\\\"b'", '"a\\"b"',
    "'\\a\\b\\f\\v\\r\\0'", "'\\x41'", "'\\x4'", "'\\x'", "'\\xg'", "'\\x4g'", "'\\x414'", "'''\\xg'''", "'''\\x41'''",
    "'\\u00e9'", "'\\u12'", "'\\u'", "'\\ug'", "'\\U0001F600'", "'\\U00110000'", "'\\U0001'", "'\\ud83d\\ude00'[:0]",
    "'\\101'", "'\\1'", "'\\18'", "'\\777'", "'\\400'", "'\\8'", "'\\q'", "'\\.'", "'\\N'", "'\\N{'", "'\\N{}'",
    "'\\\\x'", "'a\\", "'a", "'a\\'", '"a', "'''a", "'''a''", "'a\\\\'", "r'a'", "f'a'", "b'a'", "u'a'", "R'a'", "rb'a'",
    "'a''b'", "'a' 'b'", "'a'b'", "'é😀'", "'\x07'", "'\x7f'", "'\xa0'", "'\u200b'", "'\u2028'", "'a\tb'", "\t'a\tb\tc'",
    "'12345678\tb'", "'''a\n\tb'''", "'#'", "'a # b'", "'''a # b\nc'''", "'\x00'", "'a\x0bb'", "'''a\x0cb'''", "'\x85'",
    # Lists, tuples, dicts
    "[]", "[1]", "[1,]", "[1,,]", "[,]", "[ 1 , 2 ]", "['a', [1, [2]]]", "[1", "[1]]", "[a=1]", "['a' 'b']", "[\n1,\n2\n]",
    "()", "(1)", "(1,)", "(1, 2)", "((1))", "((),)", "[()]", "([],)", "(1", "[1, # c\n2]", "(# c\n1)", "{# c\n'a': 1}",
    "{}", "{'a': 1}", "{'a': 1,}", "{'a': 1, 'b': [2]}", "{'a': {'b': {}}}", "{1: 2}", "{'a'}", "{'a': }", "{'a' 1}",
    "{'a': 1, 'a': 2}", "[{}]", "[{'a': 1}]", "({'a': (1,)},)", "{'a': []}", "{'a': ()}", "{'a': None}", "{'a': True, 'b': 'c'}",
    "{'a': [1, {'b': (2,)}]}", "{'a': [[]]}", "{None: 1}", "{'': ''}", "a=[1]", "a=(1,)", "a={'a': 1}", "a={}", "a=()", "a=[]",
    "[[[[[[[[1]]]]]]]]", "a=None", "a='1'",
    # Comments and blanks
    "# c\n'1'", "'1' # c\n", "'1', # c\n'2'", "'1' # , '2'\n", "# c", "a # c\n= # c\n1", "\f'1'", "\v'1'", "\xa0'1'", "\r'1'",
    "\u2003'1'",
]

TEXTS = [
    "", " ", "\n", "# c", "# click('1')", "no call", "click", "click(", "click)", "()", "click('1'", "click'1')",
    "goto('http://x')\nclick('1', button='right')", "# c\nnoop()", "text click('1') after", "noop() noop()", "noop()noop()",
    "noop();noop()", "noop(), noop()", "noop()\n\n\nnoop()", "noop() # c\nnoop()", "noop() # noop()", "GET_EVAL_GOAL",
    "GET_EVAL_REWARDS", "```\nclick('1')\n```", "```python\nfill('1', 'a')\nclick('2')\n```", "a.b('1')", "page.click('1')",
    "a.noop()", "1noop()", "noop1()", "_noop()", "noop_()", "NOOP()", "Noop()", "énoop()", "nooé()", "日本()", "·noop()", "a·b()",
    "😀noop()", "ªnoop()", "$noop()", "noop$()", "-noop()", "noop\n()", "noop ()", "noop\t()", "noop # c\n()", "noop # c ()",
    "noop\f()", "noop\v()", "noop\xa0()", "noop\r()", "noop\r\n()", "a b noop()", "print(noop())", "print('noop()')", "f(g(h()))",
    "f('a g(\"1\")", "click('1', foo click('2'))", "x = noop()", "x = 'noop()'", "if noop(): pass", "def noop(): pass",
    "noop(1) noop(2", "noop(1 noop(2)", "noop((noop()", "noop([noop()])", "send_msg_to_user('a')", "send_msg_to_user(\"it's\")",
    "report_infeasible('no')", "mouse_click(1, 2)", "keyboard_press('a')", "check('1')", "noop() foo() bar()", "foo('\\x4')",
    "foo('\\x4'", "'\\x4'", "noop() foo('\\x4' 1)", "foo(" + "9" * 4300 + ")", "foo(" + "9" * 4301 + ")", "foo(" + "9" * 4301,
    "foo(-" + "9" * 4301 + ")", "http://x#noop()\nnoop()", "#noop()\r noop()", "noop()\u2028noop()", "noop() \x00 noop()",
    "\ufeffnoop()", "a(b('1'), c('2'))", "fill('a12', \"a\nb\")", "fill('3', r'a')", "fill('1', f'x')", 'goto("a" "b")',
    "click(\n  '1',\n  button='left',\n  modifiers=['Shift', 'Alt'],\n)", "\tclick('a\tb')", "é\tclick('a\tb')",
    "scroll(0, -200.5)", "select_option('a48', ['red', 'green'])", "tab_focus(2)", "upload_file('572', [])", "noop(wait_ms=1)",
    "Thought: I will click.\n\nAction: click('12')\n", "{\"action\": \"click('12')\"}", "click(\\'12\\')", "click(“12”)", "click(’12’)",
    "click(12)", "noop(True)", "lambda()", "True()", "None()", "noop()()", "noop()(1)", "(noop())", "[noop()]", "noop(noop)",
    "noop(*[1])", "noop(**{'a': 1})", "noop(...)", "noop(1 if True else 2)", "noop(a:=1)", "noop(a.b)", "noop(a.b=1)", "noop(-a)",
    "noop(not True)", "noop(1)#\nnoop(2)", "noop(1)\\\nnoop(2)", "noop(\\\n1)", "click('1')\x1cclick('2')",
    "foo(a=1, a=2) noop()", "noop(if=1)", "noop(a=1e400)", "noop(a=1, a=1)\nnoop(b=1, b=1)", "foo(if=1)",
    "日noop()", "noop日()", "f('''a\n\nb\\xg''')", "f('é\\u1')", "f('\\é\\u1')", "f('\\u12é')", "f('😀a\\x4')", "f('\\N{NO SUCH}')",
    "f('\\N{digit')", "f('\\Uffffffff')", "f('\\U0010ffff')", "f('\\\x00')", "f('\\u\x00')", "f('\\\\\\x4')", "f('\\q\\x4')",
    "f('''a\r\nb\\xg''')", "f('\\\n\\x4')", "f('\\777\\x4')", "f('a\\\r\\u1')", "f('\\x4', '\x00')", "f('''\\\\\\''' ''')",
    "noop(" + "[" * 24 + "]" * 24 + ")", "noop(" + "[" * 200 + "]" * 200 + ")",
]


def line(name, arguments):
    return f"{name}({', '.join(map(repr, arguments))})"


def record(text):
    try:
        found = sum(highlevel_action_parser.search_string(text).as_list(), [])
        calls = [line(name, arguments) for name, arguments in found]
    except Exception as error:  # noqa: BLE001
        return [text, None, f"{type(error).__name__}: {error}"]
    try:
        compile(HighLevelActionSet().to_python_code(text), "<string>", "exec")
    except Exception as error:  # noqa: BLE001
        # Where the line is within the code that it generates says nothing.
        return [text, calls, re.sub(r" \(<string>, line \d+\)$", "", f"{type(error).__name__}: {error}")]
    return [text, calls, None]


def main():
    warnings.simplefilter("ignore")
    texts = [f"noop({arguments})" for arguments in ARGUMENTS] + TEXTS
    texts += [f"noop({word}=1)" for word in [*keyword.kwlist, *keyword.softkwlist, "__debug__"]]
    rows = [record(text) for text in dict.fromkeys(texts)]
    body = ",\n".join(json.dumps(row, ensure_ascii=True) for row in rows)
    target = pathlib.Path(__file__).parent / "golden" / "language.json"
    target.write_text(f"[\n{body}\n]\n", encoding="utf-8")
    print(f"{len(rows)} texts")


if __name__ == "__main__":
    main()
