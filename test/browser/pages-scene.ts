// A server that looks lived in, for the pictures and checks of its pages.

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { SecretKey } from "../../src/nostr/keys.js";
import { npubOf } from "../../src/nostr/nip19.js";
import { PlainRelay } from "../harness/sync-plain-relay.js";
import { newKey, type PagesWorld, startPagesWorld, until } from "../http/pages-world.js";

const readme = `# Tidewater

[![build](https://ci.example.com/tide.svg)](https://ci.example.com/tide) A small library that predicts **tides** from a
handful of harmonic constants. It has _no_ dependencies and runs on a phone.

## Install

\`\`\`sh
npm install tidewater --save-exact --registry=https://registry.example.com/a/rather/long/path/that/does/not/fit
\`\`\`

## Use

1. Choose a station
2. Ask for a time
   - in UTC
   - or in local time
3. Draw the curve

| Constituent | Period (h) | What it is |
|---|---|---|
| M2 | 12.42 | principal lunar |
| S2 | 12.00 | principal solar |

> Predictions are not for navigation.

See <https://example.com/tides> for the theory, or read \`src/harmonics.ts\`.
`;

export interface Scene {
  readonly world: PagesWorld;
  readonly owner: SecretKey;
  readonly reader: SecretKey;
  /** An issue with a thread, a pull request, a series of patches, an issue by somebody hostile. */
  readonly issue: string;
  readonly pull: string;
  readonly patch: string;
  readonly hostileIssue: string;
  /** Pushes one more commit to the full repository, and says which. */
  push(message: string): Promise<string>;
  readonly full: string;
  readonly waiting: string;
  /** Pull requests of a contributor, in his own place. */
  readonly prs: string;
  readonly hostile: string;
}

export const hostileName = `<img src=x onerror="document.title='owned'">`;

export async function setScene(): Promise<Scene> {
  const relay = await PlainRelay.start();
  const world = await startPagesWorld({
    // Peers on this machine: one relay that works, one relay and one git server that do not.
    NGIT_TEST: "1",
    NGIT_GRASP06_ENABLE: "true",
    NGIT_SYNC_BATCH_WINDOW_MS: "50",
    NGIT_GIT_HUNT_DIRECT_DELAY_MS: "200",
    NGIT_RELAY_NAME: "harbour.example",
    // A state is served although something it lists is missing, after the shortest wait there is.
    NGIT_PARTIAL_STATE_GRACE_SECS: "1",
    NGIT_RELAY_DESCRIPTION: "A quiet place for the repositories of people who like boats.",
  });
  const [owner, second, reader] = [newKey(), newKey(), newKey()];
  const identifier = "tidewater";
  await world.announce(owner, identifier, [
    ["name", "Tidewater"],
    ["description", "Predicts tides from a handful of harmonic constants, without dependencies."],
    ["maintainers", second.pubkey],
    ["web", "https://example.com/tidewater", "javascript:alert(1)"],
    ["clone", `http://127.0.0.1:9/${npubOf(second.pubkey)}/tidewater.git`],
    ["relays", relay.url, "ws://127.0.0.1:9"],
    ["t", "tides"],
    ["t", "typescript"],
  ]);
  const copy = await world.workingCopy(
    { "README.md": readme, ".message": "Begin" },
    ...[
      "Read stations from a file",
      "Fix the sign of the phase for western longitudes",
      "Speed up the inner loop",
      "Describe what M2 is",
    ].map((message) => ({ "src/harmonics.ts": `// ${message}\n`, ".message": message })),
  );
  await world.git(copy.folder, "tag", "v1.0.0", "HEAD~1");
  await world.git(copy.folder, "branch", "stations", "HEAD~2");
  const at = (revision: string) => world.git(copy.folder, "rev-parse", revision);
  await world.publish(owner, 30618, [
    ["d", identifier],
    ["refs/heads/main", copy.tip],
    ["refs/heads/stations", await at("stations")],
    ["refs/heads/elsewhere", "1".repeat(40)],
    ["refs/tags/v1.0.0", await at("v1.0.0")],
    ["HEAD", "ref: refs/heads/main"],
  ]);
  const full = world.url(owner, identifier);
  await world.git(copy.folder, "push", "--quiet", full, "main", "stations", "v1.0.0");
  const results = ["equal", "out of reach"].map((word) => new RegExp(`<span class="tag \\w+">${word}<`));
  await until(async () => {
    const page = await (await fetch(`${full}/copies`)).text();
    return page.includes("Tidewater") && results.every((result) => result.test(page));
  });
  const about: [string, string] = ["a", `30617:${owner.pubkey}:${identifier}`];
  await world.publish(owner, 0, [], JSON.stringify({ name: "Ada of the Harbour" }));
  const talk = await setTalk(world, { owner, second, reader }, about, copy.folder, full);
  const settled = await world.publish(reader, 1621, [about, ["subject", "Typo in the README"]], "there", 90_000);
  await world.publish(second, 1632, [["e", settled.id, "", "root"], about], "", 80_000);
  const prs = `${world.origin}/prs/${npubOf(reader.pubkey)}/${identifier}.git`;
  const proposal = await world.publish(reader, 1618, [
    about,
    ["c", await at("stations")],
    ["clone", prs],
    ["subject", "Stations of the northern coast, with their constants"],
  ]);
  await world.git(copy.folder, "push", "--quiet", prs, `stations:refs/nostr/${proposal.id}`);
  await world.host(
    second,
    "knots",
    [{ "README.md": "# Knots\n" }],
    [
      ["name", "Knots"],
      ["description", "Bowline, sheet bend, and friends."],
    ],
  );

  const waiter = newKey();
  await world.announce(waiter, "secret-plans", [["name", "Plans nobody may see yet"]]);
  const attacker = newKey();
  await world.host(
    attacker,
    hostileName,
    [
      {
        "README.md": `# ${hostileName}\n\n<script>document.title='owned'</script>\n\n[click](javascript:document.title='owned') <svg onload=alert(1)>\n`,
        ".message": hostileName,
      },
    ],
    [
      ["name", hostileName],
      ["description", `"><script>document.title='owned'</script> ${"wide".repeat(60)} \u202Ereversed`],
    ],
  );
  const closing: PagesWorld = {
    ...world,
    async close() {
      await world.close();
      await relay.stop();
    },
  };
  return {
    world: closing,
    owner,
    reader,
    ...talk,
    full,
    async push(message) {
      await world.git(copy.folder, "switch", "--quiet", "main");
      await world.git(copy.folder, "commit", "--quiet", "--allow-empty", "-m", message);
      const tip = await at("main");
      await world.publish(
        owner,
        30618,
        [
          ["d", identifier],
          ["refs/heads/main", tip],
          ["refs/heads/stations", await at("stations")],
          ["refs/tags/v1.0.0", await at("v1.0.0")],
          ["HEAD", "ref: refs/heads/main"],
        ],
        "",
        -1,
      );
      await world.git(copy.folder, "push", "--quiet", full, "main");
      return tip;
    },
    waiting: world.url(waiter, "secret-plans"),
    prs,
    hostile: world.url(attacker, hostileName),
  };
}

const mail = (subject: string, tip: string, message: string): string => `From ${tip} Mon Sep 17 00:00:00 2001
From: Ada <ada@example.com>
Date: Mon, 16 Nov 2026 10:00:00 +0000
Subject: ${subject}

${message}
---
 src/harmonics.ts | 2 +-

diff --git a/src/harmonics.ts b/src/harmonics.ts
index 1..2 100644
--- a/src/harmonics.ts
+++ b/src/harmonics.ts
@@ -1 +1,2 @@ export function height
-// Describe what M2 is
+// M2: the principal lunar constituent, twice a day
+export const m2 = 12.4206012;
--${" "}
2.47.0
`;

/** People who talk: labels, answers to answers, statuses, a pull request with commits, patches, and somebody hostile. */
async function setTalk(
  world: PagesWorld,
  { owner, second, reader }: Readonly<Record<"owner" | "second" | "reader", SecretKey>>,
  about: [string, string],
  folder: string,
  full: string,
): Promise<Pick<Scene, "issue" | "pull" | "patch" | "hostileIssue">> {
  const issue = await world.publish(
    reader,
    1621,
    [
      about,
      ["p", owner.pubkey],
      ["subject", "Wrong by an hour in Reykjavík during summer"],
      ["t", "bug"],
      ["t", "time zones"],
    ],
    'The curve of `reykjavik` is **an hour late** from March to October.\n\n1. choose the station\n2. ask for 12:00 UTC\n\n```ts\npredict("reykjavik", new Date());\n```\n\n> Iceland has no summer time.\n',
    7_200,
  );
  await world.publish(reader, 0, [], JSON.stringify({ name: "Einar", about: "Sails" }));
  const first = await world.comment(
    owner,
    issue,
    issue.id,
    "Thanks. The table of stations says `Atlantic/Faroe`; that is why.",
    6_000,
  );
  const answer = await world.comment(reader, issue, first.id, "Then all stations of Iceland are wrong?", 5_500);
  await world.comment(second, issue, answer.id, "Yes: see [the table](src/harmonics.ts).", 5_000);
  await world.publish(second, 1632, [["e", issue.id, "", "root"], about], "", 4_000);
  await world.publish(reader, 1630, [["e", issue.id, "", "root"], about], "", 3_000);
  await world.publish(owner, 1985, [["e", issue.id], about, ["L", "#t"], ["l", "stations", "#t"]], "", 2_000);
  await world.comment(owner, issue, issue.id, "Still open: the fix is in the pull request.", 1_000);

  await world.git(folder, "switch", "--quiet", "-c", "iceland");
  for (const [file, text, message] of [
    [
      "src/iceland.ts",
      "export const zone = 'Atlantic/Reykjavik';\nexport const stations = ['reykjavik'];\n",
      "Give Iceland its own zone",
    ],
    ["src/harmonics.ts", "// Describe what M2 is\nexport { zone } from './iceland';\n", "Use it <everywhere>"],
  ] as const) {
    await writeFile(join(folder, file), text);
    await world.git(folder, "add", "--all");
    await world.git(folder, "commit", "--quiet", "-m", message);
  }
  const tip = await world.git(folder, "rev-parse", "HEAD");
  const pull = await world.publish(
    reader,
    1618,
    [about, ["c", tip], ["clone", full], ["subject", "Iceland has no summer time"], ["t", "bug"]],
    "Mends the hour:\n\n- [x] a zone of its own\n- [ ] the other stations\n",
    900,
  );
  await world.git(folder, "push", "--quiet", full, `iceland:refs/nostr/${pull.id}`);
  await world.comment(owner, pull, pull.id, "Looks right to me.", 800);
  await world.git(folder, "switch", "--quiet", "main");

  const patch = await world.publish(
    second,
    1617,
    [about, ["t", "root"]],
    mail(
      "[PATCH 1/2] Say what the principal lunar constituent is, with\n its period in hours",
      tip,
      "So that readers need no other book.",
    ),
    700,
  );
  await world.publish(
    second,
    1617,
    [about, ["e", patch.id, "", "reply"]],
    mail("[PATCH 2/2] And the solar one", tip, "The same."),
    690,
  );

  const hostile = newKey();
  const hostileIssue = await world.publish(
    hostile,
    1621,
    [about, ["subject", hostileName], ["t", hostileName]],
    `${hostileName}\n\n[click](javascript:document.title='owned') ![p](https://elsewhere.example/p.png) <svg onload=alert(1)>\n\n${"wide".repeat(200)}\n\n| a | b |\n|--|--|\n| ${"x".repeat(300)} | y |\n`,
    600,
  );
  await world.comment(
    hostile,
    hostileIssue,
    hostileIssue.id,
    `<script>document.title='owned'</script>\n\n# Heading ${hostileName}`,
    500,
  );
  await world.publish(
    hostile,
    0,
    [],
    JSON.stringify({ name: hostileName, picture: "https://elsewhere.example/me.png", website: "javascript:alert(1)" }),
  );
  const id = (kind: "issues" | "pulls", { id: event }: { readonly id: string }): string => `${full}/${kind}/${event}`;
  return {
    issue: id("issues", issue),
    pull: id("pulls", pull),
    patch: id("pulls", patch),
    hostileIssue: id("issues", hostileIssue),
  };
}
