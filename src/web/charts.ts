// Pictures of the last day and month: bars drawn by the server as SVG inside the page, one path each, without script. What a
// bar chart shows is said in words beside it, for those who do not see it.

import { emptyHour, type HourRow } from "../catalogue/hours.js";
import { count, type Html, html } from "./html.js";
import { section } from "./pieces.js";

/** One bar; undefined: no server ran. */
type Bar = number | undefined;

interface Measure {
  readonly name: string;
  readonly of: (row: HourRow) => Bar;
  /** Its number as people read it. */
  readonly shown: (value: number) => string;
  /** What the caption says of all bars. */
  readonly summary: (bars: readonly number[]) => number;
  readonly summaryWord: string;
  /** The height of the picture, where it is not the highest bar. */
  readonly full?: number;
}

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
const mean = (values: readonly number[]): number => (values.length === 0 ? 0 : sum(values) / values.length);

const secondsText = (seconds: number): string =>
  seconds < 10
    ? `${seconds.toFixed(1)} s`
    : seconds < 120
      ? `${Math.round(seconds)} s`
      : `${Math.round(seconds / 60)} min`;

const measures: readonly Measure[] = [
  { name: "Events stored", of: ({ events }) => events, shown: count, summary: sum, summaryWord: "in all" },
  { name: "Pushes", of: ({ pushes }) => pushes, shown: count, summary: sum, summaryWord: "in all" },
  { name: "Refused", of: ({ refusals }) => refusals, shown: count, summary: sum, summaryWord: "in all" },
  {
    name: "Disk in use",
    of: ({ diskPercent }) => diskPercent,
    shown: (value) => `${value.toFixed(1)} %`,
    summary: (bars) => bars.at(-1) ?? 0,
    summaryWord: "now",
    full: 100,
  },
  {
    name: "Delay from other relays",
    of: ({ arrivals, lagSeconds }) => (arrivals > 0 ? lagSeconds / arrivals : undefined),
    shown: secondsText,
    summary: mean,
    summaryWord: "on average",
  },
];

const hoursADay = 24;
const daysAMonth = 31;

/** The rows of that many hours up to `lastHour`; undefined where there is none. */
function hoursUpTo(rows: readonly HourRow[], lastHour: number, hours: number): (HourRow | undefined)[] {
  const byHour = new Map(rows.map((row) => [row.hour, row]));
  return Array.from({ length: hours }, (_, index) => byHour.get(lastHour - hours + 1 + index));
}

/** Days of 24 hours that end with `lastHour`, each added up. */
export function daysUpTo(rows: readonly HourRow[], lastHour: number): (HourRow | undefined)[] {
  const hours = hoursUpTo(rows, lastHour, daysAMonth * hoursADay);
  return Array.from({ length: daysAMonth }, (_, day) => {
    const there = hours.slice(day * hoursADay, (day + 1) * hoursADay).flatMap((row) => row ?? []);
    const last = there.at(-1);
    return last && there.reduce(added, { ...emptyHour(last.hour) });
  });
}

const added = (all: HourRow, row: HourRow): HourRow => ({
  hour: row.hour,
  events: all.events + row.events,
  pushes: all.pushes + row.pushes,
  refusals: all.refusals + row.refusals,
  diskPercent: row.diskPercent,
  arrivals: all.arrivals + row.arrivals,
  lagSeconds: all.lagSeconds + row.lagSeconds,
});

export function busySection(rows: readonly HourRow[], lastHour: number): Html {
  const day = hoursUpTo(rows, lastHour, hoursADay);
  const month = daysUpTo(rows, lastHour);
  const hourLabel = (index: number): string =>
    `${String((lastHour - hoursADay + 1 + index) % 24).padStart(2, "0")}:00 UTC`;
  const dayLabel = (index: number): string =>
    new Date((lastHour - (daysAMonth - 1 - index) * hoursADay) * 3_600_000).toISOString().slice(0, 10);
  return section(
    "busy",
    "Last day and month",
  )`<p class="quiet">A bar an hour, and a bar a day. Where there is none, nothing was counted: the server did not run, or no event came from another relay.</p>
<div class="charts">${measures.map((measure) => {
    const bars = (list: readonly (HourRow | undefined)[]): Bar[] => list.map((row) => row && measure.of(row));
    return html`<figure class="chart"><figcaption>${measure.name}</figcaption>
${picture(measure, "day", bars(day), hourLabel)}
${picture(measure, "month", bars(month), dayLabel)}</figure>`;
  })}</div>`;
}

const height = 40;
const step = 8;
const barWidth = 6;

function picture(
  measure: Measure,
  span: "day" | "month",
  bars: readonly Bar[],
  label: (index: number) => string,
): Html {
  const { name, shown, summary, summaryWord, full } = measure;
  const there = bars.filter((bar) => bar !== undefined);
  const highest = Math.max(0, ...there);
  const top = full ?? highest;
  const total = there.length === 0 ? "nothing counted yet" : `${shown(summary(there))} ${summaryWord}`;
  const peak = highest > 0 ? `, at most ${shown(highest)} at ${label(bars.indexOf(highest))}` : "";
  return html`<div><svg viewBox="0 0 ${bars.length * step - (step - barWidth)} ${height}" preserveAspectRatio="none" role="img" aria-label="${name}, last ${span}: ${total}${peak}"><title>${name}, last ${span}: ${total}${peak}</title><path d="${barPath(bars, top)}"/></svg>
<span class="small quiet">${span}: ${total}</span></div>`;
}

/** Zero is a line of one unit, so that it differs from nothing. */
export function barPath(bars: readonly Bar[], top: number): string {
  return bars
    .map((bar, index) => {
      if (bar === undefined) return "";
      const high = Math.max(1, top > 0 ? Math.round((Math.min(bar, top) / top) * height) : 0);
      return `M${index * step} ${height}v-${high}h${barWidth}v${high}z`;
    })
    .join("");
}
