"""Goes through a case with any browser, and brings what the browser answers into the form that is kept and compared.

A browser has `perform(action, args)`, which gives an observation as it goes over the wire: `content` and `extras`.
"""

import re

BEGIN = "============== BEGIN accessibility tree ==============\n"
END = "\n============== END accessibility tree ==============\n"
TEXT_BEGIN = "============== BEGIN webpage content ==============\n"
TEXT_END = "\n============== END webpage content ==============\n"
FAILED_TREE = "[Error encountered when processing the accessibility tree: "


class Died(Exception):
    """The browser has ended, and with it the case."""


def fresh(browser, pages):
    """One new tab without a history instead of the tabs that are open. How many were open must be known."""
    closing = "\ntab_focus(0)\ntab_close()" * pages
    return browser.perform("browse_interactive", {"browser_actions": f"new_tab(){closing}", "return_axtree": True})


def between(text, begin, end):
    """What is between the first `begin` and the last `end`, or None."""
    _, found, rest = text.partition(begin)
    inside, ended, _ = rest.rpartition(end)
    return inside if found and ended else None


def first_line(text):
    return (text or "").split("\n", 1)[0]


def properties(extras):
    """Bid: visibility, box, clickable, marked."""
    found = extras.get("extra_element_properties") or {}
    return {
        bid: [one["visibility"], one["bbox"], one["clickable"], one["set_of_marks"]] for bid, one in sorted(found.items())
    }


def normal(site, observation, action, files):
    """The compared form of an observation."""
    content, extras = observation["content"], observation["extras"]
    if observation.get("observation") == "download":
        return {"download": re.sub(r".*/", "", extras.get("file_path") or "")}
    seen = {
        "url": extras.get("url"),
        "pages": list(extras.get("open_pages_urls") or []),
        "index": extras.get("active_page_index"),
        "focus": extras.get("focused_element_bid"),
        "last": extras.get("last_browser_action"),
        "error": first_line(extras.get("last_browser_action_error")),
        "properties": properties(extras),
        "nodes": len((extras.get("axtree_object") or {}).get("nodes", [])),
    }
    if action == "browse":
        seen["page"] = between(content, TEXT_BEGIN, TEXT_END)
    else:
        seen["tree"] = between(content, BEGIN, END)
    seen = site.without_ports(seen)
    seen["last"] = (seen["last"] or "").replace(files, "{F}")
    seen["error"] = seen["error"].replace(files, "{F}")
    return seen


def request(step):
    """Name and arguments of the action of a step, whose text is complete."""
    action, text = step
    if action == "browse":
        return action, {"url": text, "return_axtree": True}
    return action, {"browser_actions": text, "return_axtree": True}


def typed(step):
    return ("browse_interactive", step) if isinstance(step, str) else tuple(step)
