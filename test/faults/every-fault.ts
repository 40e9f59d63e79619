// `npm test` kills a server at a few points; `npm run faults` and `.ci/run` run the same tests with every point.

/** All of them with HOLDFAST_FAULTS=all, otherwise the few. */
export const isEveryFault = process.env.HOLDFAST_FAULTS === "all";
