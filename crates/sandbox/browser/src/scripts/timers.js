// Runs in every document before its own scripts, among them: notes when timers of the page are due, so that a step can
// wait for what a page does a moment later. It calls what was there before, with what it was called with.
(() => {
  "use strict";
  const key = Symbol.for("gloveport.timers");
  if (globalThis[key]) return;
  const due = new Map();
  const { setTimeout: set, clearTimeout: clear, setInterval: repeat, clearInterval: end, performance: clock } = globalThis;
  const now = clock.now.bind(clock);
  const LONGEST = 1000;
  const MOST = 1000;
  const note = (id, delay) => {
    const time = Math.max(Number(delay) || 0, 0);
    if (time <= LONGEST && due.size < MOST) due.set(id, now() + time);
    return id;
  };
  const through = (target, after) => new Proxy(target, {
    apply(original, self, all) {
      return after(Reflect.apply(original, self, all), all);
    },
  });
  globalThis.setTimeout = through(set, (id, all) => note(id, all[1]));
  globalThis.setInterval = through(repeat, (id, all) => note(id, all[1]));
  globalThis.clearTimeout = through(clear, (nothing, all) => void due.delete(all[0]));
  globalThis.clearInterval = through(end, (nothing, all) => void due.delete(all[0]));
  // Milliseconds until the last timer that is due within the time; 0 if there is none.
  const wait = (time) => {
    const start = now();
    let last = 0;
    for (const [id, at] of due) {
      // A busy page runs them late.
      if (at + 15 < start) due.delete(id);
      else if (at <= start + time) last = Math.max(last, at - start + 5);
    }
    return last;
  };
  Object.defineProperty(globalThis, key, { value: wait });
})();
