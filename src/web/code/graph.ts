// The lines beside a log that show where branches parted and met: pure. Each row is drawn by itself, from what came in at
// its top to what goes on at its bottom, so that it fits rows of any height.

import { type Html, html } from "../html.js";

interface LoggedCommit {
  readonly oid: string;
  readonly parents: readonly string[];
}

export interface GraphRow {
  /** Where the commit stands. */
  readonly lane: number;
  /** From a lane at the top to the commit. */
  readonly into: readonly number[];
  /** From the commit to a lane at the bottom. */
  readonly out: readonly number[];
  /** Past the commit, from top to bottom. */
  readonly past: readonly number[];
}

/** Further ones share the last. */
const maxLanes = 10;

export function graphOf(commits: readonly LoggedCommit[]): GraphRow[] {
  /** Which commit each lane leads to. */
  const lanes: (string | undefined)[] = [];
  const free = (): number => {
    const index = lanes.indexOf(undefined);
    return index < 0 ? Math.min(lanes.length, maxLanes - 1) : index;
  };
  return commits.map(({ oid, parents }) => {
    const into = lanes.flatMap((waited, lane) => (waited === oid ? [lane] : []));
    const lane = into[0] ?? free();
    const past = lanes.flatMap((waited, index) => (waited !== undefined && waited !== oid ? [index] : []));
    for (const index of into) lanes[index] = undefined;
    const out: number[] = [];
    parents.slice(0, maxLanes).forEach((parent, index) => {
      const known = lanes.indexOf(parent);
      // The first parent goes on in the commit's own lane; the others where they are waited for, or beside.
      const to = index === 0 && lanes[lane] === undefined ? lane : known >= 0 ? known : free();
      lanes[to] = parent;
      if (!out.includes(to)) out.push(to);
    });
    return { lane, into, out, past };
  });
}

const laneWidth = 14;
const middle = 5;
const bottom = 10;
const x = (lane: number): number => lane * laneWidth + laneWidth / 2;

/** Undefined: one line of commits needs no picture. */
export function graphColumn(commits: readonly LoggedCommit[]): { readonly lanes: number; rows: Html[] } | undefined {
  const rows = graphOf(commits);
  const lanes = 1 + Math.max(0, ...rows.flatMap(({ lane, into, out, past }) => [lane, ...into, ...out, ...past]));
  if (lanes < 2) return undefined;
  const width = lanes * laneWidth;
  const path = (lane: number, d: string): Html => html`<path class="lane${lane % 5}" d="${d}"/>`;
  return {
    lanes,
    rows: rows.map(
      ({ lane, into, out, past }) =>
        html`<svg class="graph" width="${width}" viewBox="0 0 ${width} ${bottom}" preserveAspectRatio="none" aria-label="Graph" aria-hidden="true">${[
          ...past.map((one) => path(one, `M${x(one)} 0V${bottom}`)),
          ...into.map((one) => path(one, `M${x(one)} 0L${x(lane)} ${middle}`)),
          ...out.map((one) => path(one, `M${x(lane)} ${middle}L${x(one)} ${bottom}`)),
        ]}<path class="dot lane${lane % 5}" d="M${x(lane)} ${middle}h0"/></svg>`,
    ),
  };
}
