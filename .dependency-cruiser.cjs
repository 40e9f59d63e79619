// Imports point one way only (docs/explanation/architecture.md). Each room may import what stands below it.
// `npm run lint` also plants a forbidden import and fails if it is not reported.
const floors = [
  ["cli"],
  ["backup", "import", "bench", "publish"],
  ["web", "http"],
  ["operator"],
  ["lfs"],
  ["relay", "hunt", "sync"],
  ["intake"],
  ["purgatory"],
  ["git"],
  ["admission", "access"],
  ["catalogue"],
  ["store"],
  ["net", "cluster", "packs"],
  ["config", "nostr"],
  ["base"],
];

// Files beside the rooms build the server out of them. Only the context is for rooms: for those that know the store.
const storesFloor = floors.findIndex((rooms) => rooms.includes("store"));
const filesAbove = (floor) => (floor < storesFloor ? "(?!context\\.ts)[^/]+\\.ts" : "[^/]+\\.ts");

const rules = floors.flatMap((rooms, floor) =>
  rooms.map((room) => {
    const above = floors.slice(0, floor).flat();
    const beside = rooms.filter((other) => other !== room);
    // web may use http (it hands pages to the server); other neighbours know nothing of each other.
    const forbidden = [...above, ...beside.filter((other) => !(room === "web" && other === "http"))];
    return {
      name: `${room}-imports-downwards-only`,
      severity: "error",
      from: { path: `^src/${room}/`, pathNot: "\\.test\\.ts$" },
      to: { path: `^src/(${filesAbove(floor)}|(${forbidden.join("|")})/)` },
    };
  }),
);

module.exports = {
  forbidden: [
    ...rules,
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    {
      name: "one-place-starts-processes",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/git/launcher-helper\\.ts$|\\.test\\.ts$" },
      to: { path: "^(node:)?child_process$" },
    },
    {
      name: "product-does-not-import-tests",
      severity: "error",
      from: { path: "^src/", pathNot: "\\.test\\.ts$|/testing/" },
      to: { path: "^(test|bench|simulate)/|/testing/|\\.test\\.ts$" },
    },
    {
      name: "product-uses-no-dev-packages",
      severity: "error",
      from: { path: "^src/", pathNot: "\\.test\\.ts$|/testing/" },
      to: { dependencyTypes: ["npm-dev", "npm-no-pkg", "npm-unknown"], dependencyTypesNot: ["type-only"] },
    },
  ],
  options: {
    tsConfig: { fileName: "tsconfig.json" },
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^dist/" },
  },
};
