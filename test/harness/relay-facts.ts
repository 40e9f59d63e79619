// What the test servers say about themselves.

import type { RelayFacts } from "../../src/http/nip11.js";

export const testFacts: RelayFacts = {
  name: "test relay",
  description: "A relay for tests",
  software: "https://example.com/holdfast",
  version: "0.0.0",
  supportedNips: [70, 1, 11],
  supportedGrasps: ["GRASP-01"],
  repoAcceptanceCriteria: "Everything.",
  retention: [{ time: null }],
  restrictedWrites: false,
  isPrivate: false,
};
