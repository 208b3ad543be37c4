// Functions that are called in documents, in a world that their own scripts cannot reach. Each call brings all of them.

// All elements in the order of the document; those of an open shadow tree come right behind its host.
function everything() {
  const all = [];
  const waiting = [[document.querySelectorAll("*"), 0]];
  while (waiting.length) {
    const level = waiting[waiting.length - 1];
    if (level[1] >= level[0].length) {
      waiting.pop();
      continue;
    }
    const element = level[0][level[1]++];
    all.push(element);
    if (element.shadowRoot) waiting.push([element.shadowRoot.querySelectorAll("*"), 0]);
  }
  return all;
}

// The text of a counter of frames: `a` to `z`, then `aA`, `aB` and so on.
function letters(count) {
  let length = 1;
  let block = 26;
  while (count >= block) {
    count -= block;
    block *= 26;
    length++;
  }
  let text = "";
  for (let index = 0; index < length; index++) {
    const letter = String.fromCharCode(97 + (count % 26));
    text = (index === length - 1 ? letter : letter.toUpperCase()) + text;
    count = Math.floor(count / 26);
  }
  return text;
}

// The innermost element at a point, through open shadow trees.
function elementAt(x, y) {
  let root = document;
  let last = null;
  for (;;) {
    const element = root.elementFromPoint(x, y);
    if (!element || element === last) return element || last;
    last = element;
    if (!element.shadowRoot) return element;
    root = element.shadowRoot;
  }
}

function parentThroughShadow(element) {
  if (element.assignedSlot) return element.assignedSlot;
  if (element.parentElement) return element.parentElement;
  const root = element.getRootNode();
  return root instanceof ShadowRoot ? root.host : null;
}

const VISIBILITY = "browsergym_visibility_ratio";
const MARK = "browsergym_set_of_marks";
const ARIA = ["aria-roledescription", "aria-description"];
const PREFIX = /^browsergym_id[^\s]*\s/;

// Gives every element an id, and writes what is to be seen of it from outside into attributes (spec/browser.md 3).
// `clicked` has the indices of elements with a handler that only the page's own scripts see.
async function mark(prefix, clicked, limit) {
  const state = globalThis.gloveportMarks;
  const counters = state || (globalThis.gloveportMarks = { elements: 0, frames: 0 });
  const withHandler = new Set(clicked);
  const elements = everything();
  const unseen = new Set();
  let allSeen = null;
  const observer = new IntersectionObserver((entries) => {
    for (const { target, intersectionRatio } of entries) {
      target.setAttribute(VISIBILITY, Math.round(intersectionRatio * 100) / 100);
      unseen.delete(target);
    }
    if (!unseen.size && allSeen) allSeen();
  }, { threshold: [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1] });
  const taken = new Set();
  const buttons = new Set();
  for (let index = 0; index < elements.length; index++) {
    const element = elements[index];
    element.setAttribute(VISIBILITY, 0);
    unseen.add(element);
    observer.observe(element);
    if (typeof element.value !== "undefined") element.setAttribute("value", element.value);
    if (typeof element.checked !== "undefined") {
      if (element.checked === true) element.setAttribute("checked", "");
      else element.removeAttribute("checked");
    }
    let bid = element.getAttribute("bid");
    if (bid !== null && !state) {
      observer.disconnect();
      throw new Error(`Attribute bid already used in element ${element.outerHTML.slice(0, 1000)}`);
    }
    if (bid === null || taken.has(bid)) {
      const name = element.tagName.toLowerCase();
      bid = prefix + (name === "iframe" || name === "frame" ? letters(counters.frames++) : counters.elements++);
      element.setAttribute("bid", bid);
    }
    taken.add(bid);
    for (const attribute of ARIA)
      element.setAttribute(attribute, `browsergym_id_${bid} ${element.getAttribute(attribute) || ""}`);
    element.setAttribute(MARK, "0");
    flag(element, withHandler.has(index), buttons);
  }
  if (unseen.size) {
    await new Promise((resolve) => {
      allSeen = resolve;
      setTimeout(resolve, limit);
    });
  }
  observer.disconnect();
}

// Sets the mark of an element that a person would use (spec/browser.md 6.1).
function flag(element, hasHandler, buttons) {
  // What is in a button is noted, too: elements come behind those that they are in.
  if (buttons.has(element.parentNode)) {
    buttons.add(element);
    return;
  }
  const box = element.getBoundingClientRect();
  const top = elementAt((box.left + box.right) / 2, (box.top + box.bottom) / 2);
  if (!top || !element.contains(top)) return;
  const usable = /^(input|textarea|select|button|a|iframe|video|li|td|option)$/.test(element.tagName.toLowerCase());
  if (!usable && !hasHandler && getComputedStyle(element).cursor !== "pointer") return;
  if ((box.right - box.left) * (box.bottom - box.top) < 20) return;
  let parent = element.parentElement;
  if (parent && parent.tagName.toLowerCase() === "span" && parent.children.length === 1 &&
      parent.getAttribute("role") && parent.getAttribute(MARK) === "1") return;
  element.setAttribute(MARK, "1");
  if (element.matches('button, a, input[type="button"], div[role="button"]')) buttons.add(element);
  for (; parent; parent = parent.parentElement) {
    if (parent.getAttribute(MARK) === "1") parent.setAttribute(MARK, "0");
  }
}

// Takes out again what was only needed for a moment.
function unmark() {
  for (const element of everything()) {
    for (const attribute of ARIA) {
      const text = element.getAttribute(attribute);
      if (text === null) continue;
      const original = text.replace(PREFIX, "");
      if (original) element.setAttribute(attribute, original);
      else element.removeAttribute(attribute);
    }
  }
}

// The element that has the focus, through open shadow trees.
function focused() {
  let element = document.activeElement;
  while (element && element.shadowRoot && element.shadowRoot.activeElement) element = element.shadowRoot.activeElement;
  return element;
}

// The elements with an id.
function withBid(bid) {
  return everything().filter((element) => element.getAttribute("bid") === bid);
}

function isVisible(element) {
  if (typeof element.checkVisibility === "function" && !element.checkVisibility()) return false;
  if (getComputedStyle(element).visibility !== "visible") return false;
  const box = element.getBoundingClientRect();
  return box.width > 0 && box.height > 0;
}

function isDisabled(element) {
  const name = element.tagName.toLowerCase();
  if (["button", "input", "select", "textarea", "option", "optgroup"].includes(name)) {
    if (element.disabled) return true;
    if (element.matches(":disabled")) return true;
    if (name === "option" && element.closest("optgroup[disabled]")) return true;
  }
  for (let up = element; up; up = parentThroughShadow(up)) {
    const value = up.getAttribute && up.getAttribute("aria-disabled");
    if (value === "true") return true;
    if (value === "false") return false;
  }
  return false;
}

function isReadOnly(element) {
  if (/^(input|textarea|select)$/i.test(element.tagName)) {
    if (element.readOnly) return true;
  }
  return element.getAttribute("aria-readonly") === "true";
}

function nextFrame() {
  return new Promise((resolve) => {
    requestAnimationFrame(resolve);
    // A page in the background draws nothing.
    setTimeout(resolve, 100);
  });
}

// Waits until an element is as an operation needs it. Answers where its middle is, or why it is not so in time.
async function awaitReady(element, needs, limit) {
  const deadline = performance.now() + limit;
  for (let attempt = 0; ; attempt++) {
    const answer = await ready(element, needs, attempt);
    if (!answer.reason || answer.reason === "gone" || performance.now() >= deadline) return answer;
    await new Promise((resolve) => setTimeout(resolve, Math.min(20, deadline - performance.now())));
  }
}

async function ready(element, needs, attempt) {
  if (!element.isConnected) return { reason: "gone" };
  if (needs.includes("visible") && !isVisible(element)) return { reason: "element is not visible" };
  if (needs.includes("enabled") && isDisabled(element)) return { reason: "element is not enabled" };
  if (needs.includes("editable") && isReadOnly(element)) return { reason: "element is not editable" };
  if (needs.includes("stable")) {
    const before = element.getBoundingClientRect();
    await nextFrame();
    const after = element.getBoundingClientRect();
    if (["left", "top", "width", "height"].some((side) => before[side] !== after[side]))
      return { reason: "element is not stable" };
  }
  if (!needs.includes("hit")) return {};
  // What is in front of it may be out of the way when it is at another edge.
  if (attempt % 4 === 0) element.scrollIntoViewIfNeeded(true);
  else element.scrollIntoView({ block: ["end", "center", "start"][(attempt % 4) - 1], inline: "center", behavior: "instant" });
  const point = middle(element);
  if (!point) return { reason: "element is outside of the viewport" };
  const other = inFront(element, point.x, point.y);
  return other === null ? point : { reason: `${other} intercepts pointer events` };
}

// The middle of the first box of an element that is in view.
function middle(element) {
  for (const box of element.getClientRects()) {
    const left = Math.max(box.left, 0);
    const right = Math.min(box.right, innerWidth);
    const top = Math.max(box.top, 0);
    const bottom = Math.min(box.bottom, innerHeight);
    if (right - left > 0 && bottom - top > 0 && (right - left) * (bottom - top) > 0.99)
      return { x: (left + right) / 2, y: (top + bottom) / 2 };
  }
  return null;
}

// Answers null if the point belongs to the element, or what is in front of it.
function inFront(element, x, y) {
  const top = elementAt(x, y);
  for (let up = top; up; up = parentThroughShadow(up)) {
    if (up === element) return null;
  }
  // A label stands for what it labels.
  if (top && top.closest && top.closest("label") && top.closest("label").control === element) return null;
  if (!top) return "the document";
  const text = top.outerHTML.slice(0, 200);
  return text.slice(0, text.indexOf(">") + 1 || 200);
}

// The one element with an id; none if there is none.
function only(bid) {
  const found = withBid(bid);
  if (found.length > 1) throw new Error(`strict mode violation: the id ${bid} resolved to ${found.length} elements`);
  return found[0] || null;
}

// What an element says of itself as the frame of a document.
function frameElement(element) {
  return { bid: element.getAttribute("bid"), sandbox: element.getAttribute("sandbox") };
}

// The id of the element that has the focus.
function focusedBid() {
  const element = focused();
  if (!element) return { bid: null, frame: false };
  return { bid: element.getAttribute("bid"), frame: /^i?frame$/i.test(element.tagName) };
}

const TYPED = ["", "email", "number", "password", "search", "tel", "text", "url"];
const SET = ["color", "date", "datetime-local", "month", "range", "time", "week"];

// Prepares an element to get a text: answers `type` when the text is to be typed, `done` when it is set, or an error.
function fill(element, value) {
  const name = element.tagName.toLowerCase();
  if (name === "label" && element.control) return fill(element.control, value);
  if (name === "input") {
    const type = (element.getAttribute("type") || "").toLowerCase();
    if (!TYPED.includes(type) && !SET.includes(type) && type === element.type)
      return `Error: Input of type "${type}" cannot be filled`;
    if (type === "number" && value.trim() && isNaN(Number(value.trim())))
      return "Error: Cannot type text into input[type=number]";
    if (SET.includes(type) && type === element.type) {
      const wanted = type === "color" ? value.toLowerCase() : value.trim();
      element.focus();
      setValue(element, wanted);
      if (element.value !== wanted) return "Error: Malformed value";
      element.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
      element.dispatchEvent(new Event("change", { bubbles: true }));
      return "done";
    }
  } else if (name !== "textarea" && !element.isContentEditable) {
    return "Error: Element is not an <input>, <textarea>, <select> or [contenteditable] and does not have a role allowing [aria-readonly]";
  }
  if (name === "input" || name === "textarea") {
    element.select();
    element.focus();
  } else {
    const range = document.createRange();
    range.selectNodeContents(element);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    element.focus();
  }
  return "type";
}

// Past what frameworks put in the way.
function setValue(element, value) {
  const setter = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(element), "value");
  if (setter && setter.set) setter.set.call(element, value);
  else element.value = value;
}

// Chooses options by value or label; answers null, or which is missing.
function choose(element, wanted) {
  if (element.tagName.toLowerCase() === "label" && element.control) return choose(element.control, wanted);
  if (element.tagName.toLowerCase() !== "select") return "Error: Element is not a <select> element";
  const options = Array.from(element.options);
  const chosen = [];
  const left = wanted.slice();
  for (const option of options) {
    const index = left.findIndex((text) => text === option.value || text === option.label);
    if (index < 0) continue;
    if (isDisabled(option)) return "disabled";
    chosen.push(option);
    if (element.multiple) left.splice(index, 1);
    else {
      left.length = 0;
      break;
    }
  }
  if (left.length) return "missing";
  for (const option of options) option.selected = chosen.includes(option);
  if (!element.multiple && !chosen.length) element.selectedIndex = -1;
  element.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  element.dispatchEvent(new Event("change", { bubbles: true }));
  return null;
}

// The same, while options may still come.
async function chooseInTime(element, wanted, limit) {
  const deadline = performance.now() + limit;
  for (;;) {
    const answer = choose(element, wanted);
    if ((answer !== "missing" && answer !== "disabled") || performance.now() >= deadline) return answer;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// Gives an element the focus. In a field that had it not, the cursor is at the beginning then, if that is wanted.
function focusOn(element, atBeginning) {
  const had = element.getRootNode().activeElement === element && element.ownerDocument.hasFocus();
  if (!had) {
    const other = document.activeElement;
    if (element.isContentEditable && other && typeof other.blur === "function" && other !== document.body) other.blur();
  }
  element.focus();
  if (atBeginning && !had && /^(input|textarea)$/i.test(element.tagName)) {
    try {
      element.setSelectionRange(0, 0);
    } catch {
      // Not every kind of field has a cursor.
    }
  }
}

// Takes all files out of a field.
function clearFiles(element) {
  const input = element.tagName.toLowerCase() === "label" ? element.control : element;
  input.files = new DataTransfer().files;
  input.dispatchEvent(new Event("input", { bubbles: true, composed: true }));
  input.dispatchEvent(new Event("change", { bubbles: true }));
}

// Milliseconds, at most so many, for which something in the document still moves towards an end.
function animated(most) {
  let longest = 0;
  for (const animation of document.getAnimations()) {
    const { endTime } = animation.effect ? animation.effect.getComputedTiming() : { endTime: 0 };
    const left = endTime - (animation.currentTime || 0);
    if (animation.playState === "running" && Number.isFinite(left) && left > 0) longest = Math.max(longest, Math.min(left, most));
  }
  return longest;
}

// Elements that run, play, move or load by themselves.
const ACTIVE = new Set(["script", "iframe", "frame", "object", "embed", "fencedframe", "video", "audio", "marquee",
  "animate", "animatemotion", "animatetransform", "set"]);

// Whether nothing in the document changes it any more: it has loaded, and has nothing that could.
function inert() {
  const state = globalThis.gloveport;
  if (!state || state.scripted || document.readyState !== "complete" || location.hash) return false;
  if (document.fonts.status !== "loaded" || document.getAnimations().length) return false;
  const all = document.getElementsByTagName("*");
  // A look at more of them takes as long as waiting.
  if (all.length > 5000) return false;
  for (const element of all) {
    const name = element.localName.toLowerCase();
    if (ACTIVE.has(name) || element.shadowRoot || (name === "meta" && /refresh/i.test(element.httpEquiv))) return false;
    if (element.getAttributeNames().some((name) => /^on|^autofocus$/i.test(name))) return false;
  }
  return true;
}

// Returns when the document has not changed for so long, or after the limit; at once if it has just come, and nothing
// in it can change it.
async function settled(quiet, limit, arrived) {
  if (arrived && inert()) return;
  const state = globalThis.gloveport;
  const start = performance.now();
  const deadline = start + limit;
  for (;;) {
    const now = performance.now();
    // What was done just now may have its effects in a moment.
    const still = Math.min(now - Math.max(state ? state.changed : 0, start), quiet - animated(quiet));
    if (still >= quiet || now >= deadline) return;
    await new Promise((resolve) => setTimeout(resolve, Math.min(quiet - still, deadline - now) + 1));
  }
}
