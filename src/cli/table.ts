// Answers as aligned columns. Texts come from strangers: control characters are replaced.

const clean = (text: string): string =>
  text.replace(/[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "?");

/** `nothing` is said instead of a table without rows. */
export function tableText(head: readonly string[], rows: readonly (readonly string[])[], nothing: string): string {
  if (rows.length === 0) return nothing;
  const all = [head, ...rows.map((row) => row.map(clean))];
  const widths = head.map((_, column) => Math.max(...all.map((row) => [...(row[column] ?? "")].length)));
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** `name   value`, one a line. */
export const pairsText = (pairs: readonly (readonly [name: string, value: string])[]): string => {
  const width = Math.max(...pairs.map(([name]) => name.length));
  return pairs.map(([name, value]) => `${name.padEnd(width)}  ${clean(value)}`).join("\n");
};

export const lineText = clean;
