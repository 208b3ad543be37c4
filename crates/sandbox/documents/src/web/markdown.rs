//! Markdown as a page. HTML within it is text, pictures come from the file itself, and links lead to pages only.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd, html::push_html};

use super::html::Html;

/// Bytes of the longest Markdown.
const LONGEST: usize = 1024 * 1024;

/// Elements within each other. What is nested deeper stands at this depth.
const DEPTH: usize = 48;

/// How much longer a text may become: each of its characters is escaped, and what links refer to is repeated.
const GROWTH: usize = 8;

/// Where links may lead.
const SCHEMES: [&str; 3] = ["http", "https", "mailto"];

/// What a picture may begin with.
const PICTURES: [&str; 3] = ["data:image/png;base64,", "data:image/jpeg;base64,", "data:image/gif;base64,"];

/// Writes what the Markdown stands for.
pub(super) fn markdown(page: &mut Html, text: &str) {
    let length = text.floor_char_boundary(text.len().min(LONGEST).min(page.room() / GROWTH));
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_YAML_STYLE_METADATA_BLOCKS;
    let room = page.elements();
    let mut tamed =
        Tamed { events: Parser::new_ext(&text[..length], options), open: Vec::new(), depth: 0, links: 0, room };
    let mut shown = String::new();
    push_html(&mut shown, &mut tamed);
    let used = room - tamed.room;
    let is_cut = length < text.len() || tamed.room == 0;
    page.markup("<div class=\"markdown\">\n");
    page.markup(&shown);
    page.markup("</div>\n");
    page.spend(shown.len(), used, is_cut);
}

/// The events of a text without those that a page must not have, and no more of them than there is room for.
struct Tamed<'a> {
    events: Parser<'a>,
    /// The ends of what has begun; none for what is passed over.
    open: Vec<Option<TagEnd>>,
    /// How many of these are shown.
    depth: usize,
    /// How many of these are links.
    links: usize,
    /// Events that may still be shown.
    room: usize,
}

impl<'a> Tamed<'a> {
    fn begin(&mut self, tag: Tag<'a>) -> Option<Event<'a>> {
        let tag = if self.depth < DEPTH { self.tamed(tag) } else { None };
        let end = tag.as_ref().map(Tag::to_end);
        self.depth += usize::from(end.is_some());
        self.links += usize::from(end == Some(TagEnd::Link));
        self.open.push(end);
        tag.map(Event::Start)
    }

    fn end(&mut self) -> Option<Event<'a>> {
        let end = self.open.pop()??;
        self.depth -= 1;
        self.links -= usize::from(end == TagEnd::Link);
        Some(Event::End(end))
    }

    /// What is shown for an element; none if only what is in it is.
    fn tamed(&self, tag: Tag<'a>) -> Option<Tag<'a>> {
        Some(match tag {
            Tag::HtmlBlock => Tag::Paragraph,
            Tag::MetadataBlock(_) => Tag::CodeBlock(CodeBlockKind::Indented),
            // The alignment of columns would be a style of the page's author.
            Tag::Table(_) => Tag::Table(Vec::new()),
            Tag::Heading { level, .. } => Tag::Heading { level, id: None, classes: Vec::new(), attrs: Vec::new() },
            Tag::Link { ref dest_url, .. } => return (self.links == 0 && leads_to_a_page(dest_url)).then_some(tag),
            Tag::Image { ref dest_url, .. } if is_picture(dest_url) => tag,
            // Where the picture is, since nothing is fetched.
            Tag::Image { link_type, dest_url, title, id } if self.links == 0 && leads_to_a_page(&dest_url) => {
                Tag::Link { link_type, dest_url, title, id }
            }
            Tag::Image { .. } => Tag::Emphasis,
            other => other,
        })
    }
}

impl<'a> Iterator for Tamed<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        loop {
            if self.room == 0 {
                // What has begun ends.
                while !self.open.is_empty() {
                    if let Some(end) = self.end() {
                        return Some(end);
                    }
                }
                return None;
            }
            let shown = match self.events.next()? {
                Event::Start(tag) => self.begin(tag),
                Event::End(_) => self.end(),
                Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
                other => Some(other),
            };
            // Cells that a row does not have are shown too, so each event counts, whether it is one of the text or not.
            self.room -= 1;
            if shown.is_some() {
                return shown;
            }
        }
    }
}

/// Whether a link leads to a page or a mailbox, or has no scheme. Browsers read past blanks and control characters.
fn leads_to_a_page(url: &str) -> bool {
    let heard: String = url.chars().filter(|character| *character > ' ' && *character != '\x7f').collect();
    let end = heard.find([':', '/', '?', '#', '\\']).filter(|end| heard[*end..].starts_with(':'));
    end.is_none_or(|end| SCHEMES.iter().any(|scheme| heard[..end].eq_ignore_ascii_case(scheme)))
}

fn is_picture(url: &str) -> bool {
    PICTURES.iter().any(|beginning| url.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        let mut page = Html::default();
        markdown(&mut page, text);
        page.finish()
    }

    fn inner(text: &str) -> String {
        let page = show(text);
        page.strip_prefix("<div class=\"markdown\">\n").unwrap().strip_suffix("</div>\n").unwrap().to_owned()
    }

    #[test]
    fn markdown_is_what_it_stands_for() {
        for (text, expected) in [
            (
                "# Title\n\n*a* **b** ~~c~~ `d<e`",
                "<h1>Title</h1>\n<p><em>a</em> <strong>b</strong> <del>c</del> <code>d&lt;e</code></p>\n",
            ),
            (
                "- [x] done\n- open",
                "<ul>\n<li><input disabled=\"\" type=\"checkbox\" checked=\"\"/>\ndone</li>\n<li>open</li>\n</ul>\n",
            ),
            (
                "|a|b|\n|:-:|--|\n|1|2|",
                "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td>1</td><td>2</td></tr>\n</tbody></table>\n",
            ),
            ("```rust\nfn a<T>() {}\n```", "<pre><code class=\"language-rust\">fn a&lt;T&gt;() {}\n</code></pre>\n"),
            ("---\ntitle: x\n---\n\ntext", "<pre><code>title: x\n</code></pre>\n<p>text</p>\n"),
            (
                "[a](https://example.org/?b&c \"t\")",
                "<p><a href=\"https://example.org/?b&amp;c\" title=\"t\">a</a></p>\n",
            ),
            ("[a](other.md#part)", "<p><a href=\"other.md#part\">a</a></p>\n"),
        ] {
            assert_eq!(inner(text), expected, "{text}");
        }
    }

    #[test]
    fn html_within_it_is_text() {
        for text in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<div\nonclick='x'>\n\n**b**\n\n</div>",
            "<!-- a --><style>*{display:none}</style>",
            "<iframe src=\"data:text/html,x\"></iframe>",
            "<svg><a xlink:href=\"javascript:x\"><text>a</text></a></svg>",
            "[a](x \"\\\"><script>b</script>\")",
            "```\"><script>\na\n```",
            "[a]: javascript:x\n\n[a] ![b](<x\"onerror=alert(1)>)",
            "x[^<b>]\n\n[^<b>]: <script>",
        ] {
            let shown = inner(text);
            let ours = ["p", "strong", "em", "pre", "code", "a", "sup", "div"];
            for rest in shown.split('<').skip(1) {
                let name: String =
                    rest.trim_start_matches('/').chars().take_while(char::is_ascii_alphanumeric).collect();
                assert!(ours.contains(&name.as_str()), "{text}: {shown}");
                let tag = rest.split('>').next().unwrap();
                assert!(
                    !tag.contains(" on") && !tag.contains("javascript") && !tag.contains("style"),
                    "{text}: {shown}"
                );
            }
        }
    }

    #[test]
    fn links_lead_to_pages_only() {
        for (url, expected) in [
            ("http://a", true),
            ("HTTPS://a", true),
            ("mailto:a@b", true),
            ("//a/b", true),
            ("a/b:c", true),
            ("#a:b", true),
            ("?a:b", true),
            ("", true),
            ("javascript:x", false),
            ("JaVaScRiPt:x", false),
            ("java\tscript\n:x", false),
            ("\u{1}javascript:x", false),
            ("data:text/html,x", false),
            ("file:///etc/passwd", false),
            ("vbscript:x", false),
            ("a:b", false),
        ] {
            assert_eq!(leads_to_a_page(url), expected, "{url:?}");
        }
        assert_eq!(inner("[a](javascript:x) <javascript:x> [b](&#106;avascript:x)"), "<p>a javascript:x b</p>\n");
    }

    #[test]
    fn pictures_come_from_the_file_itself() {
        let picture = "![a](data:image/png;base64,iVBORw0KGgo=)";
        assert_eq!(inner(picture), "<p><img src=\"data:image/png;base64,iVBORw0KGgo=\" alt=\"a\" /></p>\n");
        assert_eq!(inner("![a](https://example.org/a.png)"), "<p><a href=\"https://example.org/a.png\">a</a></p>\n");
        assert_eq!(inner("![a](data:image/svg+xml,<svg/>)"), "<p><em>a</em></p>\n");
        assert_eq!(inner("![a](data:text/html,x)"), "<p><em>a</em></p>\n");
        assert_eq!(inner("[![a](b.png)](c)"), "<p><a href=\"c\"><em>a</em></a></p>\n");
    }

    #[test]
    fn what_is_nested_or_repeated_without_an_end_is_bounded() {
        let deepest = |page: &str, tag: &str| {
            let (mut depth, mut most) = (0_usize, 0);
            for rest in page.split('<').skip(1) {
                if rest.starts_with(&format!("{tag}>")) {
                    depth += 1;
                    most = most.max(depth);
                } else if rest.starts_with(&format!("/{tag}>")) {
                    depth -= 1;
                }
            }
            assert_eq!(depth, 0, "all that begins ends");
            most
        };
        let quotes = format!("{}deep", ">".repeat(10_000));
        let page = show(&quotes);
        assert!(deepest(&page, "blockquote") <= DEPTH && page.contains("deep"));
        let lists = format!("{}deep", "- ".repeat(10_000));
        let page = show(&lists);
        assert!(deepest(&page, "ul") <= DEPTH && page.contains("deep"));
        // A row of a wide table has all the columns of its head.
        let wide = format!("{0}|\n{1}|\n{2}", "|a".repeat(5_000), "|-".repeat(5_000), "|\n".repeat(20_000));
        for text in [
            wide,
            "[a](b".repeat(100_000),
            "*a **b ".repeat(100_000),
            "![".repeat(300_000),
            "`".repeat(1_000_000),
            "<".repeat(1_000_000),
            "&".repeat(2_000_000),
            format!("[a]: {}\n\n{}", "b".repeat(300_000), "[a] ".repeat(100_000)),
            "* a\n".repeat(250_000),
        ] {
            let page = show(&text);
            assert!(page.len() < 16 * 1024 * 1024, "{} {}", &text[..20], page.len());
            deepest(&page, "table");
        }
        assert!(show(&"* a\n".repeat(250_000)).ends_with("the rest is left out.</p>\n"));
    }
}
