// npm run bench -- growth [curve …]: measures how cost grows with size, keeps each point, and draws the curves of the
// documentation.

import { mkdirSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { argumentsOf, calledWrongly, wholeNumber } from "../../src/base/testing/program.js";
import { clonesCurve } from "./clones.js";
import { type Curve, growthsOf, type Point, readPoints, tableOf, withPoint, writePoints } from "./curve.js";
import { eventsCurve } from "./events.js";
import { pictureOf } from "./plot.js";
import { refsCurve } from "./refs.js";
import { relaysCurve } from "./relays.js";
import { repositoriesCurve } from "./repositories.js";

export const curves: readonly Curve[] = [eventsCurve, repositoriesCurve, refsCurve, relaysCurve, clonesCurve];
const names = curves.map(({ name }) => name).join(", ");
const usage = `npm run bench -- growth [curve …]      how cost grows: all curves, or these of: ${names}
                 --sizes 1000,10000    instead of a curve's own sizes; one curve only
                 --points FILE         where points are kept (docs/reference/growth/points.json); new ones join the old
                 --plot                measures nothing: draws what is kept
                 --json                prints the points instead of tables

Each point is measured for itself, so that they can be measured at different times. Pictures are drawn beside the points.
Costs are processor time, so that other programs on the machine change them little. Exit 1: something grows faster than the
work it does.`;

export const docsFolder = fileURLToPath(new URL("../../../docs/reference/growth/", import.meta.url));

export const pictureOfCurve = (curve: Curve, points: readonly Point[]): string =>
  pictureOf(`What more ${curve.of} cost`, curve.of, growthsOf(points, curve));

const progress = (text: string): void =>
  void process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`);

async function measureCurve(curve: Curve, sizes: readonly number[], file: string): Promise<void> {
  for (const size of sizes) {
    const title = `${curve.name} ${size.toLocaleString("en")}`;
    progress(`${title} (load ${loadavg()[0]?.toFixed(1)}) …`);
    const values = await curve.measure(size, (text) => progress(`${title}: ${text}`));
    // Read again: another run may have added points meanwhile.
    writePoints(file, withPoint(readPoints(file), { curve: curve.name, size, values }));
  }
}

export async function growth(): Promise<number> {
  const { values, positionals } = argumentsOf(
    usage,
    {
      sizes: { type: "string" },
      points: { type: "string", default: join(docsFolder, "points.json") },
      plot: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
    },
    true,
  );
  const wanted = positionals.slice(1);
  const unknown = wanted.filter((name) => !curves.some((curve) => curve.name === name));
  if (unknown.length > 0) calledWrongly(`No curve ${unknown.join(", ")}; there are: ${names}`);
  const chosen = curves.filter(({ name }) => wanted.length === 0 || wanted.includes(name));
  const sizes = values.sizes?.split(",").map((text) => wholeNumber("sizes", text, 1));
  if (sizes && chosen.length !== 1) calledWrongly("--sizes needs one curve: sizes of one are none of another");
  const file = resolve(values.points);
  mkdirSync(join(file, ".."), { recursive: true });
  if (!values.plot) for (const curve of chosen) await measureCurve(curve, sizes ?? curve.sizes, file);
  const points = readPoints(file);
  for (const curve of chosen) {
    writeFileSync(join(file, "..", `${curve.name}.svg`), pictureOfCurve(curve, points));
    if (!values.json) process.stdout.write(`${tableOf(points, curve)}\n`);
  }
  if (values.json) process.stdout.write(`${JSON.stringify(points)}\n`);
  const tooFast = chosen.flatMap((curve) =>
    growthsOf(points, curve)
      .filter(({ isTooFast }) => isTooFast)
      .map(({ series, exponent }) => `${curve.name}: ${series.name} grows as n^${exponent?.toFixed(2)}`),
  );
  for (const sentence of tooFast) process.stderr.write(`${sentence}\n`);
  return tooFast.length === 0 ? 0 : 1;
}
