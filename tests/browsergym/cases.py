"""What is done on the pages: each page is loaded, and then come cases, a first page and actions one after another.

`@id` is the bid of the element that has this id, on whichever page, in whichever frame or shadow root; with `@id#2` of the
second one. `record.py` looks them up. `{A}`, `{B}` and `{C}` are the ports of `web.py`, `{F}` the directory of files.
"""

import os

HERE = os.path.dirname(os.path.abspath(__file__))
FILES = os.path.join(HERE, "files")
A = "http://localhost:{A}"
B = "http://localhost:{B}"

# Never loaded by itself: a navigation to it lasts as long as the longest time limit.
ENDLESS = {"hold.html"}
PAGES = sorted(set(os.listdir(os.path.join(HERE, "pages"))) - ENDLESS)
# What the server makes.
MADE = [
    "text", "json", "xml", "strict", "latin", "drawing.svg", "dot.png", "redirect", "missing", "nothing", "broken", "empty",
    "nocontent", "locked", "circle", "drop", "attachment", "document.pdf", "archive", "app/home", "echo?a=1&b=%3Cb%3E",
]


def loads():
    """One case for each page."""
    return [(f"load {name}", None, [("browse", f"{A}/{name}"), "noop(150)"]) for name in PAGES + MADE]


def go(name, start, *actions):
    return (name, f"{A}/{start}", list(actions))


def goto(path):
    return f'goto("{A}/{path}")'


CASES = [
    ("nothing opened", None, ["noop(10)", "go_back()", "go_forward()", "scroll(0, 10)", "tab_close()", "noop()"]),
    go("history", "plain.html", "noop(500)", goto("tables.html"), "go_back()", "go_forward()", "go_back()", "go_back()",
       "go_back()", "go_forward()\ngo_forward()", goto("lists.html"), "go_forward()"),
    go("history of one page", "links.html", "click('@part')", "click('@part#2')", "go_back()", "go_forward()"),
    go("links", "links.html", "click('@plain')", "go_back()", "click('@refused')", "go_back()", "click('@nothing')",
       "go_back()", "click('@script')", "click('@bent')", "go_back()", "click('@broken')", "go_back()", "click('@mail')"),
    go("links with keys", "links.html", "click('@plain', modifiers=['Control'])", "click('@plain', button='middle')",
       "click('@plain', 'left', ['Shift'])", "click('@plain', button='right')", "tab_focus(0)"),
    go("a page that never loads", "links.html", "click('@hold')", "click('@button')", "go_back()", goto("plain.html")),
    go("form", "form.html", "fill('@name', 'first')\nfill('@search', \"second value\")", "fill('@mail', 'a@b.test')",
       "fill('@phone', '12')", "fill('@site', '')", "fill('@secret', 'longer than eight')", "fill('@number', '8')",
       "fill('@number', 'no number')", "fill('@range', '70')", "fill('@date', '2025-01-31')", "fill('@date', 'never')",
       "fill('@time', '23:59')", "fill('@moment', '2025-01-31T01:02')", "fill('@month', '2025-03')",
       "fill('@week', '2025-W10')", "fill('@colour', '#ff0000')", "fill('@tea', 'on')", "fill('@locked', 'x')",
       "click('@tea')", "click('@milk')", "click('@hot')", "clear('@name')", "click('@send')"),
    go("form, sent", "form.html", "fill('@mail', 'a@b.test')", "fill('@name', 'ä & <b>')", "press('@name', 'Enter')",
       "go_back()", "click('@reset')"),
    go("form, labels and keys", "form.html", "click('@tea')", "press('@tea', 'Space')", "press('@hot', 'ArrowDown')",
       "press('@range', 'ArrowRight')", "press('@number', 'ArrowUp')", "focus('@date')", "press('@name', 'Tab')"),
    go("backspace", "form.html", "fill('@name', 'TestValue123')", 'press("@name", "Backspace")', "press('@name', 'Home')",
       "press('@name', 'Delete')", "press('@name', 'Control+a')", "press('@name', 'X')", "press('@name', 'ControlOrMeta+z')"),
    go("select", "select.html", "select_option('@one', 'p')", "select_option('@one', 'Apple')",
       "select_option('@grouped', 'Honey')", "select_option('@many', ['1', 'Three'])", "select_option('@many', [])",
       "select_option('@shut', 'Never')", "select_option('@one', 'nothing like it')", "select_option('@one', 'x')",
       "select_option('@late', 'second')", "select_option('@said', 'a')", "select_option('@grouped', 'Lemon')",
       "select_option('@one', ['a', 'p'])", "press('@one', 'ArrowDown')", "click('@one')", "select_option('@one', '')"),
    go("select by hand", "select.html", "click('@grouped')", "press('@grouped', 'ArrowUp')", "press('@grouped', 'Enter')"),
    go("textarea", "textarea.html", "fill('@area', 'one\\ntwo')", "clear('@area')", "fill('@wide', 'x')",
       "fill('@rich', 'replaced')", "fill('@plain', \"a\\nb\")", "fill('@para', '')", "press('@area', 'a')",
       "press('@area', 'Enter')", "press('@rich', 'Control+b')", "press('@area', 'é')", "fill('@said', 'x')",
       "fill('@area', '''triple\n'quoted'\n''')", "clear('@rich')"),
    go("buttons", "buttons.html", "click('@test')", "click('@off')", "click('@later')", "dblclick('@twice')", goto("buttons.html"),
       "click('@div')", "click('@pointer')", "click('@inline')", "click('@gone')", "click('@gone')", "click('@box')",
       "hover('@test')", "focus('@div')", "press('@div', 'Enter')", "click('@moving')"),
    go("mouse buttons", "buttons.html", "click('@any')", "click('@any', 'right')", "click('@any', 'middle')",
       "click('@any', modifiers=['Shift', 'Alt'])", "click('@any', 'left', ['ControlOrMeta'])", "dblclick('@any', 'right')",
       goto("buttons.html"), "click('@any', 'wrong')", "click('@any', modifiers=['Hyper'])"),
    go("states", "disabled.html", "fill('@needed', 'x')", "click('@aria')", "fill('@cannot', 'x')", "clear('@neither')",
       "click('@mixed')", "focus('@cannot')", "press('@cannot', 'a')", "hover('@cannot')"),
    go("details", "details.html", "click('@open')", "click('@open')", "click('@second')", "click('@first')"),
    go("dialog", "dialog.html", "click('@modal')", "click('@plain')", "click('@yes')", "click('@plain')", "press('@no', 'Escape')",
       "click('@no')"),
    go("alerts", "alerts.html", "click('@alert')", "click('@confirm')", "click('@prompt')", "click('@stay')", "click('@leave')",
       goto("plain.html")),
    go("frames", "frames.html", "click('@outer')", "click('@inner')", "fill('@field', 'inside')", "click('@docbutton')",
       "focus('@field')", "press('@field', 'End')", "click('@self')", "go_back()", "click('@same')", "hover('@nested')",
       "click('@unseen')"),
    go("frames, deeper", "frames.html", "click('@inner#2')", "fill('@field#2', 'deep')", "click('@top#2')", "go_back()"),
    go("frames of other origins", "origins.html", "click('@inner')", "fill('@field', 'there')", "click('ba6')",
       "fill('ba7', 'deeper there')", "scroll(0, 50)", "click('@top')"),
    go("sandboxed frames", "sandboxed.html", "click('a6')", "click('b6')", "click('c6')", "noop(10)"),
    go("a frame set", "frameset.html", "click('@inner')", "click('@lakes')", "go_back()"),
    go("thirty frames", "manyframes.html", "click('@f0')", "click('@f26')", "click('@f29')"),
    go("shadow roots", "shadow.html", "click('@shadowbutton')", "fill('@shadowfield', 'in the shadow')", "click('@deep')",
       "fill('@deepfield', 'in a frame of a shadow')", "click('@declaredbutton')", "focus('@shadowfield')"),
    go("own elements", "elements.html", "click('@more')", "click('@more')", "click('@field')", "press('@field', 'Tab')"),
    go("endless list", "endless.html", "scroll(0, 5000)", "scroll(0, 5000)", "scroll(0, 5000)", "scroll(0, -300)"),
    go("sticky", "sticky.html", "click('@far')", "click('@up')", "scroll(0, 300)", "click('@farther')", "hover('@far')",
       "scroll(0, -10000)", "scroll(0.5, 100.25)"),
    go("overlays", "overlay.html", "click('@covered')", "click('@under')", "click('@half')", "hover('@covered')",
       "click('@leaving')", "press('@covered', 'a')", "click('@leaving')", "focus('@covered')", "dblclick('@covered')"),
    go("hidden", "hidden.html", "click('@clear')", "click('@ariahidden')", "click('@off')", "click('@zero')",
       "click('@invisible')", "click('@nobox')", "click('@inert')", "focus('@invisible')", "hover('@nobox')"),
    go("roles", "aria.html", "click('@switch')", "click('@speak')", "click('@both')", "press('@switch', 'Space')"),
    go("tabs widget", "tabs.html", "click('@t2')", "press('@t2', 'ArrowLeft')"),
    go("tree widget", "tree.html", "click('@src')", "noop(10)"),
    go("menus", "menu.html", "hover('@over')", "click('@entry')", "click('@opener')", "click('@new')", "hover('@opener')"),
    go("combobox", "combobox.html", "fill('@city', 'N')", "press('@city', 'ArrowDown')", "click('@option1')",
       "fill('@city', 'x')", "press('@city', 'Escape')", "fill('@city', 's')", "press('@city', 'Enter')"),
    go("app", "app.html", "click('@home')", "click('@stock')", "go_back()", "go_back()", "go_forward()"),
    go("drag and drop", "drag.html", "drag_and_drop('@thing', '@there')", "drag_and_drop('@knob', '@end')",
       "hover('@there')", "click('@end')", "drag_and_drop('@knob', '99')"),
    go("keys", "keys.html", "press('@field', 'a')",
       *(f"click('@forget')\npress('@{where}', '{key}')" for where, key in [
           ("field", "A"), ("field", "Shift+a"), ("field", "KeyB"), ("field", "#"), ("field", "Control+Shift+F"), ("div", "F1"),
           ("button", "Enter"), ("button", "Space"), ("area", "Digit5")]),
       *(f"press('@area', '{key}')" for key in [
           "+", "Shift++", "Backquote", "Shift+Digit1", "日", "ab", "Nothing", "", "Hyper+a", "Control+a", "Delete", "Insert",
           "ShiftLeft", "Numpad7", " ", "\\n", "AltGraph"])),
    go("keys and the cursor", "form.html", "fill('@name', 'first')\nfill('@search', 'second')", "press('@name', 'x')",
       "press('@name', 'Backspace')", "press('@name', 'Delete')", "press('@search', 'End')", "press('@search', 'Backspace')"),
    go("keys that move", "keys.html", "fill('@area', 'one two\\nthree')", "press('@area', 'Control+Home')",
       "press('@area', 'Control+ArrowRight')", "press('@area', 'Shift+End')", "press('@area', 'Delete')", "press('@field', 'Tab')", "press('@area', 'Shift+Tab')",
       "press('@div', 'PageDown')"),
    go("autofocus", "autofocus.html", "press('@second', 'x')", "noop(10)"),
    go("focus inside", "focus.html", "click('@shadow')", "click('@inside')", "click('@none')", "focus('@list')",
       "focus('@hostfield')", "focus('@said')", "press('@hostfield', 'Tab')"),
    go("pop-ups", "popup.html", "click('@open')", "click('@inner')", "tab_close()", "click('@empty')", "tab_focus(0)",
       "click('@shut')", "click('@blank')", "tab_focus(0)", "click('@named')", "tab_focus(0)", "click('@named')",
       "tab_focus(0)\nclick('@kept')", "tab_close()", "tab_close()"),
    go("pop-ups that close themselves", "popup.html", "click('@kept')", "tab_focus(0)", "click('@self')", "noop(10)"),
    go("tabs", "plain.html", "new_tab()", goto("tables.html"), "new_tab()\n" + goto("lists.html"), "tab_focus(0)",
       "tab_focus(2)", "tab_focus(3)", "tab_focus(-1)", "tab_focus('1')", "tab_focus(1)", "tab_close()", "tab_close()", "tab_close()",
       "tab_close()", goto("plain.html")),
    go("downloads", "downloads.html", "click('@attached')", "click('@saved')", "click('@made')", "click('@pdf')",
       goto("attachment"), goto("document.pdf")),
    go("uploads", "upload.html", "upload_file('@one', '{F}/note.txt')", "upload_file('@many', ['{F}/note.txt', '{F}/other.txt'])",
       "upload_file('@button', '{F}/other.txt')", "upload_file('@one', '{F}/nothing.txt')", "upload_file('@one', [])",
       "upload_file('@one', ['{F}/note.txt', '{F}/other.txt'])", "fill('@one', 'note.txt')", "clear('@one')"),
    go("right to left", "direction.html", "fill('@field', 'مرحبا')", "click('@button')", "press('@field', 'ArrowLeft')",
       "press('@field', 'Backspace')"),
    go("signs", "unicode.html", "fill('@field', '😀 中文 e\\u0301')", "fill('@field', '\\t\\x07\\u200b')",
       "fill('@field', 'don\\'t \"say\"')", "fill('@field', 'back\\\\slash')", "press('@field', 'Backspace')"),
    go("long names", "longnames.html", "click('@long')", "press('@field', 'End')", "press('@field', 'x')"),
    go("same ids", "duplicates.html", "click('@same')", "click('@same#2')"),
    go("clones", "clones.html", "click('@clone')", "click('7')", "click('@before')", "click('@clone')", "click('@again')", "click('@bid')"),
    go("large", "large.html", "click('@end')", "scroll(0, 3000)", "scroll(0, -3000)"),
    go("deep", "deep.html", "click('@bottom')"),
    go("late", "late.html", "click('@load')", "click('@inner')"),
    go("frames that go", "removed.html", "click('@change')", "click('@white')", "click('@remove')", "click('a5')"),
    go("popovers", "popover.html", "click('@toggle')", "click('@hide')", "click('@manual')", "click('@asleep')", "click('@wake')",
       "click('@asleep')", "press('@toggle', 'Escape')"),
    go("scroll containers", "snap.html", "scroll(0, 200)", "hover('@three')", "scroll(0, -100)", "click('@right')",
       "scroll(-100, 0)", "hover('@said')", "scroll(200, 400)"),
    go("marquee", "math.html", "hover('@marquee')", "click('@marquee')"),
    go("moving on", "scriptaway.html", "noop(300)", "go_back()"),
    go("a strict policy", "policy.html", "click('@button')", "hover('@button')"),
    go("changed functions", "hostile.html", "click('@button')", goto("plain.html")),
    go("base", "base.html", "click('@relative')", "go_back()", "click('@up')"),
    go("own bids", "ownbids.html", "click('5')", goto("plain.html")),
    go("addresses", "plain.html", 'goto("http://localhost:{C}/")', 'goto("http://nothing.invalid/")', 'goto("unknown:x")',
       'goto("plain.html")', 'goto("")', 'goto("http://")', 'goto("localhost:{A}/plain.html")', 'goto("about:blank")',
       'goto("chrome://version-none")', 'goto("data:text/html,<title>Data</title><p>here</p>")',
       'goto("HTTP://LOCALHOST:{A}/plain.html#x")', 'goto("  ' + A + '/plain.html  ")', f'goto("{B}/plain.html")',
       'goto("http://127.0.0.1:{A}/plain.html")', goto("circle"), goto("drop"), goto("nocontent"), goto("nothing"),
       goto("locked"), 'goto("about:nothing")', 'goto("file:///nonexistent/file")', 'goto("view-source:' + A + '/plain.html")',
       goto("plain.html?q=ä b"), goto("missing")),
    go("errors of calls", "buttons.html", "click('999')", "click(3)", "click(['3'])", "click('')", "click('a1')", "click('zz9')",
       "click('A1')", "click('3 ')", "click('1b')", "click(None)", "click()", "click('4', 'left', [], 1)", "click(bid='4', bid='5')",
       "click('4', wrong=1)", "fill('4')", "unknown()", "check('4')", "mouse_click(1, 2)", "keyboard_press('a')",
       "noop() unknown('x')", "", "no call here", "click('4'", "fill('4', r'a')", "goto(\"a\" \"b\")", "click(@test)",
       "noop('x')", "noop(-5)", "noop(None)", "noop(1.5)", "scroll(1)", "scroll('a', 'b')", "scroll(1, None)",
       "send_msg_to_user('hello')", "send_msg_to_user(1)", "report_infeasible('no')", "report_infeasible(1)", "fill('4', 5)",
       "press('4', 5)", "select_option('4', 5)", "goto(5)", "upload_file(4, 'x')", "tab_focus(1.0)", "tab_focus()", "new_tab(1)",
       "focus('@off')", "GET_EVAL_GOAL('x')", "import os", "a.noop()", "noop(wait_ms=20)", "noop(20,)", "noop({'a': 1})", "noop((1,))"),
    go("several calls", "form.html", "fill('@name', 'a') fill('@search', 'b')", "```python\nfill('@name', 'c')\n```",
       "# fill('@name', 'd')\nfill('@search', 'e')  # fill('@mail', 'f')", "I fill it: fill('@name', \"g\\th\"), done.",
       "fill('@name', 'one')\nclick('999')\nfill('@name', 'two')", "noop(100)\nscroll(0, 100)\nnoop(100)\nscroll(0, -100)",
       "fill('@name', 'x'); fill(bid='@search', value='y')", "fill(\n  '@name',\n  'lines',\n)", "fill('@name', 'a\\x41\\u00e9\\101')",
       "noop(wait_ms=10)\n\nnoop(1e1)\nnoop(+5)\nnoop(0x10)"),
    go("one action, two pages", "plain.html", goto("tables.html") + "\nclick('43')", goto("form.html") + "\nnoop(10)\ngo_back()",
       "new_tab()\n" + goto("lists.html") + "\ntab_focus(0)", "tab_focus(1)\ntab_close()\n" + goto("tables.html")),
]
