// A server that looks lived in, for the pictures and checks of its pages.

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
  await world.publish(
    reader,
    1621,
    [about, ["p", owner.pubkey], ["subject", "Wrong by an hour in Reykjavík during summer"]],
    "It is.",
    7_200,
  );
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
    full,
    waiting: world.url(waiter, "secret-plans"),
    prs,
    hostile: world.url(attacker, hostileName),
  };
}
