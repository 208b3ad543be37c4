"""Records what BrowserGym extracts from pages: tests/fixtures/observations.json.

Each page is opened in Chromium and marked; what Chromium answers is kept next to what BrowserGym and OpenHands make of
it: merged tree, its text, and the properties of elements.

    PYTHON tests/record_observations.py     (a Python with openhands-ai 0.62; Chromium at /usr/bin/chromium)
"""

import copy
import importlib.metadata
import json
import pathlib

from browsergym.core import observation
from browsergym.utils.obs import flatten_axtree_to_str
from playwright.sync_api import sync_playwright

SHADOW = "<div id=h>light</div><script>h.attachShadow({mode:'open'}).innerHTML='<button>in</button><slot></slot>'</script>"
PAGES = {
    "form": "<title>Test Form</title><h1>Form</h1><form><input placeholder='Enter text' value='Hello World' required><input type=checkbox checked aria-label=c><input type=radio name=r><input type=range value=30 aria-label=v><input type=number value=5><textarea>two\nlines</textarea><select><option>Option 1<option selected>Option 2</select><button disabled>Test Button</button><input type=password value=x><input type=file></form>",
    "table": "<table><caption>C</caption><tr><th>a<th>b<tr><td>1<td><a href='/x'>2</a></table>",
    "lists": "<ul><li>one<li>two <b>bold</b><ul><li>three</ul></ul><ol><li>x</ol><dl><dt>t<dd>d</dl>",
    "svg": "<svg width=50 height=50><title>Pic</title><circle r=10 cx=20 cy=20 onclick='x()'></circle><text y=30>svg text</text></svg><img alt='a picture' src='data:,'>",
    "hidden": "<div hidden>h</div><div style='visibility:hidden'>v</div><div aria-hidden=true>a</div><div style='display:none'><button>n</button></div><p>shown</p><div style='position:absolute;top:3000px'>far</div>",
    "frames": "<p>outer</p><div style='height:40px'></div><iframe title=inner srcdoc=\"<div style='height:50px'></div><button>B</button><iframe srcdoc='<a href=x>deep</a>'></iframe>\"></iframe><iframe srcdoc='two' style='display:none'></iframe><iframe></iframe>",
    "scrolled frame": "<div style='height:5000px'>tall</div><iframe srcdoc=\"<div style='height:900px'>a</div><button>b</button><script>scrollTo(0,300)</script>\"></iframe><script>onload=()=>scrollTo(0,4000)</script>",
    "shadow root": SHADOW,
    "right to left": "<html dir=rtl lang=ar><p>مرحبا <b>بالعالم</b></p><button>שלום\u200f</button>",
    "characters": "<p>emoji 😀👩\u200d👩\u200d👧 zero\u200bwidth nbsp\u00a0x soft\u00adhyphen</p><button>it's</button><button>\"q\"</button><button>it's \"q\"</button><button>back\\slash</button><button>\ue000\u2028\uffff</button><button>\U0001f9ff\U0002ebf0\U000e0041</button>",
    "roles": "<div role=button aria-roledescription='my role' aria-description='my words' tabindex=0>x</div><div role=menu><div role=menuitem aria-haspopup=menu aria-expanded=false>m</div></div><div role=alert aria-live=assertive aria-atomic=true>al</div><div role=slider aria-valuenow=3 aria-valuemin=1 aria-valuemax=9>s</div><div aria-description='lines'>d</div><div role=checkbox aria-checked=mixed>c</div>",
    "focused": "<input autofocus aria-label=f><a href='http://localhost/a?b=c'>link</a><details><summary>S</summary>hidden</details><details open><summary>T</summary>open</details>",
    "marks": "<button>one</button> <a href=x>two</a> <div onclick='x()' style='width:90px'>three</div><span style='cursor:pointer'>four</span><input><button style='width:2px;height:2px;padding:0;border:0'></button>",
    "breaks": "line<br>break<hr><pre>pre\n text</pre><blockquote>q</blockquote><code>c</code> <em>e</em> <mark>m</mark> <time>t</time>",
    "links": "<a href='/same'>same</a><a href='/img'><img alt=alt src='data:,'></a><a href='/b'><span>a</span> <span>b</span></a><nav><a aria-current=page href='/'>home</a></nav>",
    "dialog": "<dialog open><p>modal</p><button autofocus>ok</button></dialog><progress value=3 max=10></progress><meter value=0.3></meter><output>o</output>",
    "canvas and media": "<canvas width=20 height=20>fallback</canvas><video controls></video><audio></audio><object></object><embed>",
}


def raw_trees(page):
    """What the answers of Chromium are, in the order in which BrowserGym asks."""
    cdp = page.context.new_cdp_session(page)
    frames = []
    pending = [cdp.send("Page.getFrameTree")["frameTree"]]
    while pending:
        frame = pending.pop()
        pending.extend(frame.get("childFrames", []))
        frames.append(frame["frame"]["id"])
    trees = []
    for frame in frames:
        nodes = cdp.send("Accessibility.getFullAXTree", {"frameId": frame})["nodes"]
        content = {}
        for node in nodes:
            if node["role"]["value"] == "Iframe":
                described = cdp.send("DOM.describeNode", {"backendNodeId": node["backendDOMNodeId"]})
                content[str(node["backendDOMNodeId"])] = described["node"].get("frameId")
        trees.append({"frame": frame, "nodes": nodes, "content_frames": {k: v for k, v in content.items() if v}})
    cdp.detach()
    return trees


def only_needed(snapshot):
    documents = []
    for document in snapshot["documents"]:
        nodes = {k: document["nodes"][k] for k in ("parentIndex", "attributes", "contentDocumentIndex", "isClickable")}
        layout = {k: document["layout"][k] for k in ("nodeIndex", "bounds", "clientRects")}
        kept = {k: document[k] for k in ("scrollOffsetX", "scrollOffsetY")}
        documents.append(kept | {"nodes": nodes, "layout": layout})
    return {"documents": documents, "strings": snapshot["strings"]}


def main():
    versions = {name: importlib.metadata.version(name) for name in ("browsergym-core", "openhands-ai")}
    cases = []
    with sync_playwright() as playwright:
        playwright.selectors.set_test_id_attribute("bid")
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", chromium_sandbox=False)
        versions["chromium"] = browser.version
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        for name, html in PAGES.items():
            page.goto("about:blank")
            page.set_content("<!doctype html>" + html)
            page.wait_for_load_state()
            observation._pre_extract(page, tags_to_mark="all", lenient=False)
            snapshot = observation.extract_dom_snapshot(page)
            trees = raw_trees(page)
            merged = observation.extract_merged_axtree(page)
            observation._post_extract(page)
            properties = observation.extract_dom_extra_properties(copy.deepcopy(snapshot))
            text = flatten_axtree_to_str(merged, properties, with_clickable=True, skip_generic=False)
            cases.append({"name": name, "trees": trees, "snapshot": only_needed(snapshot), "merged": merged,
                          "properties": properties, "text": text})
    target = pathlib.Path(__file__).parent / "fixtures" / "observations.json"
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    target.write_text(f'{{"versions":{json.dumps(versions)},\n"cases":[\n{lines}\n]}}\n')


main()
