"""The code interpreter, with the SDK `e2b_code_interpreter`."""

import base64
import time

from e2b import NotFoundException, TimeoutException
from e2b_code_interpreter import Sandbox
from sandboxes import equal, raises


def checks(report, _gateway):
    made = {}

    def create():
        made["one"] = Sandbox.create(timeout=600)
        equal(made["one"].run_code("1 + 1").text, "2")

    if not report.check("a sandbox with a code interpreter is made", create):
        return
    sandbox = made["one"]
    run = sandbox.run_code

    def kept():
        run("x = 20")
        equal(run("x + 1").text, "21")

    report.check("what was defined stays", kept)

    def streams():
        seen = []
        execution = run(
            "import sys; print('out'); print('err', file=sys.stderr)",
            on_stdout=lambda message: seen.append(("out", message.line)),
            on_stderr=lambda message: seen.append(("err", message.line)),
        )
        equal(("".join(execution.logs.stdout), "".join(execution.logs.stderr)), ("out\n", "err\n"))
        equal({kind for kind, _ in seen}, {"out", "err"})
        equal(execution.results, [])

    report.check("standard output and standard error are apart", streams)

    def live():
        times = []
        began = time.monotonic()
        run("import time\nprint(1, flush=True); time.sleep(1); print(2)", on_stdout=lambda _: times.append(time.monotonic() - began))
        assert times[0] < 0.9 and len(times) >= 2, times

    report.check("output comes when it is written", live)

    def error():
        execution = run("def f():\n    return 1 / 0\nf()")
        equal((execution.error.name, execution.error.value), ("ZeroDivisionError", "division by zero"))
        assert "ZeroDivisionError" in execution.error.traceback and "f()" in execution.error.traceback
        equal(run("2").text, "2")

    report.check("an exception has its name, value and traceback", error)
    report.check("a mistake of syntax is one", lambda: equal(run("1 +").error.name, "SyntaxError"))

    def forms():
        execution = run(
            "class Thing:\n"
            "    def _repr_html_(self): return '<b>thing</b>'\n"
            "    def _repr_markdown_(self): return '**thing**'\n"
            "    def _repr_json_(self): return {'a': [1, 2]}\n"
            "    def _repr_svg_(self): return '<svg/>'\n"
            "    def _repr_latex_(self): return '$x$'\n"
            "    def __repr__(self): return 'Thing()'\n"
            "Thing()"
        )
        [result] = execution.results
        equal(
            (result.text, result.html, result.markdown, result.json, result.svg, result.latex),
            ("Thing()", "<b>thing</b>", "**thing**", {"a": [1, 2]}, "<svg/>", "$x$"),
        )
        assert result.is_main_result

    report.check("a result has all of its forms", forms)

    def displayed():
        execution = run("from IPython.display import display, HTML\ndisplay(HTML('<i>1</i>'))\ndisplay(2)\n3")
        equal([(result.html, result.text, result.is_main_result) for result in execution.results][1:], [(None, "2", False), (None, "3", True)])
        equal(execution.results[0].html, "<i>1</i>")
        equal(execution.text, "3")

    report.check("what is displayed comes before the result", displayed)

    def picture():
        execution = run("import matplotlib\nmatplotlib.use('module://matplotlib_inline.backend_inline')\nimport matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()")
        [result] = [result for result in execution.results if result.png]
        assert base64.b64decode(result.png).startswith(b"\x89PNG"), result.png[:20]

    report.check("a plot is a picture", picture)

    def variables():
        equal(run("import os; os.environ['FRUIT']", envs={"FRUIT": "apple 'ä'"}).text, "\"apple 'ä'\"")
        equal(run("os.environ.get('FRUIT')").text, None)
        equal(run("'_gloveport_environment' in dir()").text, "False")

    report.check("variables are set for one execution", variables)

    def contexts():
        context = sandbox.create_code_context(cwd="/tmp")
        equal((context.language, context.cwd), ("python", "/tmp"))
        run("y = 1", context=context)
        equal(run("y + 1", context=context).text, "2")
        equal(run("y").error.name, "NameError")
        equal(run("import os; os.getcwd()", context=context).text, "'/tmp'")
        assert context.id in [one.id for one in sandbox.list_code_contexts()]
        sandbox.restart_code_context(context)
        equal(run("y", context=context).error.name, "NameError")
        equal(run("import os; os.getcwd()", context=context).text, "'/tmp'")
        sandbox.remove_code_context(context)
        raises(NotFoundException, lambda: run("1", context=context))

    report.check("contexts share nothing, and are begun anew and ended", contexts)
    report.check("a context in a directory that is missing is refused", lambda: raises(Exception, lambda: sandbox.create_code_context(cwd="/no/such"), "/no/such"))
    report.check("another language is refused with words", lambda: raises(Exception, lambda: run("1", language="r"), "only python"))

    def limit():
        began = time.monotonic()
        raises(TimeoutException, lambda: run("import time\ntime.sleep(60)", timeout=1.5))
        assert time.monotonic() - began < 10
        equal(run("3").text, "3")
        assert time.monotonic() - began < 30, "the code was interrupted"

    report.check("code whose client has gone is interrupted", limit)

    def counted():
        first, second = run("1").execution_count, run("1").execution_count
        equal(second, first + 1)

    report.check("executions are counted", counted)
    report.check("files and code see the same", lambda: (sandbox.files.write("data", "5"), equal(run("int(open('data').read())").text, "5")))
    report.check("it is ended", lambda: equal(sandbox.kill(), True))

    def plain():
        from e2b import Sandbox as Plain

        base = Plain.create(timeout=60)
        try:
            raises(TimeoutException, lambda: Sandbox.connect(base.sandbox_id).run_code("1"), "code-interpreter-v1")
        finally:
            base.kill()

    report.check("a sandbox without a code interpreter says how to get one", plain)
