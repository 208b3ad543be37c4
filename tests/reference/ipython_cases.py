"""The cells that both notebooks run, and which answers differ on purpose.

A case is a list of steps and, where the last word is not the reference's, the reason. Cases that leave something behind
can be repeated.
"""

# What is in the working directories.
FILES = {
    "script.py": "print('from a script')\nfrom_script = 7\n",
    "a/one.txt": "1\n",
    "b/two.txt": "2\n",
    "sp ace/é漢/three.txt": "3\n",
}

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg=="
)
BUNDLE = "from IPython.display import publish_display_data as p; "


def cell(code, **arguments):
    return ("run_ipython", code, arguments)


def shell(command):
    return ("run", command, {})


def one(code, reason=None, **arguments):
    return ([cell(code, **arguments)], reason)


OUTPUT = [
    one("print(1)"),
    one("1+1"),
    one("print('Hello, `World`!\\n')"),
    one("None"),
    one("pass"),
    one(""),
    one("   "),
    one("# a comment"),
    one("\n\nfor i in range(3):\n    print(i)\n\n"),
    one("1\n2\n3"),
    one("print('a'); 'b'"),
    one("1;"),
    one("print('a', end=''); print('b')"),
    one("import sys; sys.stdout.write('no newline')"),
    one(
        "import sys; print('out'); print('err', file=sys.stderr); print('out again')",
        "text comes in the order in which it was written",
    ),
    one("import sys; print('only err', file=sys.stderr)"),
    one("print('é 漢字 😀 \\u200b|')"),
    one("'é 漢字 😀'"),
    one("print('\\x1b[31mred\\x1b[0m \\x1b[1;31;40mred\\x1b[0;1m')"),
    one("print('\\x1b[38;5;196mred\\x1b[m \\x1b[1;2;3;4mx\\x1b[2J\\x1b[?25l\\x1b]0;t\\x07|')"),
    one("print('10%\\r50%\\r100%')"),
    one("print('a\\x00b\\x08c\\x07d\\te')"),
    one("print('  leading'); print('trailing   \\n\\n  ')"),
    one("for i in range(2000): print(i)"),
    one("print('x' * 200_000)"),
    one("print('a\\r\\nb')\r\nprint('c')\r\n"),
    one("if True:\n\tprint('tabs')"),
    one("list(range(100))"),
    one("{'key %d' % i: {'nested': [i] * 5} for i in range(8)}"),
    one("'line\\nline'"),
    one("print('x' * 70_000)\n" + "# " + "c" * 70_000),
    one("float('nan'), 1e400, -0.0, 10**30, 1j, b'\\xff', ..., NotImplemented"),
    one("import logging; logging.getLogger('z').warning('a warning')", "the reference's skills silence warnings of others"),
    one("import logging; logging.getLogger('z').error('an error')", "the reference's skills change how others log"),
    one("import warnings; warnings.warn('careful')"),
    one("help(len)"),
    one("import threading; t = threading.Thread(target=lambda: print('in a thread')); t.start(); t.join()"),
    one("import subprocess; print(subprocess.run(['echo', 'hi'], capture_output=True).stdout)"),
    one("import pprint; pprint.pprint([['nested'] * 3] * 8)"),
]

ERRORS = [
    one("1/0"),
    one("undefined_name"),
    one("print('before'); raise ValueError('é 漢'); print('after')"),
    one("def f(x):\n    return g(x)\n\ndef g(x):\n    return 1 / x\n\nf(0)"),
    one("try:\n    1/0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('outer') from e"),
    one("try:\n    1/0\nexcept ZeroDivisionError:\n    {}['k']"),
    one("x = (1,\nprint('never'"),
    one("def f():\nprint('x')"),
    one("  print('indented')\n print('less')"),
    one("é漢 = = 1"),
    one("import a_module_that_is_not_there"),
    one("from os import no_such_name"),
    one("assert 1 == 2, 'text of the assertion'"),
    # IPython warns about it once.
    ([cell("warnings.filterwarnings('ignore', message='To exit')"), cell("raise SystemExit(3)")], None),
    one("raise KeyboardInterrupt('by hand')"),
    one("class MyError(Exception):\n    pass\n\nraise MyError('mine', 1)"),
    one("raise ExceptionGroup('several', [ValueError(1), TypeError('two')])"),
    one("def deep(n):\n    return deep(n - 1) if n else 1 / 0\n\ndeep(40)"),
    one("class Bad:\n    def __repr__(self):\n        raise ValueError('no text')\n\nBad()"),
    one("input('name: ')"),
    one("import getpass; getpass.getpass()"),
    one("e = ValueError('noted'); e.add_note('a note'); raise e"),
    one("%debug_nothing"),
    one("print('\\ud800')", "a lone surrogate is replaced, the reference shows the traceback of its kernel"),
]

MAGICS = [
    one("%pwd"),
    one("!echo from the shell"),
    one("!exit 3\nprint(_exit_code)"),
    one("!echo out; echo err >&2; seq 3"),
    one("x = !printf 'a\\nb\\n'\nx"),
    one("name = 'Ada'\n!echo hello {name} $name"),
    one("%%bash\necho one\necho two >&2\nexit 0"),
    one("%%bash\nexit 4"),
    one("%%sh\npwd"),
    one("%env GLOVE=port\n%env GLOVE"),
    one("%no_such_magic"),
    one("%%no_such_magic\nx"),
    one("%%capture caught\nprint('caught')"),
    one("%%capture caught\nprint('caught')\n1/0"),
    ([cell("%%capture caught\nprint('inside')"), cell("caught.stdout, caught.stderr")], None),
    one("%run script.py\nfrom_script"),
    ([cell("%%writefile w.txt\nline"), shell("cat w.txt; rm w.txt")], None),
    one("len?"),
    one("%pip --version"),
    one("%pip install --quiet --no-index a-package-that-is-not-there"),
    one("import asyncio\nawait asyncio.sleep(0.01)\nprint('awaited')"),
    one("async def f():\n    return 5\n\nawait f()"),
    one("async for i in range(2): print(i)"),
    one("%cd {WORK}/a\n%cd {WORK}"),
    one("%colors nocolor"),
    one("%precision 2\n3.14159"),
    one("%precision\n3.14159"),
    one("%matplotlib inline"),
    # Times differ, as a rule, so only the beginning is compared.
    one("from io import StringIO\nimport contextlib\nout = StringIO()\nwith contextlib.redirect_stdout(out):\n    get_ipython().run_cell_magic('time', '', 'None')\nprint(out.getvalue()[:15])"),
    one("%xmode Plain\n1/0"),
    one("%xmode Context\n1/0"),
    one("%config InlineBackend.figure_format = 'png'"),
]

DISPLAYS = [
    one("display(1, 'two', [3])"),
    one("print('a'); display('b'); print('c'); 'd'"),
    one("from IPython.display import HTML, Markdown, Latex, JSON, SVG\ndisplay(HTML('<b>x</b>'), Markdown('*x*'), Latex('$x$'))"),
    one("from IPython.display import JSON\nJSON({'a': 1})"),
    one(f"import base64\nfrom IPython.display import Image\nImage(data=base64.b64decode('{PNG}'))"),
    one(f"display(Image(data=base64.b64decode('{PNG}')), Image(data=base64.b64decode('{PNG}'), width=9)); print('text')"),
    one(f"class Picture:\n    def _repr_png_(self):\n        return base64.b64decode('{PNG}')\n\nPicture()"),
    one("class Page:\n    def _repr_html_(self):\n        return '<p>'\n    def __repr__(self):\n        return 'a page'\n\nPage()"),
    one("import matplotlib.pyplot as plt\nplt.figure(figsize=(2, 1), dpi=50); plt.plot([1, 2, 3]); plt.show()"),
    one("for i in range(3):\n    plt.figure(figsize=(1, 1), dpi=30); plt.plot([i, 2]); plt.show()\n    print(i)"),
    one("plt.figure(figsize=(1, 1), dpi=30); plt.plot([1, 3]);"),
    one("plt.figure(figsize=(1, 1), dpi=30); plt.plot([1, 3]); 1/0", "a picture is shown though an error came before it"),
    one("from IPython.display import clear_output\nprint('a'); clear_output(); print('b')"),
    one("from IPython.display import clear_output\nprint('a'); clear_output(wait=True); print('b')"),
    one("h = display('first', display_id=True); h.update('second'); print('end')"),
    one(BUNDLE + "p({'text/html': '<b>'}); print('x')", "a display without text is empty text, the reference answers with status 500"),
    one(BUNDLE + "p({'text/plain': 'multi\\nline', 'text/html': 'x'}); print('x')"),
    one(BUNDLE + "p({'text/plain': 'jpeg', 'image/jpeg': 'aGk='}); print('x')", "JPEG images are shown"),
    one(BUNDLE + "p({'text/plain': '', 'image/png': 'aGk=\\n'}); print('x')", "images have no newlines in their URLs"),
    one("class Silent:\n    def _ipython_display_(self):\n        print('displays itself')\n\nSilent()"),
]

STATE = [
    ([cell("kept = 41"), cell("kept + 1")], None),
    ([cell("import math as m"), cell("def area(r):\n    return round(m.pi * r * r, 3)"), cell("area(2)")], None),
    ([cell("gone = 1; del gone"), cell("gone")], None),
    ([cell("6 * 7"), cell("_")], None),
    one("__name__"),
    one("len(In), Out"),
    one("print(get_ipython().__class__.__name__)"),
    one("print = __builtins__.print; print('print again')"),
    ([cell("def print(*a):\n    raise TypeError('redefined')"), cell("print(1)"), cell("del print"), cell("print(2)")], None),
    one("import os; print(os.environ['USER'])"),
    ([cell("with open('test.txt', 'w') as f: f.write('Hello, world!')"), shell("cat test.txt; stat -c %U test.txt; rm test.txt")], None),
    one("callable(open_file), callable(file_editor), callable(parse_pdf)"),
    ([cell("open_file('script.py')"), cell("scroll_down()")], None),
    one("import sys; sys.path[0] == '', sys.stdout.isatty(), sys.stdout.encoding"),
]

DIRECTORIES = [
    ([shell("cd {WORK}/b"), cell("1"), shell("cd {WORK}"), cell("import os; print(os.getcwd())")], None),
    ([shell("cd {WORK}"), cell("import os; print(os.getcwd())")], None),
    ([shell("cd {WORK}/a"), cell("import os; os.getcwd(), os.listdir()"), shell("cd {WORK}"), cell("os.getcwd()")], None),
    ([cell("os.chdir(r'{WORK}/b')\nprint(os.getcwd())"), cell("print(os.getcwd())"), shell("cd {WORK}/a"), cell("print(os.getcwd())"), shell("cd {WORK}"), cell("%pwd")], None),
    ([cell("os.chdir('b')"), shell("pwd"), cell("os.getcwd()"), shell("cd a; cd .."), cell("os.getcwd()"), cell("os.chdir('{WORK}')")], None),
    ([shell("cd '{WORK}/sp ace/é漢'"), cell("print(os.getcwd())"), shell("cd {WORK}"), cell("print(os.getcwd())")], None),
    ([shell("mkdir -p '{WORK}/it'\"'\"'s' && cd '{WORK}/it'\"'\"'s'"), cell("print(os.getcwd())"), shell("cd {WORK}"), cell("1")], None),
    ([shell("mkdir -p {WORK}/gone && cd {WORK}/gone && rmdir {WORK}/gone"), cell("1"), shell("cd {WORK}"), cell("os.getcwd()")], None),
]

# After an interrupt the reference's kernel drops a cell that already waits, which ours does not: whoever compares must not
# hurry.
REST = shell("sleep 1")
LIMITS = [
    ([cell("import time; time.sleep(30)", timeout=1), REST], None),
    ([cell("before = 'kept'"), cell("print('lost'); time.sleep(30)", timeout=1.5), REST, cell("print(before)")], None),
    ([cell("while True: pass", timeout=1), REST, cell("1")], None),
    ([cell("!sleep 20", timeout=2), REST, cell("2")], None),
    (
        [
            cell("plt.figure(figsize=(1, 1), dpi=30); plt.plot([1]); plt.show(); time.sleep(9)", timeout=2), REST,
            cell("plt.close('all'); 3"),
        ],
        None,
    ),
    one("print('quick')", timeout=10),
    one("print('quick')", timeout=0.9),
    one("time.sleep(1.2); print('no limit')", timeout=None),
]

EXTRA = [
    one("print(1)", include_extra=False),
    one("pass", include_extra=False),
    one("1/0", include_extra=False),
    one("print('a\\n\\n')", include_extra=False),
    one("print(1)", include_extra=True),
    one("print(1)", thought="a thought"),
    ([cell("time.sleep(5)", include_extra=False, timeout=1), REST], None),
]

CASES = [*OUTPUT, *ERRORS, *MAGICS, *DISPLAYS, *STATE, *DIRECTORIES, *LIMITS, *EXTRA]
