// Runs in every document that another process renders than the page's own, before its own scripts, among them: declines
// its dialogs at once, and tells of them. Chromium shows one dialog of a page at a time. Where two processes ask for one,
// it takes the first away and forgets who may answer the second, whose document then waits for ever.
(() => {
  "use strict";
  const tell = globalThis.gloveportDialog;
  // Scripts of the page cannot reach it any more.
  delete globalThis.gloveportDialog;
  if (typeof tell !== "function") return;
  const { location, Reflect, String } = globalThis;
  const { apply } = Reflect;
  const { slice } = String.prototype;
  const LONGEST = 8192;
  for (const [kind, answer] of [["alert", undefined], ["confirm", false], ["prompt", null]]) {
    globalThis[kind] = new Proxy(globalThis[kind], {
      apply(original, self, all) {
        const message = all.length ? `${all[0]}` : "";
        tell(`${kind}\n${location.href}\n${apply(slice, message, [0, LONGEST])}`);
        return answer;
      },
    });
  }
})();
