// Runs in every document before its own scripts, in a world that they cannot reach: tells which page is used, and when
// the document changed last, and whether it ever had scripts.
(() => {
  "use strict";
  if (globalThis.gloveport) return;
  const state = { changed: performance.now(), told: 0, scripted: false };
  Object.defineProperty(globalThis, "gloveport", { value: state });
  const tell = () => {
    const tellActivity = globalThis.gloveportActivity;
    if (typeof tellActivity === "function") tellActivity("");
  };
  // A mouse that moves tells once in a while.
  const tellSometimes = () => {
    const now = performance.now();
    if (now - state.told > 50) {
      state.told = now;
      tell();
    }
  };
  for (const kind of ["focus", "focusin", "load", "pageshow", "mouseup", "mousedown", "keyup", "keydown", "input", "touchstart", "touchend"])
    addEventListener(kind, tell, { capture: true, passive: true });
  for (const kind of ["mousemove", "wheel"]) addEventListener(kind, tellSometimes, { capture: true, passive: true });
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") tell();
  }, { capture: true });
  // What is scrolled goes on for a while.
  document.addEventListener("scroll", () => {
    state.changed = performance.now();
  }, { capture: true, passive: true });
  // A script may remove itself. Those that other scripts add in larger pieces come behind one that is noted.
  const isScript = (node) => node.localName === "script";
  new MutationObserver((records) => {
    state.changed = performance.now();
    if (!state.scripted) state.scripted = records.some((record) => Array.prototype.some.call(record.addedNodes, isScript));
  }).observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  tell();
})();
