//! What cells show (ipython-and-plugins 2.2 to 2.4).

use gloveport_kernel::{CellEnd, Output};

use crate::support::{Fixture, cell, lines};

#[tokio::test]
async fn cells_of_the_table_show_what_it_says() {
    let fixture = Fixture::start();
    let directory = fixture.directory.path().canonicalize().unwrap();
    for (code, expected) in [
        ("print('Hello, `World`!\\n')", "Hello, `World`!\n\n".to_owned()),
        ("print(1)", "1\n".to_owned()),
        ("with open('test.txt', 'w') as f: f.write('Hello, world!')", String::new()),
        ("import os; print(os.getcwd())", format!("{}\n", directory.display())),
        ("import os; print(os.environ['USER'])", "tester\n".to_owned()),
        ("\nx = 1\nif x:\n    print('multi')\n\nprint('line')", "multi\nline\n".to_owned()),
        ("os.chdir(r'/usr')\nprint(os.getcwd())", "/usr\n".to_owned()),
        ("1+1", "2".to_owned()),
        ("x = 5", String::new()),
        ("x", "5".to_owned()),
        ("   ", String::new()),
        ("", String::new()),
    ] {
        assert_eq!(fixture.text(code).await, expected, "{code:?}");
    }
    assert_eq!(std::fs::read(directory.join("test.txt")).unwrap(), b"Hello, world!");
}

#[tokio::test]
async fn magics_and_top_level_await_work() {
    let fixture = Fixture::start();
    for (code, expected) in [
        ("!echo hi", "hi\r\n"),
        ("%%bash\necho one\necho two >&2; echo three", "one\nthree\ntwo\n"),
        ("import asyncio\nawait asyncio.sleep(0.01, 7)", "7"),
        ("async def f():\n    return 'x'\nprint(await f())", "x\n"),
        ("%%capture c\nprint('hidden')", ""),
        ("c.stdout", "'hidden\\n'"),
        ("_ = !echo a b", ""),
        ("%colors nocolor", ""),
    ] {
        let text = fixture.text(code).await;
        if code.starts_with("%%bash") {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            assert_eq!(lines.join("\n") + "\n", expected);
        } else {
            assert_eq!(text, expected, "{code:?}");
        }
    }
    let text = fixture.text("%pip --version").await;
    assert!(text.starts_with("pip "), "{text}");
}

#[tokio::test]
async fn exceptions_have_their_traceback_without_colours() {
    let fixture = Fixture::start();
    for (code, last) in [
        ("import pymsgbox_that_is_missing", "ModuleNotFoundError: No module named 'pymsgbox_that_is_missing'"),
        ("1/0", "ZeroDivisionError: division by zero"),
        ("raise ValueError('\\ud800 ü')", "ValueError: \u{fffd} ü"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt: "),
        (
            "input('name? ')",
            "StdinNotImplementedError: raw_input was called, but this frontend does not support input requests.",
        ),
    ] {
        let report = fixture.report(cell(code)).await;
        assert_eq!(report.end, CellEnd::Raised, "{code:?}");
        assert!(report.text.contains(last), "{code:?}: {}", report.text);
        assert!(!report.text.contains('\u{1b}'), "{code:?}: {}", report.text);
    }
    let report = fixture.report(cell("x = (")).await;
    assert_eq!(report.end, CellEnd::Raised);
    assert!(report.text.contains("SyntaxError"), "{}", report.text);
    assert_eq!(fixture.text("'alive'").await, "'alive'");
}

#[tokio::test]
async fn text_comes_in_the_order_in_which_it_was_written() {
    let fixture = Fixture::start();
    for (code, expected) in [
        ("import sys\nfor i in range(3):\n    print(i)\n    print(-i, file=sys.stderr)", "0\n0\n1\n-1\n2\n-2\n"),
        ("import os\nprint('a'); os.system('echo b; echo c >&2'); print('d')", "a\nb\nc\nd\n"),
        ("os.write(1, b'raw '); print('print')", "raw print\n"),
        ("import subprocess\nsubprocess.run(['echo', 'child']).returncode", "child\n0"),
        ("subprocess.run(['echo', 'given'], stdout=sys.stdout).returncode", "given\n0"),
        ("import warnings; warnings.simplefilter('ignore')", ""),
        ("if os.fork() == 0:\n    print('child'); os._exit(0)\nos.wait()[1]", "child\n0"),
        ("from IPython.display import display\nprint('p', end=' '); display(1); print('q', end=''); 2", "p 1q2"),
        ("import logging\nlogging.warning('w')", "WARNING:root:w\n"),
        ("for i in range(2): print(i, end='', flush=True)", "01"),
        (
            "import multiprocessing\nwith multiprocessing.get_context('fork').Pool(1) as p: p.map(print, ['pool'])",
            "pool\n",
        ),
    ] {
        assert_eq!(fixture.text(code).await, expected, "{code:?}");
    }
    let text = fixture.text("subprocess.run(['seq', '200000']).returncode").await;
    let expected = lines(1..200_001) + "0";
    assert_eq!(text.len(), expected.len());
    assert!(text == expected, "all of it is there, in another order");
}

#[tokio::test]
async fn threads_and_programs_that_write_at_once_lose_nothing() {
    let fixture = Fixture::start();
    let code = "import threading, subprocess\ndef say(n):\n    for i in range(2000): print(f'{n}:{i}\\n', end='')\n\
                threads = [threading.Thread(target=say, args=[n]) for n in range(8)]\n\
                programs = [subprocess.Popen(['sh', '-c', 'i=0; while [ $i -lt 500 ]; do echo p:$i; i=$((i+1)); done']) for n in range(2)]\n\
                for t in threads: t.start()\nfor t in threads: t.join()\nfor p in programs: p.wait()";
    let text = fixture.text(code).await;
    let mut seen: Vec<&str> = text.lines().collect();
    seen.sort_unstable();
    let of_threads = (0..8).flat_map(|thread| (0..2000).map(move |number| format!("{thread}:{number}")));
    let of_programs = (0..2).flat_map(|_| (0..500).map(|number| format!("p:{number}")));
    let mut expected: Vec<String> = of_threads.chain(of_programs).collect();
    expected.sort_unstable();
    assert_eq!(seen.len(), expected.len());
    assert!(seen == expected, "each line is whole");
}

#[tokio::test]
async fn any_character_arrives_and_what_is_none_is_replaced() {
    let fixture = Fixture::start();
    for (code, expected) in [
        ("print('ü€😀\\x00\\x07')", "ü€😀\0\u{7}\n"),
        ("print('\\ud800 \\udc80')", "\u{fffd} \u{fffd}\n"),
        ("class C:\n    def __repr__(self): return '\\ud800x\\udc80'\nC()", "\u{fffd}x\u{fffd}"),
        ("import os; _ = os.write(1, b'a\\xffb\\n')", "a\u{fffd}b\n"),
        ("print('\\x1b[31mred\\x1b[0m \\x1b[1;2;3m \\x1b[2J')", "red  \u{1b}[2J\n"),
        ("import sys\nfor c in '\\x1b[31mred\\x1b[0m': sys.stdout.write(c); sys.stdout.flush()", "red"),
        ("print('ä' * 100_000, end='')", &"ä".repeat(100_000)),
    ] {
        assert_eq!(fixture.text(code).await, expected, "{code:?}");
    }
}

#[tokio::test]
async fn what_cells_do_to_their_streams_stays_theirs() {
    let fixture = Fixture::start();
    for (code, expected) in [
        ("print_ = print\ndef print(*a): print_('mine', *a)\nprint(1)", "mine 1\n"),
        ("del print; print(1)", "1\n"),
        ("import sys; out = sys.stdout; sys.stdout = None; print(1)", ""),
        ("print(2); 3", "2\n3"),
        ("sys.stdout = None; 4", "4"),
        ("sys.stdout = open('/dev/null', 'w'); sys.stdout.close(); 5", "5"),
        ("print(6)", "6\n"),
        ("sys.stdout = out; print(7)", "7\n"),
        (
            "import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()) as f: print('caught')\nf.getvalue()",
            "'caught\\n'",
        ),
        ("import os; os.close(1); print('fd 1 is closed')", "fd 1 is closed\n"),
        ("print('still')", "still\n"),
        ("os.close(2); print('both', file=sys.stderr)", "both\n"),
        ("5", "5"),
    ] {
        let report = fixture.report(cell(code)).await;
        assert_eq!(report.text, expected, "{code:?}");
    }
}

#[tokio::test]
async fn pictures_are_urls_and_bundles_without_text_are_empty_text() {
    let fixture = Fixture::start();
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    let code = format!(
        "from IPython.display import display, Image, HTML, clear_output\nimport base64\ndata = base64.b64decode('{png}')\n\
         display(Image(data))\nprint('x')\nclear_output()\ndisplay({{'image/jpeg': 'AAAA\\nBBBB\\n'}}, raw=True)\ndisplay(HTML('<b>'))"
    );
    let (sender, mut progress) = tokio::sync::mpsc::channel(100);
    let report = fixture.report(gloveport_kernel::Cell { progress: Some(sender), ..cell(&code) }).await;
    assert_eq!(report.text, "<IPython.core.display.Image object>x\n<IPython.core.display.HTML object>");
    assert_eq!(report.images, [format!("data:image/png;base64,{png}"), "data:image/jpeg;base64,AAAABBBB".to_owned()]);
    let mut seen = Vec::new();
    while let Some(output) = progress.recv().await {
        seen.push(output);
    }
    let text = |text: &str| Output::Text(text.into());
    let expected = [
        text("<IPython.core.display.Image object>"),
        Output::Image { media_type: "image/png", base64: png.into() },
        text("x\n"),
        Output::Image { media_type: "image/jpeg", base64: "AAAABBBB".into() },
        text("<IPython.core.display.HTML object>"),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_plot_is_shown_and_a_hundred_more_too() {
    let fixture = Fixture::start();
    let code = "import matplotlib.pyplot as plt\nfor i in range(200):\n    plt.figure(figsize=(0.3, 0.3)); plt.plot([i]); plt.show()";
    let report = fixture.report(gloveport_kernel::Cell { limit: None, ..cell(code) }).await;
    assert_eq!((report.end, report.images.len()), (CellEnd::Completed, 200), "{}", report.text);
    assert!(
        report.images.iter().all(|image| image.starts_with("data:image/png;base64,iVBOR") && !image.contains('\n'))
    );
    assert_eq!(report.text.matches("<Figure size").count(), 200);
}

#[tokio::test]
async fn a_thread_belongs_to_the_cell_that_started_it() {
    let fixture = Fixture::start();
    let code = "import threading, time\ngo = threading.Event()\ndef late():\n    go.wait(); print('late')\n\
                thread = threading.Thread(target=late); thread.start()";
    assert_eq!(fixture.text(code).await, "");
    assert_eq!(fixture.text("go.set(); thread.join(); print('new')").await, "new\n");
    let code = "def say(): print('thread')\nthread = threading.Thread(target=say); thread.start(); thread.join()";
    assert_eq!(fixture.text(code).await, "thread\n");
    let code = "from concurrent.futures import ThreadPoolExecutor\npool = ThreadPoolExecutor(1)\npool.submit(print, 'a').result()";
    assert_eq!(fixture.text(code).await, "a\n");
    assert_eq!(fixture.text("pool.submit(print, 'b').result()").await, "b\n");
}

#[tokio::test]
async fn the_kernel_looks_like_an_ordinary_one() {
    let packages = tempfile::tempdir().unwrap();
    std::fs::write(packages.path().join("gloveport_test_module.py"), "value = 'packages'").unwrap();
    let fixture = Fixture::with(|options| options.packages = Some(packages.path().to_owned()));
    let code = "import sys, os\n(__name__, len(sys.argv), sys.argv[1], '' in sys.path, sys.modules['__main__'].__dict__ is globals(), \
                sys.stdin.closed, [n for n in dir() if not n.startswith('_')])";
    assert_eq!(
        fixture.text(code).await,
        "('__main__',\n 3,\n '-f',\n True,\n True,\n False,\n ['In', 'Out', 'exit', 'get_ipython', 'open', 'os', 'quit', 'sys'])"
    );
    assert_eq!(fixture.text("import gloveport_test_module as m; m.value").await, "'packages'");
    std::fs::write(fixture.directory.path().join("gloveport_test_module.py"), "value = 'own'").unwrap();
    assert_eq!(
        fixture.text("import importlib; importlib.invalidate_caches(); importlib.reload(m).value").await,
        "'own'"
    );
    assert_eq!(
        fixture.text("[p for p in sys.path if 'gloveport-' in p], os.environ.get('JPY_PARENT_PID')").await,
        "([], None)"
    );
    let stem = fixture.directory.path().join(".ipython");
    let history: Vec<_> = std::fs::read_dir(stem.join("profile_default"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| name.to_string_lossy().contains("history"))
        .collect();
    assert!(history.is_empty(), "{history:?}");
}

#[tokio::test]
async fn the_kernel_follows_the_directory_of_the_shell() {
    let fixture = Fixture::start();
    let base = fixture.directory.path().canonicalize().unwrap();
    let odd = base.join("a \"b\\ \n'ü");
    std::fs::create_dir(&odd).unwrap();
    let at = |code: &str, directory: &std::path::Path| gloveport_kernel::Cell {
        directory: Some(directory.to_owned()),
        ..cell(code)
    };
    let cwd = "print(os.getcwd())";
    assert_eq!(fixture.report(at(cwd, &base)).await.text, format!("{}\n", base.display()));
    assert_eq!(fixture.report(at("os.chdir('/usr')", &base)).await.text, "");
    assert_eq!(fixture.report(at(cwd, &base)).await.text, "/usr\n", "its own change stays until the shell moves");
    assert_eq!(fixture.report(at(cwd, &odd)).await.text, format!("{}\n", odd.display()));
    let report = fixture.report(at("1", &base.join("missing"))).await;
    assert_eq!((report.text.as_str(), report.end), ("1", CellEnd::Completed));
    assert_eq!(fixture.report(at(cwd, &base)).await.text, format!("{}\n", base.display()));
}
