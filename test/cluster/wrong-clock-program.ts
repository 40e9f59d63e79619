// The real server on a machine whose clock is wrong by CLOCK_WRONG_BY_MS milliseconds.
//   node wrong-clock-program.js serve

const rightNow = Date.now;
const byMs = Number(process.env.CLOCK_WRONG_BY_MS ?? 0);
Date.now = () => rightNow() + byMs;

await import("../../src/main.js");
