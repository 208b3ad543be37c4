//! Operations at random: the same ones for the same seed, for ever.

use serde_json::{Map, Value, json};

use super::Operation;
use crate::bench::zip_of;

/// `SplitMix64`.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below a bound.
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound.max(1) as u64).unwrap_or_default()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn between(&mut self, least: i64, most: i64) -> i64 {
        least + i64::try_from(self.below(usize::try_from(most - least + 1).unwrap_or(1))).unwrap_or_default()
    }
}

/// Files that operations are about. Some exist from the beginning, some come and go.
const FILES: [&str; 14] = [
    "a.txt",
    "b.py",
    "crlf.txt",
    "bom.txt",
    "é漢.txt",
    "tabs.mk",
    "empty",
    "sub/x.txt",
    "sub/deep/y.md",
    "sp ace.txt",
    "new1.txt",
    "new2.txt",
    "open.txt",
    "old-mac.txt",
];
/// Paths of other kinds.
const OTHERS: [&str; 7] = ["missing.txt", "sub", "sub/", "bin.dat", "a.txt/below", "sub/../a.txt", "none/x.txt"];
/// Text of files. Punctuation of Unicode (a zero width joiner, a line separator) is not among it: the reference takes a
/// short file with one for a Mac or East Asian code page, and from then on every look at the file differs.
const LINES: [&str; 20] = [
    "alpha",
    "beta",
    "gamma delta",
    "x = 1",
    "def f(a, b):",
    "    return a + b  # sum",
    "\tindented",
    "",
    "  ",
    "é漢字😀 ß",
    "alpha beta alpha",
    "$HOME `x` \\1 %s {0}",
    "<tag attr=\"v\">",
    "end",
    "trailing  ",
    "'quoted' \"double\"",
    "a\u{c}b",
    "1234567890",
    "end of a line \\",
    "#!/bin/sh",
];
const PIECES: [&str; 16] = [
    "alpha",
    "beta",
    "x = 1",
    "",
    " ",
    "end",
    "  gamma delta  ",
    "é漢",
    "return a + b",
    "\t",
    "alpha\nbeta",
    "nowhere",
    "a",
    "\n",
    "end\n",
    "\u{feff}",
];

const COMMANDS: [&str; 34] = [
    "echo hello",
    "pwd",
    "cd {dir}",
    "cd {dir}/sub && pwd",
    "cd {dir}/none",
    "cat {dir}/a.txt",
    "cat {dir}/a.txt | wc -l",
    "wc -c < '{dir}/sp ace.txt'",
    "ls {dir}/sub",
    "grep -c a {dir}/a.txt",
    "grep -n alpha {dir}/b.py | head -n 3",
    "printf 'no newline'",
    "printf 'a\\tb\\rc\\n'",
    "false",
    "(exit 7)",
    "echo $?",
    "true && echo yes || echo no",
    "for i in 1 2 3; do\necho $i\ndone",
    "if [ -f {dir}/a.txt ]; then\necho file\nfi",
    "cat <<'EOF'\n  kept $x\nEOF",
    "echo one\necho two",
    "ls;\npwd",
    "echo é漢字😀",
    "V=5; echo $V",
    "echo \"V is $V\"",
    "f() { echo in f $1; return 4; }; f x",
    "echo err >&2",
    "nonexistent_command_x",
    "seq 1 30 | tr '\\n' ' '",
    "seq 1 12000 | tail -n 9000",
    "echo -e '\\e[32mgreen\\e[0m'",
    "mkdir -p {dir}/sub/deep; touch {dir}/sub/t1; ls -a {dir}/sub",
    "echo 'appended' >> {dir}/open.txt",
    "sort {dir}/a.txt | uniq -c | sort -rn | head -n 2",
];

/// So many operations, made from a seed. About one in twelve is a command.
pub fn generate(count: usize, seed: u64) -> Vec<Operation> {
    let mut random = Random(seed);
    let mut operations = beginning(&mut random);
    while operations.len() + 2 < count {
        let operation = match random.below(48) {
            0..=3 => run(&mut random),
            4..=13 => read(&mut random),
            14..=19 => write(&mut random),
            20..=37 => edit(&mut random),
            38..=40 => list(&mut random),
            41..=43 => upload(&mut random),
            44 => upload_zip(&mut random),
            _ => download(&mut random),
        };
        operations.push(operation);
    }
    // What came of everything.
    operations.push(Operation::DownloadFiles("{dir}".to_owned()));
    operations.push(Operation::ListFiles(Some("{dir}".to_owned())));
    operations.truncate(count.max(1));
    operations
}

/// The files that are there from the beginning, and a shell beside them.
fn beginning(random: &mut Random) -> Vec<Operation> {
    let mut operations = vec![run_of("cd {dir} && unset V")];
    for file in FILES.iter().filter(|file| !file.starts_with("new")) {
        let content = content(random, file);
        operations.push(put(file, &content));
    }
    operations.push(put("bin.dat", &b"\x00\x01\x02\xff\xfe\x7f".repeat(40)));
    operations.push(put("picture.png", &b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR".repeat(4)));
    operations
}

fn put(file: &str, content: &[u8]) -> Operation {
    let (directory, name) = file.rsplit_once('/').unwrap_or(("", file));
    Operation::upload(format!("{{dir}}/{directory}").trim_end_matches('/'), name, content, false)
}

/// A content that fits the name of the file.
fn content(random: &mut Random, file: &str) -> Vec<u8> {
    let count = match file {
        "empty" => 0,
        _ => random.below(14),
    };
    let end = match file {
        "crlf.txt" => "\r\n",
        "old-mac.txt" => "\r",
        _ => "\n",
    };
    let mut text = String::new();
    if file == "bom.txt" {
        text.push('\u{feff}');
    }
    for _ in 0..count {
        text.push_str(random.pick(&LINES));
        text.push_str(end);
    }
    if file == "open.txt" {
        text.push_str("no newline at the end");
    }
    text.into_bytes()
}

fn path(random: &mut Random) -> String {
    let name = if random.one_in(9) { random.pick(&OTHERS) } else { random.pick(&FILES) };
    format!("{{dir}}/{name}")
}

/// Pieces of text, of one or several lines.
fn text(random: &mut Random) -> String {
    let lines = (0..random.below(4)).map(|_| random.pick(&LINES)).collect::<Vec<_>>();
    let mut text = lines.join("\n");
    if random.one_in(4) {
        text.push('\n');
    }
    text
}

fn action(kind: &str, args: &Map<String, Value>) -> Operation {
    Operation::Action(json!({"action": kind, "args": args, "timeout": 20.0}))
}

fn run_of(command: &str) -> Operation {
    Operation::Action(json!({"action": "run", "args": {"command": command}, "timeout": 20.0}))
}

fn run(random: &mut Random) -> Operation {
    run_of(random.pick(&COMMANDS))
}

fn read(random: &mut Random) -> Operation {
    let mut args = Map::new();
    let path = match random.below(12) {
        // By a path that belongs to the directory of the shell.
        0 => random.pick(&FILES).to_owned(),
        1 => "picture.png".to_owned(),
        2 => "{dir}/picture.png".to_owned(),
        _ => path(random),
    };
    args.insert("path".to_owned(), json!(path));
    let (by_editor, with_range) = (random.one_in(2), random.one_in(2));
    if by_editor {
        args.insert("impl_source".to_owned(), json!("oh_aci"));
        if with_range {
            let range = match random.below(10) {
                0 => json!([]),
                1 => json!([random.between(0, 3)]),
                2 => json!([1, 2, 3]),
                3 => json!([random.between(1, 4), -1]),
                _ => json!([random.between(-1, 9), random.between(-1, 14)]),
            };
            args.insert("view_range".to_owned(), range);
        }
    } else if with_range {
        args.insert("start".to_owned(), json!(random.between(-3, 12)));
        args.insert("end".to_owned(), json!(random.between(-3, 16)));
    }
    action("read", &args)
}

fn write(random: &mut Random) -> Operation {
    let mut args = Map::new();
    args.insert("path".to_owned(), json!(path(random)));
    args.insert("content".to_owned(), json!(text(random)));
    if random.one_in(2) {
        args.insert("start".to_owned(), json!(random.between(-3, 9)));
        args.insert("end".to_owned(), json!(random.between(-3, 9)));
    }
    action("write", &args)
}

fn edit(random: &mut Random) -> Operation {
    let command = random.pick(&[
        "view",
        "view",
        "str_replace",
        "str_replace",
        "str_replace",
        "str_replace",
        "insert",
        "insert",
        "insert",
        "create",
        "undo_edit",
        "undo_edit",
        "undo_edit",
        "rename",
    ]);
    let mut args = Map::new();
    args.insert("command".to_owned(), json!(command));
    let path = match random.below(16) {
        0 => random.pick(&FILES).to_owned(),
        1 => "{dir}".to_owned(),
        _ => path(random),
    };
    args.insert("path".to_owned(), json!(path));
    // Now and then a parameter is left out, or one is there that the command does not take.
    let odd = random.one_in(12);
    match command {
        "create" if !odd => {
            args.insert("file_text".to_owned(), json!(text(random)));
        }
        "str_replace" => {
            let old = if random.one_in(3) { text(random) } else { random.pick(&PIECES).to_owned() };
            if !odd {
                args.insert("old_str".to_owned(), json!(old));
            }
            if !random.one_in(6) {
                args.insert("new_str".to_owned(), json!(text(random)));
            }
        }
        "insert" => {
            let line = match random.below(8) {
                0 => json!("2"),
                1 => json!(random.pick(&["x", " 1", "-1", "1.5", ""])),
                2 => json!(random.between(-2, 20)),
                _ => json!(random.between(0, 6)),
            };
            args.insert("insert_line".to_owned(), line);
            if !odd {
                args.insert("new_str".to_owned(), json!(text(random)));
            }
        }
        _ => {}
    }
    action("edit", &args)
}

fn list(random: &mut Random) -> Operation {
    Operation::ListFiles(Some(match random.below(3) {
        0 => "{dir}".to_owned(),
        1 => "{dir}/sub".to_owned(),
        _ => path(random),
    }))
}

fn upload(random: &mut Random) -> Operation {
    let file = random.pick(&FILES);
    let content = content(random, file);
    put(file, &content)
}

fn upload_zip(random: &mut Random) -> Operation {
    let (first, second) = (content(random, "a.txt"), content(random, "b.py"));
    let zip = zip_of(&[("zipped/one.txt", &first), ("zipped/sub/two.txt", &second), ("../escape.txt", b"x")]);
    Operation::upload("{dir}", "tree.zip", &zip, random.one_in(2))
}

fn download(random: &mut Random) -> Operation {
    Operation::DownloadFiles(random.pick(&["{dir}", "{dir}/sub", "{dir}/a.txt", "{dir}/none", "relative"]).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_operations() {
        assert_eq!(generate(200, 7), generate(200, 7));
        assert_ne!(generate(200, 7), generate(200, 8));
        assert_eq!(generate(200, 7).len(), 200);
    }

    #[test]
    fn most_operations_are_about_files_and_every_kind_is_there() {
        let operations = generate(2_000, 1);
        let commands = operations.iter().filter(|operation| operation.is_command()).count();
        assert!((100..300).contains(&commands), "{commands}");
        for kind in ["read", "write", "edit"] {
            let of_kind =
                |operation: &&Operation| matches!(operation, Operation::Action(action) if action["action"] == kind);
            assert!(operations.iter().filter(of_kind).count() > 100, "{kind}");
        }
        assert!(
            operations.iter().any(|operation| matches!(operation, Operation::UploadFile(upload) if upload.recursive))
        );
        assert!(operations.iter().any(|operation| matches!(operation, Operation::DownloadFiles(_))));
        assert!(operations.iter().any(|operation| matches!(operation, Operation::ListFiles(_))));
    }
}
