// The status page of a server that follows relays of every health, with a day of history.

import { systemClock } from "../../src/base/clock.js";
import { hoursKept } from "../../src/catalogue/hours.js";
import { sendDocument } from "../../src/http/routes.js";
import { createHttpServer, trustedProxies } from "../../src/http/server.js";
import { hourOf } from "../../src/operator/busy-hours.js";
import { assetRoutes } from "../../src/web/assets.js";
import { busySection } from "../../src/web/charts.js";
import { RelayHistory, samplesKept } from "../../src/web/relay-history.js";
import { type RelayStatus, type StatusFacts, statusPage } from "../../src/web/status-page.js";

const site = {
  name: "harbour.example",
  basePath: "",
  httpUrl: "https://harbour.example",
  relayUrl: "wss://harbour.example",
  version: "1.0.0",
  isPrivate: false,
};

const relay = (url: string, health: RelayStatus["health"], isConnected: boolean, gapEvents = 0): RelayStatus => ({
  url,
  health,
  isConnected,
  gapEvents,
  lastEvent: isConnected ? Math.floor(Date.now() / 1000) - 4_000 : null,
  compared: { repositories: 12, clean: isConnected ? 12 : 9, oldest: Math.floor(Date.now() / 1000) - 50_000 },
});

const relays = [
  relay("wss://relay.example.com", "healthy", true, 3),
  relay("wss://grasp.example.org/base", "degraded", true, 1_204),
  relay("wss://a-rather-long-name-of-a-relay.somewhere.example.net", "dead", false),
  relay("wss://busy.example.com", "rate-limited", true),
];

const hour = hourOf(Date.now());
/** Busy by day and on weekdays, with an hour in which no server ran. */
const hours = Array.from({ length: hoursKept }, (_, index) => {
  const at = hour - hoursKept + 1 + index;
  const busy =
    Math.max(0, Math.sin(((at % 24) / 24) * 2 * Math.PI - 1.5) + 0.6) * (Math.floor(at / 24) % 7 < 5 ? 1 : 0.4);
  return {
    hour: at,
    events: Math.round(busy * 340),
    pushes: Math.round(busy * 12),
    refusals: index % 97 === 5 ? 400 : Math.round(busy * 9),
    diskPercent: 40 + index / 60,
    arrivals: Math.round(busy * 200),
    lagSeconds: Math.round(busy * 200) * (0.4 + (index % 13) / 9),
  };
}).filter((_, index) => index !== hoursKept - 9);

const facts: StatusFacts = {
  relays,
  huntingQueue: 12,
  outbox: { participants: 240, relays: 31, connected: 28, incomplete: 2 },
  machines: { all: 3, alive: 2, behind: 4 },
  waiting: { waitingAnnouncements: 4, softAnnouncements: 17, entries: 63 },
  repositories: 1_284,
  refsBehind: 2,
  events: 402_118,
  busy: busySection(hours, hour),
  startedSeconds: Math.floor(Date.now() / 1000) - 400_000,
  versions: { holdfast: "1.0.0", git: "2.47.1", node: "20.20.2" },
};

export async function serveStatus(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const history = new RelayHistory();
  for (let look = 0; look < samplesKept - 6; look++) {
    history.look(relays.map((one, index) => ({ ...one, isConnected: one.isConnected && (look * 7 + index) % 11 > 0 })));
  }
  const server = createHttpServer({
    routes: [
      ...assetRoutes(),
      {
        matches: ({ localPath }) => localPath === "/status",
        handle: (request, response) =>
          sendDocument(
            request,
            response,
            statusPage(site, facts, (url) => history.of(url)),
          ),
      },
    ],
    basePath: "",
    trustedProxies: () => trustedProxies([]).list,
    clock: systemClock,
    onFault: (error) => {
      throw error;
    },
  });
  const { port } = await server.listen({ host: "127.0.0.1", port: 0 });
  return { url: `http://127.0.0.1:${port}/status`, close: () => server.close(500) };
}
