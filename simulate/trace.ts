// A line of a trace: enough to follow a run, not everything.

import type { Command, Input } from "../src/sync/core/messages.js";

export function brief(message: Input | Command): string {
  return JSON.stringify(message, (name, value) => {
    if (name === "event" && typeof value === "object")
      return `${value.kind}:${value.id.slice(0, 8)}@${value.created_at}`;
    if (value instanceof Map)
      return Object.fromEntries([...value].map(([tag, list]) => [`#${tag}`, (list as string[]).length]));
    if (Array.isArray(value) && value.length > 4) return `${value.length} values`;
    return value;
  }).slice(0, 240);
}
