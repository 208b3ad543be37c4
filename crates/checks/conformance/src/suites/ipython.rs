//! Cells of the notebook (`ipython-and-plugins` 2.3 and 2.4), where the server has the plugin `jupyter`.

use serde_json::{Value, json};

use crate::{
    Check, Server,
    bench::Bench,
    check::{Expect, Problem},
};

/// Seconds that a cell gets which ends by itself.
const LIMIT: f64 = 20.0;
/// What stands for no text.
const NOTHING: &str = "[Code executed successfully with no output]";
/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==";

pub(super) fn checks() -> Vec<Check> {
    let mut checks = texts();
    checks.extend(errors());
    checks.extend(displays());
    checks.extend(state());
    checks.extend(directories());
    checks.extend(limits());
    checks
}

/// A check that is skipped where there is no notebook.
fn check(id: &'static str, title: &'static str, spec: &'static str) -> Check {
    Check::new(id, title, spec).code(|bench| Box::pin(notebook(bench)))
}

async fn notebook(bench: &Bench) -> Result<(), Problem> {
    let answer = bench.server().execute(&action("1", LIMIT, false)).await?;
    Server::rest(bench.scratch.pause).await;
    let text = answer.value().to_string();
    if answer.status == 500 && text.contains("JupyterRequirement not found") {
        return Err(Problem::skip("the server was started without the plugin jupyter"));
    }
    Problem::unless(
        answer.status == 200,
        "a cell",
        "status 200, or the error that tells that no plugin is there",
        &text,
    )
}

fn action(code: &str, limit: f64, extra: bool) -> Value {
    json!({"action": "run_ipython", "args": {"code": code, "include_extra": extra}, "timeout": limit})
}

/// The observation of a cell without the lines that tell where it ran.
fn ran(code: &str) -> Expect {
    Expect::status(200)
        .at("/observation", "run_ipython")
        .at("/message", "Code executed in IPython cell.")
        .at("/extras/code", code)
        .at("/success", true)
}

impl Check {
    /// A cell that gives this text and no picture.
    fn cell(self, code: &str, content: &str) -> Self {
        let expect = ran(code).is("/content", content).at("/extras/image_urls", Value::Null);
        self.act(action(code, LIMIT, false), expect)
    }

    /// A cell with the lines that tell where it ran, which is the directory of the check.
    fn cell_with_extra(self, code: &str, content: &str) -> Self {
        let start = format!("{content}\n[Jupyter current working directory: {{dir}}]\n[Jupyter Python interpreter: ");
        let expect = ran(code).starts("/content", &start).ends("/content", "]");
        self.act(action(code, LIMIT, true), expect)
    }

    /// A cell whose text is only partly known.
    fn cell_that(self, code: &str, expect: impl FnOnce(Expect) -> Expect) -> Self {
        self.act(action(code, LIMIT, false), expect(ran(code)))
    }
}

fn texts() -> Vec<Check> {
    vec![
        check("ipython/result", "what the last expression gives is shown", "ipython-and-plugins 2.2")
            .cell("1 + 1", "2")
            .cell("['é', '漢', '😀']", "['é', '漢', '😀']"),
        check("ipython/print", "what is printed loses only blanks at its end", "ipython-and-plugins 2.4 step 3")
            .cell("print('Hello, `World`!\\n')", "Hello, `World`!")
            .cell("print('  a'); print('b  \\n\\n ')", "  a\nb"),
        check(
            "ipython/pieces",
            "text and result follow each other without anything between",
            "ipython-and-plugins 2.2",
        )
        .cell("import sys; n = sys.stdout.write('ab'); n", "ab2"),
        check("ipython/standard-error", "standard error is text, too", "ipython-and-plugins 2.2")
            .cell("import sys; print('to stderr', file=sys.stderr)", "to stderr"),
        check("ipython/no-output", "a cell that says nothing is told to have worked", "ipython-and-plugins 2.3")
            .cell("pass", NOTHING)
            .cell("", NOTHING)
            .cell("None", NOTHING),
        check("ipython/lines", "a cell may begin with an empty line", "ipython-and-plugins 2.4")
            .cell("\nfor i in range(3):\n    print(i)\n", "0\n1\n2"),
        check(
            "ipython/colours",
            "colours of one to three numbers are removed, other sequences stay",
            "ipython-and-plugins 2.3",
        )
        .cell("print('\\x1b[31ma\\x1b[1;2mb\\x1b[38;5;9mc\\x1b[1;2;3;4md\\x1b[2Ke')", "abc\u{1b}[1;2;3;4md\u{1b}[2Ke"),
        check(
            "ipython/extra",
            "two lines tell directory and interpreter unless they are not wanted",
            "ipython-and-plugins 2.4 step 4",
        )
        .prepare("cd {dir}")
        .cell_with_extra("print(1)", "1")
        .cell_with_extra("pass", NOTHING),
    ]
}

fn errors() -> Vec<Check> {
    vec![
        check("ipython/error", "an error is shown by its traceback and is no failure", "ipython-and-plugins 2.2")
            .cell_that("print('before')\n1/0\nprint('after')", |expect| {
                expect
                    .starts("/content", "before\n---------")
                    .ends("/content", "\nZeroDivisionError: division by zero")
                    .has_not("/content", "\u{1b}")
            }),
        check("ipython/syntax-error", "code that is no Python is told", "ipython-and-plugins 2.2")
            .cell_that("x = = 1", |expect| expect.ends("/content", "SyntaxError: invalid syntax")),
        check("ipython/missing-module", "a module that is missing is named", "ipython-and-plugins 2.4")
            .cell_that("import a_module_that_nobody_has", |expect| {
                expect.has("/content", "ModuleNotFoundError: No module named 'a_module_that_nobody_has'")
            }),
    ]
}

fn displays() -> Vec<Check> {
    let picture = format!("import base64\nfrom IPython.display import Image\nImage(data=base64.b64decode('{PIXEL}'))");
    let url = format!("data:image/png;base64,{PIXEL}");
    vec![
        check("ipython/display", "what is displayed comes in order, as text", "ipython-and-plugins 2.2")
            .cell("print('a'); display('b', 3); print('c'); 'd'", "a\n'b'3c\n'd'"),
        check("ipython/image", "a picture is text and a URL", "ipython-and-plugins 2.2").cell_that(
            &picture,
            |expect| {
                expect.is("/content", "<IPython.core.display.Image object>").at("/extras/image_urls", json!([url]))
            },
        ),
    ]
}

fn state() -> Vec<Check> {
    vec![
        check("ipython/state", "variables live from cell to cell", "ipython-and-plugins 2.1")
            .cell("kept_by_check = 41", NOTHING)
            .cell("kept_by_check + 1", "42"),
        check("ipython/magics", "magics, commands and top-level await work", "ipython-and-plugins 2.1")
            .cell("!echo from the shell", "from the shell")
            .cell("import asyncio\nprint(await asyncio.sleep(0.01, 'awaited'))", "awaited")
            .cell_that("%pip --version", |expect| expect.has("/content", "pip ").has("/content", "python")),
        check("ipython/files", "files of cells belong to the user of the shell", "ipython-and-plugins 2.4")
            .cell("with open('{dir}/written', 'w') as f: f.write('Hello, world!')", NOTHING)
            .run("cat {dir}/written; [ -O {dir}/written ] && echo ' is mine'", Expect::ran("Hello, world! is mine", 0)),
    ]
}

fn directories() -> Vec<Check> {
    vec![
        check(
            "ipython/follows",
            "a change of the shell's directory moves the notebook",
            "ipython-and-plugins 2.4 step 1",
        )
        .prepare("mkdir -p {dir}/sub && cd {dir}/sub")
        .cell("import os; print(os.getcwd())", "{dir}/sub")
        .prepare("cd {dir}")
        .cell("print(os.getcwd())", "{dir}"),
        check(
            "ipython/moves-itself",
            "where a cell goes it stays until the shell goes elsewhere",
            "ipython-and-plugins 2.4 step 1",
        )
        .prepare("mkdir -p {dir}/own && cd {dir}")
        .cell("import os; os.chdir('own'); print(os.getcwd())", "{dir}/own")
        .cell_with_extra("print(os.getcwd())", "{dir}/own")
        .prepare("cd {dir}/own && cd {workspace}")
        .cell("print(os.getcwd())", "{workspace}"),
    ]
}

fn limits() -> Vec<Check> {
    let endless = "print('lost'); import time; time.sleep(60)";
    vec![
        check("ipython/limit", "a cell is interrupted at its limit, and the kernel goes on", "ipython-and-plugins 2.3")
            .cell("alive_before = 'alive'", NOTHING)
            .act(
                action(endless, 1.5, false),
                ran(endless)
                    .is("/content", "[Execution timed out (1.5 seconds).]")
                    .at("/extras/image_urls", Value::Null),
            )
            // A kernel that has just been interrupted drops what already waits, unless somebody looks after it.
            .prepare("sleep 1")
            .cell("print(alive_before)", "alive"),
    ]
}
