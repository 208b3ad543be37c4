// Functions in documents for programs that use the browser. They stand behind those of library.js.

function tidy(text) {
  return text.replace(/\s+/g, " ").trim().toLowerCase();
}

// The first element of a selector, if possible one that is to be seen.
function bySelector(selector) {
  const found = everything().filter((element) => element.matches(selector));
  return found.find(isVisible) || found[0] || null;
}

// The texts by which a person names an element.
function ownTexts(element) {
  let own = "";
  for (const node of element.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) own += node.data;
  }
  const texts = [own];
  for (const name of ["aria-label", "placeholder", "title", "alt"]) {
    const text = element.getAttribute(name);
    if (text) texts.push(text);
  }
  if (element.localName === "input" && ["button", "reset", "submit"].includes(element.type)) texts.push(element.value);
  return texts.map(tidy);
}

// The first visible element that shows a text: one with exactly this text, otherwise one with more.
function byText(text) {
  const wanted = tidy(text);
  let more = null;
  for (const element of everything()) {
    const texts = ownTexts(element);
    if (texts.includes(wanted)) {
      if (isVisible(element)) return labelled(element);
    } else if (!more && texts.some((other) => other.includes(wanted)) && isVisible(element)) {
      more = element;
    }
  }
  return more && labelled(more);
}

// What a label is for, in the place of the label.
function labelled(element) {
  const used = element.closest("a, button, input, label, select, textarea");
  const control = used && used.localName === "label" ? used.control : null;
  return control && isVisible(control) ? control : element;
}

// The element that a node is or belongs to.
function asElement(node) {
  return node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement;
}

// The id of an element, if it has one of ours and no other element has the same.
function idOf(element) {
  const bid = element.getAttribute("bid");
  return globalThis.gloveportMarks && bid !== null && withBid(bid).length === 1 ? bid : null;
}

// The field for files that an element is or stands for.
function fileInput(element) {
  const field = element.localName === "label" && element.control ? element.control : element;
  return field.localName === "input" && field.type === "file" ? field : null;
}

function takesSeveral(field) {
  return field.multiple;
}

// Where an element is, in view if that is possible.
function boxInView(element) {
  element.scrollIntoViewIfNeeded(true);
  const { x, y, width, height } = element.getBoundingClientRect();
  return { x, y, width, height };
}

// What the document's origin keeps, up to so many characters.
function storedItems(limit) {
  const items = [];
  for (let index = 0; index < localStorage.length; index++) {
    const name = localStorage.key(index);
    const value = localStorage.getItem(name);
    if (value === null) continue;
    limit -= name.length + value.length;
    if (limit < 0) break;
    items.push({ name, value });
  }
  return { origin: self.origin, localStorage: items };
}

// Replaces what the document's origin keeps.
function storeItems(origin, items) {
  if (self.origin !== origin) throw new Error(`the page is of ${self.origin}`);
  localStorage.clear();
  for (const { name, value } of items) localStorage.setItem(name, value);
}
