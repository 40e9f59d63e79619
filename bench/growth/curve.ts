// What a curve is: one kind of thing that there may be more of (events, repositories, refs), and what each size costs. Points
// are kept in a file, so that a plot can be made of sizes that were measured at different times. Pure, apart from the two
// functions at the end.

import { readFileSync, writeFileSync } from "node:fs";

export interface Series {
  readonly name: string;
  readonly unit: string;
  /** The work of which the value is the cost: `one` thing at whatever size, or something for each that there is. */
  readonly work: "one" | "each";
}

export type Values = Readonly<Record<string, number>>;

export interface Curve {
  readonly name: string;
  /** What there is more of, for the axis. */
  readonly of: string;
  /** Sizes that are measured when none are named. */
  readonly sizes: readonly number[];
  readonly series: readonly Series[];
  /** Each point is independent of the others, so that they can be measured at different times. */
  measure(size: number, progress: (text: string) => void): Promise<Values>;
}

export interface Point {
  readonly curve: string;
  readonly size: number;
  readonly values: Values;
}

export type Place = readonly [size: number, value: number];

/** A point that was measured again replaces the older one, each of its values for itself. */
export function withPoint(points: readonly Point[], added: Point): Point[] {
  const isSame = ({ curve, size }: Point): boolean => curve === added.curve && size === added.size;
  const before = points.find(isSame);
  const merged = { ...added, values: { ...before?.values, ...added.values } };
  const others = points.filter((point) => !isSame(point));
  return [...others, merged].sort((a, b) => a.curve.localeCompare(b.curve, "en") || a.size - b.size);
}

/** Places of one series, by size. What is not above zero has none on a logarithmic scale. */
export function placesOf(points: readonly Point[], curve: string, series: string): Place[] {
  return points
    .filter((point) => point.curve === curve)
    .map(({ size, values }): Place => [size, values[series] ?? 0])
    .filter(([size, value]) => size > 0 && value > 0)
    .sort(([a], [b]) => a - b);
}

/** x of a cost that grows as n^x between the last two places: a fixed cost at the beginning hides nothing there. */
export function lastExponent(places: readonly Place[]): number | undefined {
  const [[n1, cost1] = [0, 0], [n2, cost2] = [0, 0]] = places.slice(-2);
  return places.length < 2 ? undefined : Math.log(cost2 / cost1) / Math.log(n2 / n1);
}

/** Above this it grows faster than the work it does; below it what remains is the depth of a tree, or noise. */
const tolerance = 0.1;

export const growsTooFast = (exponent: number, work: Series["work"]): boolean =>
  exponent > (work === "each" ? 1 : 0) + tolerance;

export interface Growth {
  readonly series: Series;
  readonly places: readonly Place[];
  readonly exponent: number | undefined;
  readonly isTooFast: boolean;
}

export const growthsOf = (points: readonly Point[], { name, series }: Pick<Curve, "name" | "series">): Growth[] =>
  series.map((one) => {
    const places = placesOf(points, name, one.name);
    const exponent = lastExponent(places);
    return {
      series: one,
      places,
      exponent,
      isTooFast: exponent !== undefined && growsTooFast(exponent, one.work),
    };
  });

const digits = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString("en") : value >= 10 ? value.toFixed(1) : value.toPrecision(2);

/** Rows of a table of a documentation page. */
export function tableOf(points: readonly Point[], curve: Pick<Curve, "name" | "of" | "series">): string {
  const growths = growthsOf(points, curve).filter(({ places }) => places.length > 0);
  const sizes = [...new Set(growths.flatMap(({ places }) => places.map(([size]) => size)))].sort((a, b) => a - b);
  const line = (cells: readonly string[]): string => `| ${cells.join(" | ")} |\n`;
  const head = [`cost at so many ${curve.of}`, ...sizes.map((size) => size.toLocaleString("en")), "grows as", "work"];
  const rows = growths.map(({ series, places, exponent }) => {
    const known = new Map(places);
    const cells = sizes.map((size) => {
      const value = known.get(size);
      return value === undefined ? "" : digits(value);
    });
    const growth = exponent === undefined ? "" : `n^${exponent.toFixed(2)}`;
    return [`${series.name}, ${series.unit}`, ...cells, growth, series.work === "each" ? "n" : "1"];
  });
  return line(head) + line(head.map(() => "---")) + rows.map(line).join("");
}

export function readPoints(file: string): Point[] {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Point[];
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  }
}

export const writePoints = (file: string, points: readonly Point[]): void =>
  writeFileSync(file, `${JSON.stringify(points, null, 2)}\n`);
