// `/<npub>`: a person, as far as this server knows them: what their profile says, the repositories they own and maintain here,
// and a picture of what they did here in the last year. Pictures of other hosts are linked, never loaded.

import type { Clock } from "../base/clock.js";
import { unixSeconds } from "../base/clock.js";
import { type Document, onlyToRead, type Route, type RouteRequest, sendDocument } from "../http/routes.js";
import { kinds, type Pubkey } from "../nostr/event.js";
import { npubOf, parseNpub } from "../nostr/nip19.js";
import type { Store } from "../store/port.js";
import type { Directory, DirectoryEntry } from "./directory.js";
import { ownerFeed } from "./feeds.js";
import { count, counted, foreign, foreignLink, type Html, html, shortNpub } from "./html.js";
import { copyLine, ownerPath, pageDocument, type Site } from "./layout.js";
import { retryAfterSeconds, tryLaterPage, type VisitorRates } from "./page-limits.js";
import { type Person, type Profile, peopleOf, profileOf } from "./people.js";
import { andMore, section } from "./pieces.js";
import { publicMaintainers } from "./public-maintainers.js";
import { cardList, sortEntries } from "./repository-cards.js";

const shownOwned = 60;
const shownMaintained = 30;
const weeks = 53;
const weekSeconds = 7 * 24 * 60 * 60;
/** More than these are not counted. */
const maxCounted = 10_000;
/** What somebody does for repositories. */
const deeds: readonly number[] = [
  kinds.announcement,
  kinds.state,
  kinds.issue,
  kinds.pullRequest,
  kinds.pullRequestUpdate,
  kinds.patch,
  kinds.comment,
  1630,
  1631,
  1632,
  1633,
];

export interface OwnerSources {
  readonly store: Store;
  readonly directory: Directory;
  readonly clock: Clock;
}

interface OwnerFacts {
  readonly pubkey: Pubkey;
  readonly profile: Profile;
  readonly owned: readonly DirectoryEntry[];
  readonly maintained: readonly DirectoryEntry[];
  /** Owners of these. */
  readonly people: ReadonlyMap<Pubkey, Person>;
  /** Deeds a week, oldest first; undefined: too many to count. */
  readonly perWeek: readonly number[] | undefined;
}

interface Asked {
  readonly pubkey: Pubkey;
  readonly form: "page" | "feed" | "slip";
}

function askedFor({ localPath }: RouteRequest): Asked | undefined {
  const [, npub = "", rest = ""] = /^\/(npub1[a-z0-9]{58})(\.atom|\/+)?$/.exec(localPath) ?? [];
  const pubkey = parseNpub(npub);
  return pubkey && { pubkey, form: rest === ".atom" ? "feed" : rest === "" ? "page" : "slip" };
}

export function ownerRoutes(site: () => Site, sources: OwnerSources, rates: VisitorRates): Route[] {
  return [
    onlyToRead({
      matches: (request) => askedFor(request) !== undefined,
      async handle(request, response) {
        const asked = askedFor(request);
        if (!asked || !rates.takePage(request.ip))
          return sendDocument(request, response, tryLaterPage(site(), 429, retryAfterSeconds));
        if (asked.form === "slip") {
          const headers = {
            Location: ownerPath(site(), asked.pubkey),
            "Cache-Control": "no-cache",
            "Content-Length": 0,
          };
          return void response.writeHead(302, headers).end();
        }
        const page =
          asked.form === "feed"
            ? await ownerFeed(site(), sources, asked.pubkey)
            : ownerPage(site(), await factsOf(sources, asked.pubkey));
        sendDocument(request, response, page);
      },
    }),
  ];
}

async function factsOf({ store, directory, clock }: OwnerSources, pubkey: Pubkey): Promise<OwnerFacts> {
  const now = unixSeconds(clock);
  const all = sortEntries(await directory.all(), "activity", now);
  const maintained: DirectoryEntry[] = [];
  for (const entry of all) {
    if (maintained.length >= shownMaintained) break;
    if (entry.name.owner === pubkey || !entry.named.includes(pubkey)) continue;
    if ((await publicMaintainers(store, entry.name)).members.has(pubkey)) maintained.push(entry);
  }
  return {
    pubkey,
    profile: await profileOf(store, pubkey),
    owned: all.filter(({ name }) => name.owner === pubkey),
    maintained,
    people: await peopleOf(store, [pubkey, ...maintained.map(({ name }) => name.owner)]),
    perWeek: await weeksOf(store, pubkey, now),
  };
}

async function weeksOf(store: Store, pubkey: Pubkey, now: number): Promise<readonly number[] | undefined> {
  const since = now - weeks * weekSeconds;
  const found = await store.timedIds({ authors: [pubkey], kinds: deeds, since, until: now }, maxCounted);
  if (!found) return undefined;
  const counts = new Array<number>(weeks).fill(0);
  for (let at = 0; at < found.length; at++) {
    const week = Math.min(weeks - 1, Math.floor(((found.times[at] ?? 0) - since) / weekSeconds));
    counts[week] = (counts[week] ?? 0) + 1;
  }
  return counts;
}

function ownerPage(site: Site, facts: OwnerFacts): Document {
  const { pubkey, profile, owned, maintained, people, perWeek } = facts;
  const npub = npubOf(pubkey);
  const isKnown =
    profile.name !== undefined || owned.length > 0 || maintained.length > 0 || perWeek?.some((n) => n > 0) !== false;
  const name = profile.name ?? shortNpub(npub);
  const client = site.isPrivate ? undefined : `https://gitworkshop.dev/${npub}`;
  return pageDocument(site, {
    status: isKnown ? 200 : 404,
    title: `${name.slice(0, 100)} · ${site.name}`,
    isWide: true,
    feed: `${ownerPath(site, pubkey)}.atom`,
    listenFor: [{ kinds: deeds, authors: [pubkey] }],
    main: html`<h1>${foreign(name, 100)}</h1>
${profile.about !== undefined && html`<p class="lead">${foreign(profile.about, 1_000)}</p>`}
<dl class="facts short"><dt>Key</dt><dd class="key">${copyLine("Public key", npub)}</dd>
${profile.nip05 !== undefined && html`<dt>Says to be</dt><dd>${foreign(profile.nip05, 200)}</dd>`}
${profile.website !== undefined && html`<dt>Web</dt><dd>${foreignLink(profile.website, foreign(profile.website, 100))}</dd>`}
${profile.picture !== undefined && html`<dt>Picture</dt><dd>${foreignLink(profile.picture, "elsewhere")}</dd>`}
${client !== undefined && html`<dt>Open in</dt><dd><a href="${client}">gitworkshop.dev</a> or <a href="nostr:${npub}">a Nostr client</a></dd>`}
<dt>Feed</dt><dd><a href="${ownerPath(site, pubkey)}.atom">Atom</a></dd></dl>
<div id="theirs" data-live>${isKnown ? activityPicture(perWeek) : html`<p class="note">This server has nothing of this key.</p>`}
${section("owned", html`Repositories${owned.length > 0 && html` <span class="quiet">${count(owned.length)}</span>`}`)`${
  owned.length === 0
    ? html`<p class="quiet">None here.</p>`
    : [cardList(site, owned.slice(0, shownOwned), people), andMore(owned.length, shownOwned)]
}`}
${maintained.length > 0 && section("maintained", "Maintains")`${cardList(site, maintained, people)}`}</div>`,
  });
}

/** A bar for each week of the last year. */
export function activityPicture(perWeek: readonly number[] | undefined): Html {
  if (!perWeek) return html`<p class="quiet">More than ${count(maxCounted)} signed events in the last year.</p>`;
  const total = perWeek.reduce((sum, number) => sum + number, 0);
  const most = Math.max(1, ...perWeek);
  const said = `${counted(total, "signed event", "signed events")} in the last year, at most ${count(most)} in a week`;
  const bar = (number: number, index: number): Html => {
    // The square root: a week of hundreds must not make all others look empty.
    const height = number === 0 ? 1 : Math.max(3, Math.round(Math.sqrt(number / most) * 40));
    return html`<rect${number > 0 && html` class="up"`} x="${index * 6}" y="${40 - height}" width="5" height="${height}"></rect>`;
  };
  return html`<figure class="year"><svg class="spark" viewBox="0 0 ${weeks * 6 - 1} 40" preserveAspectRatio="none" role="img" aria-label="${said}">${perWeek.map(bar)}</svg><figcaption class="quiet small">${total === 0 ? "Nothing signed here in the last year." : `${said}.`}</figcaption></figure>`;
}
