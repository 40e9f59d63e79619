// Curves as a picture: small plots side by side, both axes logarithmic, so that a cost that grows as n^x is a straight line of
// slope x. A dashed line shows how the work itself grows: a cost may not be steeper. Pure. Colours are of middle lightness and
// nothing is painted behind them: they can be read on a light page and on a dark one.

import { type Growth, growsTooFast, type Place } from "./curve.js";

const plotWidth = 250;
const plotHeight = 170;
const margin = { left: 52, right: 12, top: 40, bottom: 34 };
const cell = { width: plotWidth + margin.left + margin.right, height: plotHeight + margin.top + margin.bottom };
const columns = 3;

const colours = { text: "#7d8590", grid: "#7d859055", work: "#7d8590", cost: "#2f81f7", tooFast: "#e5534b" };

export interface Scale {
  /** Powers of ten at both ends: the first and the last line. */
  readonly from: number;
  readonly to: number;
}

/** Whole decades around these values, one at least. */
export function decadesAround(values: readonly number[]): Scale {
  const from = Math.floor(Math.log10(Math.min(...values)) + 1e-9);
  // Minus zero is a whole number too.
  const to = 0 + Math.ceil(Math.log10(Math.max(...values)) - 1e-9);
  return { from, to: Math.max(to, from + 1) };
}

/** 0 at the scale's beginning, 1 at its end. */
export const partOf = ({ from, to }: Scale, value: number): number => (Math.log10(value) - from) / (to - from);

const suffixes: readonly (readonly [number, string])[] = [
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
];

/** 1000 → 1k; small ones as they are. */
export function shortNumber(value: number): string {
  for (const [unit, suffix] of suffixes) {
    if (value >= unit) return `${Number((value / unit).toPrecision(3))}${suffix}`;
  }
  return String(Number(value.toPrecision(3)));
}

const entities: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaped = (text: string): string => text.replace(/[&<>"]/g, (sign) => entities[sign] ?? "");
const rounded = (value: number): string => String(Number(value.toFixed(1)));

function text(x: number, y: number, words: string, more = ""): string {
  return `<text x="${rounded(x)}" y="${rounded(y)}"${more}>${escaped(words)}</text>`;
}

const line = (from: readonly [number, number], to: readonly [number, number], more: string): string =>
  `<line x1="${rounded(from[0])}" y1="${rounded(from[1])}" x2="${rounded(to[0])}" y2="${rounded(to[1])}"${more}/>`;

/** How the work grows, through the first place, as far as it is inside the plot. */
function workLine(places: readonly Place[], work: 0 | 1, x: Scale, y: Scale): readonly [Place, Place] | undefined {
  const [first] = places;
  const last = places.at(-1);
  if (!first || !last || first === last) return undefined;
  const at = (size: number): number => first[1] * (size / first[0]) ** work;
  const top = 10 ** y.to;
  const end = Math.min(last[0], work === 0 ? last[0] : first[0] * (top / first[1]));
  return end <= 10 ** x.from ? undefined : [first, [end, at(end)]];
}

function plot({ series, places, exponent }: Growth, of: string): string {
  const x = decadesAround(places.map(([size]) => size));
  const y = decadesAround(places.map(([, value]) => value));
  const xOf = (size: number): number => margin.left + partOf(x, size) * plotWidth;
  const yOf = (value: number): number => margin.top + (1 - partOf(y, value)) * plotHeight;
  const bottom = margin.top + plotHeight;
  const parts: string[] = [text(margin.left, 16, series.name, ` font-weight="600"`)];
  const isTooFast = exponent !== undefined && growsTooFast(exponent, series.work);
  const growth = exponent === undefined ? "" : `, grows as n^${exponent.toFixed(2)}`;
  parts.push(text(margin.left, 31, `${series.unit}${growth}`, ` font-size="11"`));
  for (let power = x.from; power <= x.to; power++) {
    const at = xOf(10 ** power);
    parts.push(line([at, margin.top], [at, bottom], ` stroke="${colours.grid}"`));
    parts.push(text(at, bottom + 14, shortNumber(10 ** power), ` font-size="11" text-anchor="middle"`));
  }
  for (let power = y.from; power <= y.to; power++) {
    const at = yOf(10 ** power);
    parts.push(line([margin.left, at], [margin.left + plotWidth, at], ` stroke="${colours.grid}"`));
    parts.push(text(margin.left - 6, at + 4, shortNumber(10 ** power), ` font-size="11" text-anchor="end"`));
  }
  parts.push(text(margin.left + plotWidth / 2, bottom + 29, of, ` font-size="11" text-anchor="middle"`));
  const work = workLine(places, series.work === "each" ? 1 : 0, x, y);
  if (work) {
    const [from, to] = work.map(([size, value]): [number, number] => [xOf(size), yOf(value)]);
    if (from && to) parts.push(line(from, to, ` stroke="${colours.work}" stroke-dasharray="4 4"`));
  }
  const colour = isTooFast ? colours.tooFast : colours.cost;
  const path = places.map(([size, value]) => `${rounded(xOf(size))},${rounded(yOf(value))}`);
  if (path.length > 1) {
    parts.push(`<polyline points="${path.join(" ")}" fill="none" stroke="${colour}" stroke-width="2"/>`);
  }
  for (const [size, value] of places) {
    const words = `${size.toLocaleString("en")} ${of}: ${shortNumber(value)} ${series.unit}`;
    const [cx, cy] = [rounded(xOf(size)), rounded(yOf(value))];
    parts.push(`<circle cx="${cx}" cy="${cy}" r="3.5" fill="${colour}"><title>${escaped(words)}</title></circle>`);
  }
  return parts.join("\n");
}

/** The whole picture. Series without a point are left out. */
export function pictureOf(title: string, of: string, growths: readonly Growth[]): string {
  const shown = growths.filter(({ places }) => places.length > 0);
  const inRow = Math.min(columns, Math.max(1, shown.length));
  const width = inRow * cell.width;
  const height = Math.ceil(shown.length / inRow) * cell.height;
  const plots = shown.map((growth, at) => {
    const [left, top] = [(at % inRow) * cell.width, Math.floor(at / inRow) * cell.height];
    return `<g transform="translate(${left} ${top})">\n${plot(growth, of)}\n</g>`;
  });
  const font = `font-family="system-ui, sans-serif" font-size="13" fill="${colours.text}"`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="${escaped(title)}" ${font}>\n<title>${escaped(title)}</title>\n${plots.join("\n")}\n</svg>\n`;
}
