// A signal that many wait on at the same time. Node takes more than ten listeners for a leak and prints a warning; here they
// are as many as there is work under way, and each stops listening when its work is done.

import { setMaxListeners } from "node:events";

export function sharedAbort(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
