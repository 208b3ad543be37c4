//! `browser_open`, `browser_act` and `browser_read`.

use std::{
    fmt::{self, Write as _},
    net::IpAddr,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use gloveport_protocol::browser::{
    BrowserAct, ElementTarget, NavigateRequest, NavigateWait, PageInfo, PageView, ScreenshotRequest,
};
use rmcp::model::{ContentBlock, JsonObject};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    answer::Answer,
    arguments::parse,
    computer::{BrowserAnswer, BrowserRequest, Computer, Failure},
    tool::Tool,
};

/// Most characters of a page in an answer.
const MOST: usize = 30_000;
/// Most bytes of a picture.
const MOST_IMAGE: usize = 5 * 1024 * 1024;
/// How far the wheel turns unless the call says.
const TURN: f64 = 600.0;
/// Pages, downloads and dialogs that an answer tells of.
const MOST_LISTED: usize = 50;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenArguments {
    url: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum What {
    Click,
    Fill,
    Press,
    Select,
    Hover,
    Scroll,
    Type,
}

impl What {
    const fn name(self) -> &'static str {
        match self {
            Self::Click => "click",
            Self::Fill => "fill",
            Self::Press => "press",
            Self::Select => "select",
            Self::Hover => "hover",
            Self::Scroll => "scroll",
            Self::Type => "type",
        }
    }
}

/// An action, and what it is done with: each takes what it needs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActArguments {
    action: What,
    target: Option<String>,
    text: Option<String>,
    keys: Option<String>,
    options: Option<Vec<String>>,
    x: Option<f64>,
    y: Option<f64>,
    submit: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArguments {
    #[serde(default)]
    format: Format,
    offset: Option<u64>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Tree,
    Markdown,
    Screenshot,
}

pub(crate) async fn open(computer: &dyn Computer, arguments: JsonObject) -> Result<Answer, Failure> {
    let OpenArguments { url } = parse(Tool::BrowserOpen, arguments)?;
    let request = NavigateRequest { url: address(&url)?, new_page: false, wait: NavigateWait::Load };
    let view = page(computer.browse(BrowserRequest::Navigate(request)).await?)?;
    Ok(shown(&view, 0))
}

pub(crate) async fn act(computer: &dyn Computer, arguments: JsonObject) -> Result<Answer, Failure> {
    let act = parse::<ActArguments>(Tool::BrowserAct, arguments)?.act()?;
    let view = page(computer.browse(BrowserRequest::Act(act)).await?)?;
    Ok(shown(&view, 0))
}

pub(crate) async fn read(computer: &dyn Computer, arguments: JsonObject) -> Result<Answer, Failure> {
    let ReadArguments { format, offset } = parse(Tool::BrowserRead, arguments)?;
    let offset = usize::try_from(offset.unwrap_or(0)).unwrap_or(usize::MAX);
    match format {
        Format::Tree => Ok(shown(&page(computer.browse(BrowserRequest::Page).await?)?, offset)),
        Format::Markdown => {
            let BrowserAnswer::Text(text) = computer.browse(BrowserRequest::Markdown).await? else {
                return Err(unexpected());
            };
            let (mut answer, part) = (of_pages(computer).await?, Part::of(&text, offset));
            add(&mut answer.text, format_args!("\n\n{}", part.told("text")));
            answer.data["markdown"] = part.text.into();
            part.note(&mut answer.data);
            Ok(answer)
        }
        Format::Screenshot => {
            let request = BrowserRequest::Screenshot(ScreenshotRequest::default());
            let BrowserAnswer::Picture(png) = computer.browse(request).await? else { return Err(unexpected()) };
            if png.len() > MOST_IMAGE {
                return Err(Failure::new(format!(
                    "the picture has {} bytes, and at most {MOST_IMAGE} are shown",
                    png.len()
                )));
            }
            let mut answer = of_pages(computer).await?;
            answer.more.push(ContentBlock::image(STANDARD.encode(png), "image/png"));
            Ok(answer)
        }
    }
}

fn unexpected() -> Failure {
    Failure::new("the sandbox answered something else than was asked for")
}

fn page(answer: BrowserAnswer) -> Result<PageView, Failure> {
    match answer {
        BrowserAnswer::Page(view) => Ok(*view),
        BrowserAnswer::Pages(_) | BrowserAnswer::Text(_) | BrowserAnswer::Picture(_) => Err(unexpected()),
    }
}

/// The address of the active page, without what is in it.
async fn of_pages(computer: &dyn Computer) -> Result<Answer, Failure> {
    let BrowserAnswer::Pages(pages) = computer.browse(BrowserRequest::Pages).await? else { return Err(unexpected()) };
    let active = pages.iter().find(|page| page.active);
    let (url, title) = active.map_or(("", ""), |page| (page.url.as_str(), page.title.as_str()));
    let mut text = head(url, title);
    tell_pages(&mut text, &pages);
    Ok(Answer::new(text, json!({"url": url, "title": title, "pages": listed(&pages)})))
}

impl ActArguments {
    /// What is to be done. What the action does not know is a mistake.
    fn act(mut self) -> Result<BrowserAct, Failure> {
        let what = self.action;
        let act = match what {
            What::Click => BrowserAct::Click { target: self.target(what)?, button: None, double: false },
            What::Fill => {
                let submit = self.submit.take().unwrap_or_default();
                BrowserAct::Fill { target: self.target(what)?, text: self.text(what)?, submit }
            }
            What::Press => {
                let missing = || needs(what, "keys, such as Enter or Control+a");
                let keys = self.keys.take().ok_or_else(missing)?;
                BrowserAct::Press { target: self.target.take().map(|target| element(&target)), keys }
            }
            What::Select => {
                let missing = || needs(what, "options, a list of values or labels");
                let options = self.options.take().ok_or_else(missing)?;
                BrowserAct::Select { target: self.target(what)?, options }
            }
            What::Hover => BrowserAct::Hover { target: self.target(what)? },
            What::Scroll => {
                let (x, y) = (self.x.take(), self.y.take());
                let turn = if x.is_none() { TURN } else { 0.0 };
                BrowserAct::Scroll { x: x.unwrap_or(0.0), y: y.unwrap_or(turn) }
            }
            What::Type => BrowserAct::Type { text: self.text(what)? },
        };
        match self.left() {
            None => Ok(act),
            Some(name) => Err(Failure::new(format!("the action {} does not use {name}; leave it out", what.name()))),
        }
    }

    fn target(&mut self, what: What) -> Result<ElementTarget, Failure> {
        let target = self.target.take();
        let missing =
            || needs(what, "target, the id of an element in the page's tree, such as 12, or a text that it shows");
        Ok(element(&target.ok_or_else(missing)?))
    }

    fn text(&mut self, what: What) -> Result<String, Failure> {
        self.text.take().ok_or_else(|| needs(what, "text"))
    }

    /// What the action has not taken.
    fn left(&self) -> Option<&'static str> {
        [
            (self.target.is_some(), "target"),
            (self.text.is_some(), "text"),
            (self.keys.is_some(), "keys"),
            (self.options.is_some(), "options"),
            (self.x.is_some(), "x"),
            (self.y.is_some(), "y"),
            // That it does not submit is true of every action.
            (self.submit == Some(true), "submit"),
        ]
        .into_iter()
        .find_map(|(is_left, name)| is_left.then_some(name))
    }
}

fn needs(what: What, this: &str) -> Failure {
    Failure::new(format!("the action {} needs {this}", what.name()))
}

/// What a model means: `12`, `a12` and `[ab12]` are ids, and everything else is a text.
fn element(target: &str) -> ElementTarget {
    let word = target.trim();
    let bracketed = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_id = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let plain = || {
        let number = word
            .strip_prefix(|first: char| first.is_ascii_lowercase())
            .map_or(word, |rest| rest.trim_start_matches(|letter: char| letter.is_ascii_uppercase()));
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    let id = bracketed.filter(|id| is_id(id)).or_else(|| plain().then_some(word));
    match id {
        Some(id) => ElementTarget { bid: Some(id.to_owned()), ..ElementTarget::default() },
        None => ElementTarget { text: Some(target.to_owned()), ..ElementTarget::default() },
    }
}

/// An address with a scheme; `https` unless the place is an address of a machine, or this one.
fn address(url: &str) -> Result<String, Failure> {
    let url = url.trim();
    let has_scheme = || {
        let scheme = url.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(&byte)))
            || ["about:", "data:", "blob:", "view-source:"].iter().any(|scheme| url.starts_with(scheme))
    };
    if url.is_empty() {
        return Err(Failure::new("url must be an address, or back, forward or reload"));
    }
    if ["back", "forward", "reload"].contains(&url) || has_scheme() {
        return Ok(url.to_owned());
    }
    let authority = url.split(['/', '?', '#']).next().unwrap_or_default();
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let is_machine = host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok();
    Ok(format!("{}://{url}", if is_machine { "http" } else { "https" }))
}

/// A part of a text that is long.
struct Part<'a> {
    text: &'a str,
    /// Characters before it.
    offset: usize,
    /// Where the text goes on.
    next: Option<usize>,
}

impl<'a> Part<'a> {
    /// At most so many characters from an offset on, up to the end of a line if there is one.
    fn of(text: &'a str, offset: usize) -> Self {
        let place = |characters: usize, text: &str| text.char_indices().nth(characters).map(|(place, _)| place);
        let rest = place(offset, text).and_then(|start| text.get(start..)).unwrap_or_default();
        let Some(end) = place(MOST, rest) else { return Self { text: rest, offset, next: None } };
        let cut = rest.get(..end).unwrap_or_default();
        let text = cut.rfind('\n').and_then(|line| cut.get(..=line)).unwrap_or(cut);
        Self { text, offset, next: Some(offset + text.chars().count()) }
    }

    /// It, and how to read on.
    fn told(&self, what: &str) -> String {
        match self.next {
            Some(next) => format!(
                "{}\n[The {what} goes on: browser_read with offset {next} reads the next part.]",
                self.text.trim_end()
            ),
            None if self.text.is_empty() && self.offset > 0 => {
                format!("[The {what} ends before offset {}.]", self.offset)
            }
            None => self.text.to_owned(),
        }
    }

    fn note(&self, data: &mut Value) {
        if let Some(next) = self.next {
            data["next_offset"] = next.into();
        }
    }
}

/// A page as models and programs read it.
fn shown(view: &PageView, offset: usize) -> Answer {
    let mut text = head(&view.url, &view.title);
    if let Some(error) = &view.error {
        add(&mut text, format_args!("\nError: {error}"));
    }
    tell_pages(&mut text, &view.pages);
    for (what, items) in [("Downloaded", &view.downloads), ("Answered a dialog", &view.dialogs)] {
        for item in items.iter().take(MOST_LISTED) {
            add(&mut text, format_args!("\n{what}: {item}"));
        }
    }
    let tree = Part::of(&view.tree, offset);
    add(&mut text, format_args!("\n\n{}", tree.told("tree")));
    let mut data = json!({
        "url": view.url,
        "title": view.title,
        "pages": listed(&view.pages),
        "tree": tree.text,
    });
    tree.note(&mut data);
    let optional = [
        ("error", view.error.clone().map(Value::from)),
        ("focused", view.focused.clone().map(Value::from)),
        ("downloads", some(&view.downloads)),
        ("dialogs", some(&view.dialogs)),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            data[name] = value;
        }
    }
    Answer::new(text, data)
}

fn some(items: &[String]) -> Option<Value> {
    (!items.is_empty()).then(|| items.iter().take(MOST_LISTED).cloned().collect())
}

fn head(url: &str, title: &str) -> String {
    if title.is_empty() { url.to_owned() } else { format!("{title}\n{url}") }
}

/// Puts something behind a text.
fn add(text: &mut String, more: fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _written = text.write_fmt(more);
}

/// Tells of the pages if there are several.
fn tell_pages(text: &mut String, pages: &[PageInfo]) {
    for page in pages.iter().filter(|page| !page.active).take(MOST_LISTED) {
        add(text, format_args!("\nAlso open: {}", page.url));
    }
}

fn listed(pages: &[PageInfo]) -> Value {
    let listed = pages.iter().take(MOST_LISTED);
    listed.map(|page| json!({"url": page.url, "title": page.title, "active": page.active})).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(fields: &Value) -> Result<BrowserAct, String> {
        let arguments = fields.as_object().unwrap().clone();
        parse::<ActArguments>(Tool::BrowserAct, arguments).and_then(ActArguments::act).map_err(|failure| failure.text)
    }

    #[test]
    fn an_id_is_told_from_a_text() {
        let id = |id: &str| ElementTarget { bid: Some(id.to_owned()), ..ElementTarget::default() };
        let text = |text: &str| ElementTarget { text: Some(text.to_owned()), ..ElementTarget::default() };
        for (target, expected) in [
            ("12", id("12")),
            (" 12 ", id("12")),
            ("[12]", id("12")),
            ("a12", id("a12")),
            ("aZ3", id("aZ3")),
            ("[ab12]", id("ab12")),
            ("[a]", id("a")),
            ("Sign in", text("Sign in")),
            ("step2", text("step2")),
            ("A4", text("A4")),
            ("[the first]", text("[the first]")),
            ("[]", text("[]")),
            ("", text("")),
        ] {
            assert_eq!(element(target), expected, "{target:?}");
        }
    }

    #[test]
    fn an_address_gets_the_scheme_that_is_missing() {
        for (given, expected) in [
            ("https://example.org/a", "https://example.org/a"),
            ("about:blank", "about:blank"),
            ("back", "back"),
            ("reload", "reload"),
            ("example.org", "https://example.org"),
            ("example.org:8443/a?b=c://d", "https://example.org:8443/a?b=c://d"),
            ("localhost:8000/x", "http://localhost:8000/x"),
            ("127.0.0.1:8000", "http://127.0.0.1:8000"),
            ("[::1]:80/", "http://[::1]:80/"),
            (" http://a ", "http://a"),
        ] {
            assert_eq!(address(given), Ok(expected.to_owned()), "{given}");
        }
        assert!(address(" ").is_err());
    }

    #[test]
    fn an_action_takes_what_it_needs_and_nothing_else() {
        let target = element("12");
        for (fields, expected) in [
            (
                json!({"action": "click", "target": "12"}),
                BrowserAct::Click { target: target.clone(), button: None, double: false },
            ),
            (
                json!({"action": "click", "target": "12", "submit": false}),
                BrowserAct::Click { target: target.clone(), button: None, double: false },
            ),
            (
                json!({"action": "fill", "target": "12", "text": "a", "submit": true}),
                BrowserAct::Fill { target: target.clone(), text: "a".to_owned(), submit: true },
            ),
            (json!({"action": "press", "keys": "Enter"}), BrowserAct::Press { target: None, keys: "Enter".to_owned() }),
            (
                json!({"action": "select", "target": "12", "options": ["b"]}),
                BrowserAct::Select { target: target.clone(), options: vec!["b".to_owned()] },
            ),
            (json!({"action": "hover", "target": "12"}), BrowserAct::Hover { target }),
            (json!({"action": "scroll"}), BrowserAct::Scroll { x: 0.0, y: 600.0 }),
            (json!({"action": "scroll", "x": 5}), BrowserAct::Scroll { x: 5.0, y: 0.0 }),
            (json!({"action": "type", "text": "a"}), BrowserAct::Type { text: "a".to_owned() }),
        ] {
            assert_eq!(given(&fields), Ok(expected), "{fields}");
        }
        for (fields, told) in [
            (json!({"action": "click", "text": "Go"}), "the action click needs target, the id"),
            (json!({"action": "click", "target": "1", "text": "Go"}), "the action click does not use text"),
            (json!({"action": "fill", "target": "1"}), "the action fill needs text"),
            (json!({"action": "press"}), "the action press needs keys"),
            (json!({"action": "select", "target": "1"}), "the action select needs options"),
            (json!({"action": "type", "text": "a", "submit": true}), "the action type does not use submit"),
            (json!({"action": "drag"}), "the arguments of browser_act are wrong: "),
            (json!({"action": "scroll", "z": 1}), "the arguments of browser_act are wrong: "),
        ] {
            let error = given(&fields).unwrap_err();
            assert!(error.starts_with(told), "{fields}: {error}");
        }
    }

    #[test]
    fn a_long_page_is_read_in_parts_that_join() {
        let mut tree = String::new();
        for line in 0..5000 {
            add(&mut tree, format_args!("[{line}] button 'ä{line}'\n"));
        }
        let (mut whole, mut offset) = (String::new(), 0);
        loop {
            let part = Part::of(&tree, offset);
            assert!(part.text.chars().count() <= MOST && part.text.ends_with('\n'));
            whole.push_str(part.text);
            let Some(next) = part.next else { break };
            assert!(part.told("tree").ends_with(&format!("with offset {next} reads the next part.]")));
            offset = next;
        }
        assert!(whole == tree);
        let line = "x".repeat(MOST + 1);
        assert_eq!(Part::of(&line, 0).next, Some(MOST));
        assert_eq!(Part::of("a", 9).told("tree"), "[The tree ends before offset 9.]");
    }

    #[test]
    fn a_page_is_told_with_all_that_is_to_be_known() {
        let info =
            |url: &str, active| PageInfo { id: url.to_owned(), url: url.to_owned(), title: String::new(), active };
        let view = PageView {
            url: "http://a/".to_owned(),
            title: "A".to_owned(),
            pages: vec![info("http://a/", true), info("http://b/", false)],
            tree: "RootWebArea 'A'".to_owned(),
            focused: Some("3".to_owned()),
            error: Some("it is not there".to_owned()),
            downloads: vec!["/w/x".to_owned()],
            dialogs: Vec::new(),
        };
        let answer = shown(&view, 0);
        let expected =
            "A\nhttp://a/\nError: it is not there\nAlso open: http://b/\nDownloaded: /w/x\n\nRootWebArea 'A'";
        assert_eq!(answer.text, expected);
        let expected = json!({
            "url": "http://a/", "title": "A", "tree": "RootWebArea 'A'", "error": "it is not there", "focused": "3",
            "downloads": ["/w/x"],
            "pages": [{"url": "http://a/", "title": "", "active": true}, {"url": "http://b/", "title": "", "active": false}],
        });
        assert_eq!(answer.data, expected);
    }
}
