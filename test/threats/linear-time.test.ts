// threats.md row 32: no parser of strangers' text takes more than time in proportion to its length.

import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { describe, test } from "node:test";
import { Registry } from "prom-client";
import { serviceListing } from "../../src/admission/service.js";
import { ipGroup } from "../../src/base/budget/rates.js";
import { systemClock } from "../../src/base/clock.js";
import { assertLinear, uglyShapes } from "../../src/base/testing/linear-time.js";
import { escapeControls } from "../../src/base/text.js";
import { defaultConfig } from "../../src/config/testing/default-config.js";
import { parseGitPath } from "../../src/git/address.js";
import { parseLsRefs } from "../../src/git/advertisement.js";
import { reasonIn } from "../../src/git/fetch-remote.js";
import { encodePkt, listPkts } from "../../src/git/pkt-line.js";
import { PushHeadParser } from "../../src/git/push-commands.js";
import { explain } from "../../src/git/receive-pack.js";
import { sessionOf } from "../../src/http/api.js";
import { metricsRoute } from "../../src/http/monitoring.js";
import { wantsRelayInformation } from "../../src/http/nip11.js";
import { isKnownTag, type RouteRequest } from "../../src/http/routes.js";
import { clientIp, handshakeFault, isLocalPeer, loopbackCidrs, trustedProxies } from "../../src/http/server.js";
import { readAdvertisement, readLsRefs } from "../../src/hunt/look-up.js";
import { parseRelayMessage } from "../../src/net/relay-client.js";
import { normalCloneUrl, normalRelayUrl, serviceName, servicePart, withoutTrailing } from "../../src/net/url.js";
import { kinds, type NostrEvent, parseAddress, parseEvent, type Tag } from "../../src/nostr/event.js";
import { parseFilter, searchableWords, searchMatcher } from "../../src/nostr/filter.js";
import { messageFromHex } from "../../src/nostr/negentropy/wire.js";
import { parseNaddr, parseNevent, parseNote, parseNpub } from "../../src/nostr/nip19.js";
import { announcementOf, isRefName, pullRequestOf, stateOf } from "../../src/nostr/nip34.js";
import { eventNamed, keyNamed, placeNamedBy, repositoryNamedBy } from "../../src/operator/naming.js";
import { deletionTargets } from "../../src/store/engine/deletions.js";
import { termsOf } from "../../src/store/engine/row.js";
import { meaningOf, meaningOfNegErr } from "../../src/sync/core/closed-reasons.js";
import { listedRelay } from "../../src/sync/core/wanted.js";
import { escapeHtml, foreign, webUrl } from "../../src/web/html.js";
import { renderMarkdown } from "../../src/web/markdown.js";
import { titleOf } from "../../src/web/talk/thread.js";

const hex = "ab".repeat(32);
const npub = "npub14w46h2at4w46h2at4w46h2at4w46h2at4w46h2at4w46h2at4w4squk6te";

const event = (kind: number, tags: readonly Tag[], content = ""): NostrEvent =>
  ({ id: hex, pubkey: hex, created_at: 1, kind, tags, content, sig: "", raw: "" }) as unknown as NostrEvent;

const asked = (headers: Record<string, string>): IncomingMessage =>
  ({ headers, socket: { remoteAddress: "127.0.0.1" } }) as unknown as IncomingMessage;

/** As much as one pkt-line holds. */
const packet = (text: string): Buffer => Buffer.from(text).subarray(0, 65_000);

/** Each is given a text that strangers write. */
const ofTexts: Readonly<Record<string, (text: string) => unknown>> = {
  "a README": (text) => renderMarkdown(text, { outerLevel: 2 }),
  "a README's heading": (text) => renderMarkdown(`# ${text}\u2028`, { outerLevel: 2 }),
  "a README's link": (text) => renderMarkdown(`[a](${text} [b](https://c${text})`, { outerLevel: 2 }),
  "a README's list": (text) => renderMarkdown(`- a\n  - ${text}\n> 1. ${text}`, { outerLevel: 2 }),
  "a README's table": (text) => renderMarkdown(`|a|b\n${text}|-|-\n${text}|`, { outerLevel: 2 }),
  "a title": (text) => titleOf(event(kinds.issue, [["subject", text]])),
  "a title in the content": (text) => titleOf(event(kinds.patch, [], text)),
  "words of a repository": (text) => searchableWords(event(kinds.announcement, [["name", text]])),
  "words of an issue": (text) => searchableWords(event(kinds.issue, [], text)),
  "words of a patch": (text) => searchableWords(event(kinds.patch, [], `${text}\nSubject:${text}`)),
  "a search": (text) => searchMatcher(text)(event(kinds.issue, [], text)),
  "an announcement": (text) =>
    announcementOf(
      event(kinds.announcement, [
        ["d", text],
        ["clone", text, text],
        ["relays", text],
        ["t", text],
      ]),
    ),
  "an announcement's URLs": (text) => {
    const found = announcementOf(
      event(kinds.announcement, [
        ["clone", `https://a/${text}`],
        ["relays", text],
      ]),
    );
    return (
      found &&
      serviceListing(
        found,
        [serviceName("a.example")].flatMap((name) => name ?? []),
      )
    );
  },
  "a state": (text) =>
    stateOf(
      event(kinds.state, [
        ["HEAD", `ref:${text}`],
        [`refs/heads/${text}`, text],
      ]),
    ),
  "a pull request": (text) =>
    pullRequestOf(
      event(kinds.pullRequest, [
        ["a", `30617:${hex}:${text}`],
        ["c", text],
      ]),
    ),
  "a deletion": (text) =>
    deletionTargets(
      event(kinds.deletion, [
        ["e", text],
        ["a", text],
        ["a", `30617:${hex}:${text}`],
      ]),
    ),
  "index terms": (text) =>
    termsOf(
      event(
        kinds.issue,
        [
          ["t", text],
          [text, "a"],
          ["d", text],
        ],
        text,
      ),
    ),
  "an event": (text) => parseEvent({ ...event(1, [[text, text]], text), sig: "ab".repeat(64) }),
  "a filter": (text) => parseFilter({ "#t": [text], [`#${text}`]: ["a"], search: text, [text]: 1 }),
  "an address": (text) => [parseAddress(text), parseAddress(`30617:${text}`), parseAddress(`${text}:${hex}:`)],
  "names of NIP-19": (text) =>
    [parseNpub, parseNote, parseNevent, parseNaddr].map((parse) => [
      parse(text),
      parse(`npub1${text}`),
      parse(`naddr1${text}`),
    ]),
  "names for commands": (text) => [keyNamed, eventNamed, repositoryNamedBy, placeNamedBy].map((parse) => parse(text)),
  "a ref's name": (text) => [isRefName(text), isRefName(`refs/heads/${text}`)],
  "a URL": (text) =>
    [webUrl, normalCloneUrl, normalRelayUrl, servicePart, serviceName].map((parse) => [
      parse(text),
      parse(`https://a.example/${text}`),
    ]),
  "a listed relay": (text) => [listedRelay(text), listedRelay(`https://a.example/${text}/${npub}/a.git`)],
  "a path": (text) => [
    parseGitPath(`/${text}`),
    parseGitPath(`/${npub}/a.git/${text}`),
    parseGitPath(`/${npub}/${text}.git`),
  ],
  "an If-None-Match": (text) => isKnownTag(text, '"tag"'),
  "an Accept": (text) => wantsRelayInformation({ message: asked({ accept: text }) } as RouteRequest),
  "a Cookie": (text) => sessionOf(asked({ cookie: text })),
  "an Upgrade": (text) =>
    handshakeFault(asked({ upgrade: text, "sec-websocket-key": text, "sec-websocket-version": text })),
  "a forwarded address": (text) => clientIp(asked({ "x-forwarded-for": text }), trustedProxies(loopbackCidrs).list),
  "a Host": (text) => isLocalPeer(asked({ host: text })),
  "an address group": (text) => ipGroup(text),
  "an Authorization for metrics": (text) => {
    const response = { setHeader() {}, writeHead() {}, end() {} };
    const request = {
      message: { ...asked({ authorization: `Bearer ${text}` }), socket: { remoteAddress: "192.0.2.1" } },
    };
    return metricsRoute(new Registry(), { clock: systemClock, keptMs: () => 1_000 }, () => ({
      isPublic: false,
      token: "t".repeat(16),
    })).handle(request as never, response as never);
  },
  "a line for the log": (text) => escapeControls(text),
  "a text on a page": (text) => [escapeHtml(text), foreign(text)],
  "the end of a text": (text) => withoutTrailing(text, "/"),
  "a relay's message": (text) => [parseRelayMessage(text), parseRelayMessage(`["NOTICE",${JSON.stringify(text)}]`)],
  "a relay's reason": (text) => [meaningOf(text), meaningOfNegErr(text)],
  "a negentropy message": (text) => messageFromHex(text),
  "what a git server says": (text) => [
    readAdvertisement(Buffer.from(text)),
    readLsRefs(Buffer.from(text)),
    readLsRefs(Buffer.from(`${"0".repeat(40)} ${text}`)),
  ],
  "what git says": (text) => [reasonIn(text), explain(`fatal: ${text}`)],
  "a question for refs": (text) =>
    parseLsRefs([...listPkts(encodePkt(packet(`ref-prefix ${text}`)), 10), { type: "flush" }]),
  "commands of a push": (text) => new PushHeadParser(defaultConfig()).push(encodePkt(packet(text))),
};

/** Each is given a number of things instead of a length of text. */
const ofNumbers: Readonly<Record<string, (count: number) => unknown>> = {
  "tags of an announcement": (count) =>
    announcementOf(
      event(
        kinds.announcement,
        Array.from({ length: count }, (_, index) => ["maintainers", hex, `${index}`]),
      ),
    ),
  "addresses of a pull request": (count) =>
    pullRequestOf(
      event(
        kinds.pullRequest,
        Array.from({ length: count }, (_, index) => ["a", `30617:${hex}:${index}`]),
      ),
    ),
  "index terms of many tags": (count) =>
    termsOf(
      event(
        kinds.issue,
        Array.from({ length: count }, (_, index) => ["t", `${index}`]),
      ),
    ),
};

describe("threat 32", { timeout: 900_000 }, () => {
  for (const [name, parse] of Object.entries(ofTexts)) {
    test(`threat 32: ${name} is read in time that follows its length, whatever ugly shape it has`, () => {
      for (const [shapeName, shape] of uglyShapes) {
        assertLinear(`${name} of ${shapeName}`, shape, parse, { maxChars: 2 ** 16 });
      }
    });
  }

  for (const [name, work] of Object.entries(ofNumbers)) {
    test(`threat 32: ${name} take time that follows their number`, () => {
      assertLinear(name, (count) => count, work, { maxChars: 2 ** 15 });
    });
  }

  test("threat 32: short rows of wide tables do not make a small README a large page", () => {
    const head = `${"|a".repeat(50)}|\n${"|-".repeat(50)}|\n`;
    const page = renderMarkdown(`${head}${"|\n".repeat(500)}\n`.repeat(40), { outerLevel: 2 }).toString();
    assert.ok(page.length < 2 ** 20, `${page.length} characters`);
  });
});
