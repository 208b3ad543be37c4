//! The pages of the file viewer that show what is written, and what a real Chromium makes of them.
#![expect(clippy::unwrap_used, reason = "test programs stop at the first broken assumption")]

use std::{
    io::{Cursor, Write as _},
    path::Path,
    sync::Arc,
    time::Duration,
};

use crate::{
    common::within,
    viewer::{Running, encoded},
};
use gloveport_executor::plugins::{DownloadPlace, FirstStart, PluginOptions, Web};
use serde_json::json;
use zip::{ZipWriter, write::SimpleFileOptions};

/// What stands in the page of a file.
fn main_of(text: &str) -> &str {
    text.split_once("<main>\n").unwrap().1.strip_suffix("</main>\n</div></body></html>\n").unwrap()
}

#[tokio::test]
async fn what_is_written_is_shown_as_what_it_is_in_a_page_without_scripts() {
    within(async {
        let running = Running::start().await;
        let notebook = json!({"nbformat": 4, "cells": [{"cell_type": "code", "execution_count": 1, "source": "1 < 2",
            "outputs": [{"output_type": "stream", "text": ["True\n"]}]}]});
        let sheet = "<worksheet><sheetData><row r='1'><c r='A1' t='inlineStr'><is><t>&lt;b&gt;</t></is></c><c r='B1'><v>2</v></c></row></sheetData></worksheet>";
        for (name, content, expected) in [
            ("a.md", b"# Hi\n<script>x</script>".to_vec(), "<h1>Hi</h1>\n<p>&lt;script&gt;x&lt;/script&gt;</p>"),
            ("a.csv", b"x,y\n1,<i>".to_vec(), "<tr><th>x</th><th>y</th></tr>\n<tr><td>1</td><td>&lt;i&gt;</td></tr>"),
            ("a.tsv", b"x\ty,z\n".to_vec(), "<tr><th>x</th><th>y,z</th></tr>"),
            ("a.xlsx", workbook(sheet), "<h2>S</h2>\n<table>\n<tr><th>&lt;b&gt;</th><th>2</th></tr>\n</table>"),
            ("a.ipynb", notebook.to_string().into_bytes(), "<pre class=\"code\">1 &lt; 2</pre>\n<pre class=\"output\">True\n</pre>"),
            ("a <b>.py", b"a<b".to_vec(), "<pre class=\"text\">a&lt;b</pre>"),
            ("a.html", b"<script>x</script>".to_vec(), "<pre class=\"text\">&lt;script&gt;x&lt;/script&gt;</pre>"),
        ] {
            let path = running.write(name, &content);
            let found = running.get(&format!("/view?path={}", encoded(&path))).await;
            let text = found.text();
            assert_eq!(found.status, 200, "{name} {text}");
            let title = name.replace('<', "&lt;").replace('>', "&gt;");
            assert!(text.contains(&format!("<title>File Viewer - {title}</title>")), "{text}");
            assert!(main_of(&text).contains(expected), "{name} {text}");
            assert!(!text.contains("<script"), "{name} {text}");
            let policy = found.header("content-security-policy").unwrap();
            let (style, rest) = policy.split_once("; base-uri").unwrap();
            assert!(style.starts_with("default-src 'none'; img-src data:; style-src 'nonce-"), "{policy}");
            assert_eq!(rest, " 'none'; form-action 'none'; frame-ancestors 'none'; sandbox");
        }
        running.server.stop().await;
    })
    .await;
}

/// A workbook with one sheet.
fn workbook(sheet: &str) -> Vec<u8> {
    let main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let package = "http://schemas.openxmlformats.org/package/2006/relationships";
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in [
        (
            "_rels/.rels",
            format!(
                "<Relationships xmlns='{package}'><Relationship Id='r1' Type='{relations}/officeDocument' Target='xl/workbook.xml'/></Relationships>"
            ),
        ),
        (
            "xl/workbook.xml",
            format!(
                "<workbook xmlns='{main}' xmlns:r='{relations}'><sheets><sheet name='S' sheetId='1' r:id='r1'/></sheets></workbook>"
            ),
        ),
        (
            "xl/_rels/workbook.xml.rels",
            format!(
                "<Relationships xmlns='{package}'><Relationship Id='r1' Type='{relations}/worksheet' Target='worksheets/sheet1.xml'/></Relationships>"
            ),
        ),
        ("xl/worksheets/sheet1.xml", sheet.to_owned()),
    ] {
        writer.start_file(name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[tokio::test]
async fn what_cannot_be_shown_of_hostile_files_is_told_and_the_viewer_goes_on() {
    within(async {
        let running = Running::start().await;
        let (deep, cells) = ("[".repeat(1_000_000), "<c><v>1</v></c>".repeat(2_000_000));
        let bomb = workbook(&format!("<worksheet><sheetData>{}</sheetData></worksheet>", " ".repeat(80 << 20)));
        let rows = workbook(&format!("<worksheet><sheetData><row r='1'>{cells}</row></sheetData></worksheet>"));
        for (name, content, status, expected) in [
            ("deep.ipynb", deep.into_bytes(), 500, "it is no notebook: recursion limit exceeded"),
            ("old.ipynb", b"{\"nbformat\":3}".to_vec(), 500, "only 4 is read; open it with Jupyter and save it again"),
            ("bomb.xlsx", bomb, 500, "the unpacked document is larger than 64 MB"),
            ("wide.xlsx", rows, 200, "The table is wider."),
            ("none.xlsx", b"text".to_vec(), 500, "the file is not a valid document"),
            ("program.txt", b"\x7fELF\0\0\0\xff".to_vec(), 500, "it is not text"),
            ("lists.md", format!("{}deep", "- ".repeat(10_000)).into_bytes(), 200, "deep"),
            ("quote.csv", format!("a,b\n\"{}", "x\n".repeat(1_000_000)).into_bytes(), 200, "x\nx"),
            ("long.log", vec![b'x'; 100 << 20], 200, "The file is longer. Only its first 1 MB are shown."),
            ("long.csv", b"a,b\n".repeat(25 << 20), 200, "The table is longer. Only its first 2000 rows are shown"),
            ("large.ipynb", vec![b'['; 65 << 20], 500, "The file has 68157440 bytes, and at most 67108864 are shown."),
        ] {
            let path = running.write(name, &content);
            let found = running.get(&format!("/view?path={path}")).await;
            let text = found.text();
            assert_eq!(found.status, status, "{name} {}", &text[..text.len().min(500)]);
            assert!(text.contains(expected), "{name} {}", &text[..text.len().min(500)]);
            assert!(text.len() < 8 << 20, "{name} {}", text.len());
        }
        assert_eq!(running.get("").await.status, 200);
        running.server.stop().await;
    })
    .await;
}

/// What a file must not do to the page that shows it, and how the page would show it.
const ATTACK: &str = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\
    <meta http-equiv=refresh content=\"0;url=about:blank\"><style>*{display:none}</style><iframe src=about:blank></iframe>";

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_shows_what_is_written_and_does_nothing_that_it_says() {
    if !Path::new("/usr/bin/chromium").exists() {
        eprintln!("skipped: there is no Chromium");
        return;
    }
    let looked = tokio::time::timeout(Duration::from_mins(2), async {
        let running = Running::start_with(None, None, |mut options| {
            let web = Web::new(FirstStart::WhenNeeded, DownloadPlace::Workspace);
            options.plugins =
                PluginOptions { all: vec![Arc::clone(&web) as _], web: Some(web), ..PluginOptions::default() };
            options
        })
        .await;
        let notebook = json!({"nbformat": 4, "cells": [
            {"cell_type": "markdown", "source": format!("# Part\n\n{ATTACK}\n\n[link](javascript:document.title='owned')")},
            {"cell_type": "code", "execution_count": 7, "source": ATTACK, "outputs": [
                {"output_type": "display_data", "data": {"text/html": ATTACK}},
                {"output_type": "error", "traceback": [format!("\u{1b}[31m{ATTACK}\u{1b}[0m")]}]}]});
        let sheet = format!(
            "<worksheet><sheetData><row r='1'><c r='A1' t='inlineStr'><is><t><![CDATA[{ATTACK}]]></t></is></c><c r='B1'><v>1</v></c></row>\
            <row r='2'><c r='A2'><v>2</v></c><c r='B2'><v>4</v></c></row></sheetData></worksheet>"
        );
        for (name, content, expected) in [
            (
                "a.md",
                format!("# Title\n\n{ATTACK}\n\n| a | b |\n|---|---|\n| c | d |").into_bytes(),
                vec!["heading 'Title'", "columnheader 'a'", "cell 'd'"],
            ),
            (
                "a.csv",
                format!("name,age\n\"{}\",3\n", ATTACK.replace('"', "\"\"")).into_bytes(),
                vec!["columnheader 'name'", "cell '3'"],
            ),
            ("a.xlsx", workbook(&sheet), vec!["heading 'S'", "columnheader '1'", "cell '4'"]),
            ("a.ipynb", notebook.to_string().into_bytes(), vec!["heading 'Part'", "In [7]:"]),
            ("a.html", ATTACK.as_bytes().to_vec(), vec!["StaticText"]),
            ("deep.md", format!("{}deep", ">".repeat(10_000)).into_bytes(), vec!["deep"]),
        ] {
            let path = running.write(name, &content);
            let port = running.server.address.port();
            let url = format!("http://localhost:{port}/viewer/{}/view?path={}", running.ticket, encoded(&path));
            let answer = running.server.post("/v1/browser/navigate", json!({"url": url}).to_string()).await;
            let view = answer.json();
            let tree = view["tree"].as_str().unwrap_or_default();
            assert_eq!(view["error"], json!(null), "{name} {view}");
            assert!(tree.starts_with(&format!("RootWebArea 'File Viewer - {name}'")), "{name} {tree}");
            for expected in expected {
                assert!(tree.contains(expected), "{name} lacks {expected}: {tree}");
            }
            assert!(!tree.contains("Iframe") && !tree.contains("javascript:document"), "{name} {tree}");
            assert!(name == "deep.md" || tree.contains("<script>document.title="), "{name} {tree}");
        }
        running.server.stop().await;
    });
    looked.await.unwrap();
}
