// Compiled test files through Node's own runner, with its report or, for programs, one JSON object.
import { run } from "node:test";
import { spec, tap } from "node:test/reporters";
import { timesOf } from "./test-times.mjs";

/** `files` may be programs that import several test files: then `fileCount` says how many there are. */
export function runTests({ files, fileCount = files.length, concurrency, json, isTimed = false }) {
  const counts = { passed: 0, skipped: 0, failed: 0 };
  const failures = [];
  if (isTimed) timesOf(process.cwd(), (report) => process.stderr.write(report));
  // Given to each file's process.
  process.execArgv.push("--enable-source-maps", "--import", new URL("./test-process.mjs", import.meta.url).href);
  const results = run({ files, concurrency })
    .on("test:pass", ({ skip, details }) => {
      if (details.type !== "suite") counts[skip === undefined ? "passed" : "skipped"]++;
    })
    .on("test:fail", ({ todo, name, file, details }) => {
      if (todo !== undefined && todo !== false) return;
      process.exitCode = 1;
      if (details.type === "suite") return;
      counts.failed++;
      failures.push({ name, file, error: String(details.error?.cause?.message ?? details.error?.message) });
    });
  if (!json) return results.compose(process.stdout.isTTY ? new spec() : tap).pipe(process.stdout);
  results.on("end", () => {
    const ok = (process.exitCode ?? 0) === 0;
    process.stdout.write(`${JSON.stringify({ ok, files: fileCount, ...counts, failures })}\n`);
  });
  return results.resume();
}
