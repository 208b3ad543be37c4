"""Records what the reference makes of pages: tests/fixtures/page_text.json.

Each page is opened in Chromium, and the chain of the reference (BrowserGym's HTML of the DOM snapshot, Beautiful Soup,
html2text with the settings of OpenHands) gives its text. Pseudo-elements are taken out of the snapshot first: newer
versions of Chromium list them, and the chain would print their names.

    PYTHON tests/record_page_text.py        (a Python with openhands-ai 0.62; Chromium at /usr/bin/chromium)
"""

import importlib.metadata
import json
import pathlib

import html2text
from browsergym.utils.obs import flatten_dom_to_str
from playwright.sync_api import sync_playwright

BODIES = {
    "plain text": "just text",
    "empty": "",
    "paragraphs": "<p>one</p><p>two <b>bold</b> and <i>italic</i>, <u>under</u>.</p>after",
    "headings": "<h1>A</h1><h2>B <small>s</small></h2><h3><a href='/x'>C</a></h3><h6>D</h6>text",
    "heading in a link": "<a href='http://h/'><h2>Title</h2><p>text</p></a><a href='/y'>x<h3>y</h3></a>",
    "links": "<a href='a.html'>one</a> <a href='http://x.y/z' title='T (1)'>two</a><a href='#in'>three</a><a>four</a>",
    "links with brackets": "<a href='/a(b)[c]\\d'>x [y]</a> <a href=''>empty</a> <a href='/e'></a> <a href='/i'><img src=x alt=y></a>",
    "link that is its own text": "<a href='http://x.y/z'>http://x.y/z</a> <pre><a href='http://x.y/z'>http://x.y/z</a></pre>",
    "bold link": "<a href='/x'><b>bold</b> rest</a> <b><a href='/y'>in</a></b>",
    "listing": "<h1>Directory listing for /</h1><hr><ul><li><a href='server.log'>server.log</a></li><li><a href='x/'>x/</a></li></ul><hr>",
    "ordered list": "<ol><li>one<li>two<li>three</ol><ol start=5><li>five<li>six</ol><ol start=x><li>a</ol>",
    "nested lists": "<ul><li>a<ul><li>b<ol><li>c</li><li>d<ul><li>e</ul></ol></ul></li><li>f</ul>",
    "lists after one another": "<ul><li>a</ul><ul><li>b</ul>text<ul><li>c</ul>",
    "list in heading": "<ol><li><h3>t</h3><p>x</p></li><li><p>y</p><p>z</p></li></ol>",
    "item without list": "<li>alone</li><li>two</li>",
    "definition list": "<dl><dt>term</dt><dd>one</dd><dd>two</dd><dt>t2<dd><p>par</p></dl>end",
    "table": "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr><tr><td colspan=2>3</td></tr></table>after",
    "table with parts": "<table><caption>cap</caption><thead><tr><th>h</th></tr></thead><tbody><tr><td><p>p</p><p>q</p></td><td>r</td></tr></tbody><tfoot><tr><td>f</td></tr></tfoot></table>",
    "table in table": "<table><tr><td>a<table><tr><td>b</td><td>c</td></tr></table></td><td>d</td></tr></table>",
    "span between cells": "<table><tr><td><span>a</span></td><td><b>b</b></td></tr></table>",
    "table in a link": "<a href='/x'>t<table><tr><td>q</td></tr></table>u</a>v",
    "block quotes": "<blockquote>one<p>two</p><blockquote>three<br>four</blockquote></blockquote>after",
    "quote with list and pre": "<blockquote><ul><li>a</ul><pre>x\ny</pre></blockquote>",
    "line breaks": "one<br>two<br/><br>three<p>a<br></p>",
    "rule": "a<hr>b<hr><hr>c",
    "pre": "<pre>one\n  two\n\n<b>three</b> four</pre>after",
    "pre with newline first": "<pre>\none</pre><pre>\n\ntwo\n</pre>",
    "pre in list": "<ul><li>a<pre>x\n y</pre></li></ul><ol><li><pre>\nq\nr</pre></ol>",
    "empty pre": "a<pre></pre>b<pre></pre>",
    "pre and code": "<pre><code>fn a() {\n    b();\n}</code></pre><p>use <code>x_y</code> or <kbd>k</kbd><tt>t</tt></p>",
    "textarea": "<textarea>  a\n  b</textarea><input value=v><button>go</button><label>l</label>",
    "emphasis next to text": "a<i>b</i>c <em>d</em>, <i>e</i>! f<b>g</b>h **<b>x</b>",
    "nested emphasis": "<b><i>x</i></b> <i><b> y </b></i> <b></b><i> </i>z",
    "emphasis in pre": "<pre>a<i>b</i>c*<b>d</b> ~<s>e</s></pre>",
    "struck": "<del>a</del> <s>b</s><strike>c</strike> ~<del>d</del>",
    "quotations": "<q>a</q> <q>b <q>c</q></q>",
    "abbreviations": "<abbr title='Hyper Text'>HT</abbr> and <abbr>XX</abbr> <abbr title='Hyper Text 2'>HT</abbr>",
    "escapes": "1. not a list<br>- nor this<p>+ or this</p><p>-- x</p><p>a \\* b \\\\ c \\q</p><p>12.5</p><p>3.</p>",
    "entities": "a &lt; b &amp;&amp; c &gt; d &copy; &nbsp; e&nbsp;f &mdash; &rsquo;",
    "entities in emphasis": "<b>a & b</b> <i>&amp;</i>x <a href='/q?a=1&amp;b=2'>x &amp; y</a>",
    "unicode": "<p>日本語 <b>テスト</b> 😀 مرحبا \u200e x</p>",
    "scripts and styles": "<style>p { color: red }</style><script>if (1 < 2) { x = '<b>'; }</script><p>text</p>",
    "styles in emphasis": "<b><style>x{}</style>bold</b><a href='/x'><style>y{}</style>link</a>",
    "template": "<template><p>t</p></template>after",
    "images": "<p>a <img src=x alt=picture> b</p><picture><source srcset=x><img src=y></picture>",
    "svg": "<svg width=10><title>tt</title><text x=1>hi</text><a href='/s'>l</a><style>q{}</style></svg>after",
    "form": "<form><fieldset><legend>L</legend><label for=a>A</label><input id=a><select><option>1<option selected>2</select></fieldset></form>",
    "optgroups": "<select><optgroup label=g><option>1<option>2</optgroup><option>3</select>",
    "details": "<details open><summary>S</summary><p>d</p></details><details>x</details>",
    "custom elements": "<my-el><p>a</p><x-y>b</x-y></my-el>c",
    "shadow root": "<div id=h>light</div><script>h.attachShadow({mode:'open'}).innerHTML='<b>sh</b><slot></slot><p>p</p>'</script>",
    "semantic parts": "<header><nav><a href='/'>Home</a><a href='/b'>B</a></nav></header><main><article><h2>T</h2><p>x</p></article></main><footer>f</footer>",
    "inline with paragraph": "<span>a<div>b</div>c</span><b>x<p>y</p>z</b>",
    "center and font": "<center><font color=red>a<p>b</p></font></center><p>c",
    "cards": "<div><a href='/1'><div><span>A</span><span>1 €</span></div></a><a href='/2'><div>B</div></a></div>",
    "navigation list": "<ul><li><a href='/1'>One</a></li><li><a href='/2'><span>Two</span></a><ul><li><a href='/3'>3</a></ul></ul>",
    "ruby": "<ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby>",
    "hidden": "<p hidden>h</p><div style='display:none'>n</div>v",
    "media": "<video controls><p>no video</p></video><audio></audio><object>fallback</object><canvas>c</canvas>",
    "white space": "  a \n\n b\t<span> c </span> <span>d</span>   <p>  e  </p>  ",
    "sub and sup": "H<sub>2</sub>O x<sup>2</sup>",
    "comments": "a<!-- c -->b<!-- d --> c",
    "fieldset in a link": "<a href='/x'>a<fieldset>b</fieldset></a>",
    "menu and dir": "<menu><li>a</menu><dir><li>b</dir><address>c</address>",
    "dl with lists": "<dl><dt>a<dd><ul><li>x</ul><dd><pre>p</pre></dl>",
    "bold paragraphs": "<p><b>a</b></p><p><strong>b:</strong> c</p><p><em>d</em>e</p>",
    "cells with lists": "<table><tr><td><ul><li>a<li>b</ul></td><td><h3>h</h3>x</td></tr></table>",
    "noscript": "<noscript><p>Please <b>enable</b> &lt;scripts&gt; &amp; &#x41;&#66;&nbsp;</p><!-- c --></noscript><p>x<noscript>plain</noscript>y</p>",
    "noscript of a tracker": "<noscript><img height=1 src='https://t/?a=1&b=2'/></noscript><noscript><iframe src='https://t/ns.html' height=0></iframe></noscript><noscript><a HREF=/x?a=1&amp;b title=\"t\">l</a> 1 < 2 <style>p{}</style></noscript>",
    "noscript in parts": "<noscript><div>open</noscript><noscript><ul><li>a<li>b</ul><a href='y' disabled>z</a></noscript>after",
    "headings in a row": "<table><tr><td><div>a</div><div>b</div></td></tr></table><div>c</div><div>d</div>",
}
PAGES = {
    "title in head": "<title>T</title><p>x",
    "frameset": "<frameset><frame name=a></frameset>",
    "body attributes": "<!doctype html><html lang=en><head><meta charset=utf-8><link rel=x href=y></head><body class=c>x</body></html>",
}


def without_pseudo_elements(snapshot):
    """The snapshot with pseudo-elements turned into comments, which the chain skips."""
    for document in snapshot["documents"]:
        nodes = document["nodes"]
        for node, name in enumerate(nodes["nodeName"]):
            if snapshot["strings"][name].startswith("::"):
                nodes["nodeType"][node] = 8
    return snapshot


def only_needed(snapshot):
    wanted = ("parentIndex", "nodeType", "nodeName", "nodeValue", "attributes", "contentDocumentIndex")
    documents = [{"nodes": {k: d["nodes"][k] for k in wanted}} for d in snapshot["documents"]]
    return {"documents": documents, "strings": snapshot["strings"]}


def text_of(snapshot):
    converter = html2text.HTML2Text()
    converter.ignore_links = False
    converter.ignore_images = True
    converter.images_to_alt = True
    converter.body_width = 0
    return converter.handle(flatten_dom_to_str(snapshot))


def main():
    pages = {name: f"<!doctype html><body>{body}" for name, body in BODIES.items()} | PAGES
    pages["everything"] = "<!doctype html><body>" + "<br>".join(BODIES.values())
    versions = {
        name: importlib.metadata.version(name)
        for name in ("browsergym-core", "html2text", "beautifulsoup4", "lxml", "openhands-ai")
    }
    cases = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", chromium_sandbox=False)
        versions["chromium"] = browser.version
        page = browser.new_page()
        for name, html in pages.items():
            page.goto("about:blank")
            page.set_content(html)
            session = page.context.new_cdp_session(page)
            snapshot = session.send("DOMSnapshot.captureSnapshot", {"computedStyles": []})
            session.detach()
            snapshot = without_pseudo_elements(only_needed(snapshot))
            cases.append({"name": name, "snapshot": snapshot, "text": text_of(snapshot)})
    target = pathlib.Path(__file__).parent / "fixtures" / "page_text.json"
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    target.write_text(f'{{"versions":{json.dumps(versions)},\n"cases":[\n{lines}\n]}}\n')


main()
