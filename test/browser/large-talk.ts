// People around the repository with the long history: names, issues with labels, answers and statuses, pull requests whose
// commits change its real sources, a series of patches as `git format-patch` writes it, and other repositories beside it.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Tag } from "../../src/nostr/event.js";
import type { SecretKey } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { newKey, type PagesWorld } from "../http/pages-world.js";

const day = 86_400;

const subjects = [
  "z.string().email() refuses addresses with a plus sign",
  "Error messages of unions are hard to read",
  "Document how to extend a schema twice",
  "Type of z.infer is any when strict is off",
  "safeParse is slow for arrays of 100,000 objects",
  "Locale for Icelandic is missing two messages",
  "Discriminated unions with nested objects lose their keys",
  "z.date() takes strings in one version and not in the other",
  "Tree shaking keeps all locales in the bundle",
  "Recursive schemas: maximum call stack size exceeded",
  "A transform after a refine is called although the refine failed",
  "Please publish source maps",
];
const labelled = [
  ["bug"],
  ["bug", "errors"],
  ["docs"],
  ["types"],
  ["performance"],
  ["good first issue", "locales"],
  [],
];

export interface LargeTalk {
  /** Address of each page, by the name of its picture. */
  readonly urls: readonly [string, string][];
}

export async function setLargeTalk(world: PagesWorld, owner: SecretKey, folder: string): Promise<LargeTalk> {
  const full = world.url(owner, "long");
  const about: Tag = ["a", `30617:${owner.pubkey}:long`];
  const [grace, edsger, radia] = [newKey(), newKey(), newKey()];
  const people = [grace, edsger, radia, owner];
  const someone = (index: number): SecretKey => people[index % people.length] ?? grace;
  const issues: string[] = [];
  for (let index = 0; index < 44; index++) {
    const subject = `${subjects[index % subjects.length]}${index >= subjects.length ? ` (${index})` : ""}`;
    const labels = (labelled[index % labelled.length] ?? []).map((label): Tag => ["t", label]);
    const age = (45 - index) * 2 * day;
    const { id } = await world.publish(someone(index), 1621, [about, ["subject", subject], ...labels], body, age);
    issues.push(id);
    if (index % 4 === 1) await world.publish(owner, 1632, [["e", id, "", "root"], about], "", age - day);
    if (index % 7 === 2) await world.publish(owner, 1631, [["e", id, "", "root"], about], "", age - day);
  }
  const issue = issues[40] ?? "";
  const thread = { id: issue, kind: 1621 };
  const first = await world.comment(edsger, thread, issue, "Seen here as well, with `strict: true`.", 9 * day);
  const second = await world.comment(owner, thread, first.id, answer, 8 * day);
  await world.comment(grace, thread, second.id, "That helps. Shall I send a pull request?", 7 * day);
  await world.publish(owner, 1985, [["e", issue], about, ["L", "#t"], ["l", "confirmed", "#t"]], "", 6 * day);
  await world.publish(owner, 1632, [["e", issue, "", "root"], about], "", 5 * day);
  await world.publish(grace, 1630, [["e", issue, "", "root"], about], "", 4 * day);
  await world.comment(radia, thread, issue, "> with `strict: true`\n\nWithout it too, since v1.8.0.", 3 * day);

  // Pull requests change the real sources; the history was imported beside the working copy.
  await world.git(folder, "reset", "--quiet", "--hard", "main");
  const pulls: string[] = [];
  const paths = (await world.git(folder, "ls-tree", "-r", "--name-only", "main", "v4/core")).split("\n");
  for (const [index, title] of [
    "Take plus signs in the local part of addresses",
    "Say which branch of a union was nearest",
    "Icelandic: the two messages that were missing",
  ].entries()) {
    const branch = `work-${index}`;
    await world.git(folder, "switch", "--quiet", "--force-create", branch, "main");
    for (let step = 0; step < 3; step++) {
      const path = paths[(index * 5 + step * 2) % paths.length] ?? "";
      const text = await readFile(join(folder, path), "utf8");
      const lines = text.split("\n");
      for (let at = 4; at < lines.length; at += 29) lines[at] = `${lines[at]} // checked: ${title.toLowerCase()}`;
      lines.splice(2, 0, `// Part ${step + 1} of: ${title}.`, "export const checked = true;");
      await writeFile(join(folder, path), lines.join("\n"));
      await world.git(folder, "add", "--all");
      await world.git(folder, "commit", "--quiet", "-m", `${title}, part ${step + 1}\n\nWhat ${path} needs.`);
    }
    const tip = await world.git(folder, "rev-parse", "HEAD");
    const tags: Tag[] = [about, ["c", tip], ["clone", full], ["subject", title], ["t", "bug"]];
    const text = `Closes the issue about it.\n\n- [x] sources\n- [x] tests\n- [ ] documentation\n\n\`\`\`ts\nz.email().parse("a+b@example.com");\n\`\`\`\n`;
    const { id } = await world.publish(someone(index), 1618, tags, text, (3 - index) * day);
    await world.git(folder, "push", "--quiet", full, `${branch}:refs/nostr/${id}`);
    await world.comment(
      owner,
      { id, kind: 1618 },
      id,
      "Thank you! One question: is `checked` meant to be exported?",
      40_000,
    );
    await world.comment(
      someone(index),
      { id, kind: 1618 },
      id,
      "Yes: the locales use it, see [parse.ts](v4/core/parse.ts).",
      30_000,
    );
    pulls.push(`${full}/pulls/${id}`);
  }
  const mails = (await world.git(folder, "format-patch", "--stdout", "-2", "work-1")).split(/^(?=From [0-9a-f]{40} )/m);
  await world.git(folder, "switch", "--quiet", "main");
  const patch = await world.publish(radia, 1617, [about, ["t", "root"]], mails[0] ?? "", 20_000);
  await world.publish(radia, 1617, [about, ["e", patch.id, "", "reply"]], mails[1] ?? "", 19_000);

  for (const [index, [name, description, topic]] of [
    ["Tidewater", "Predicts tides from a handful of harmonic constants, without dependencies.", "tides"],
    ["Knots", "Bowline, sheet bend, and friends.", "sailing"],
    ["Compass", "Which way is north, on phones without one.", "sailing"],
    ["Ledger", "Double-entry accounts as plain text, with reports.", "typescript"],
    ["Herbarium", "Pictures of pressed plants and where they were found.", "plants"],
    ["Nanosecond", "A piece of wire, measured.", "typescript"],
  ].entries()) {
    await world.host(
      someone(index),
      (name ?? "").toLowerCase(),
      [{ "README.md": `# ${name}\n\n${description}\n` }],
      [
        ["name", name ?? ""],
        ["description", description ?? ""],
        ["t", topic ?? ""],
      ],
    );
  }
  // Those who have said something here are known.
  for (const [key, name, text] of [
    [owner, "Ada Lovelace", "Writes parsers by day. Maintains **Long** and a few smaller things."],
    [grace, "Grace Hopper", "Compilers, nanoseconds."],
    [edsger, "Edsger Dijkstra", "Considered harmful."],
    [radia, "Radia Perlman", "Trees."],
  ] as const) {
    await world.publish(key, 0, [], JSON.stringify({ name, about: text, website: "https://example.com/people" }));
  }
  const { origin } = world;
  return {
    urls: [
      ["front", `${origin}/`],
      ["front-by-name", `${origin}/?sort=name`],
      ["front-topic", `${origin}/?topic=typescript`],
      ["search", `${origin}/?q=long`],
      ["search-nothing", `${origin}/?q=zeppelin`],
      ["person", `${origin}/${npubOf(owner.pubkey)}`],
      ["issues", `${full}/issues`],
      ["issues-closed", `${full}/issues?state=closed`],
      ["issues-label", `${full}/issues?label=bug`],
      ["issues-nothing", `${full}/issues?q=zeppelin`],
      ["issue", `${full}/issues/${issue}`],
      ["pulls", `${full}/pulls`],
      ["pull", pulls[0] ?? ""],
      ["pull-commits", `${pulls[0]}/commits`],
      ["pull-files", `${pulls[0]}/files`],
      ["pull-files-split", `${pulls[0]}/files?view=split`],
      ["patch", `${full}/pulls/${patch.id}`],
      ["patch-files", `${full}/pulls/${patch.id}/files`],
      ["status", `${origin}/status`],
    ],
  };
}

const body = `What I did:

\`\`\`ts
import { z } from "long";

const schema = z.object({ mail: z.string().email() });
schema.parse({ mail: "ada+lists@example.com" });
\`\`\`

What I expected: **no error**. What happened:

> ZodError: [ { "validation": "email", "code": "invalid_string", "path": ["mail"] } ]

| version | result |
|:--------|-------:|
| v1.8.0  | works  |
| v1.9.0  | fails  |
`;

const answer = `It is the pattern in [regexes.ts](v4/core/regexes.ts): the part before the \`@\` allows too little. Two ways:

1. allow \`+\` (and \`!#$%&'*/=?^_{|}~\`)
2. take the pattern of HTML's \`input type=email\`

I like the second one.
`;
