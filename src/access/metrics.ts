// How often somebody showed credentials over HTTP that opened nothing: a number that grows is somebody who guesses, or a token
// that ended and is still used. Asking without any is not counted: that is how git begins.

import { Counter, type Registry } from "prom-client";

const name = "ngit_http_credentials_refused_total";

export type CredentialRefused = (type: "signature" | "token", reason: "unknown" | "too-many" | "read-only") => void;

/** One counter for every door of the server. */
export function credentialsRefused(registry: Registry): CredentialRefused {
  const known = registry.getSingleMetric(name) as Counter<"type" | "reason"> | undefined;
  const counter =
    known ??
    new Counter({
      name,
      help: "Credentials shown over HTTP that opened nothing",
      labelNames: ["type", "reason"],
      registers: [registry],
    });
  return (type, reason) => counter.inc({ type, reason });
}
