import assert from "node:assert/strict";
import { test } from "node:test";
import { faultOfAnswer } from "./s3-answers.js";

test("what an S3 server answers becomes one of four faults", () => {
  const cases: readonly (readonly [name: string, status: number | undefined, fault: string])[] = [
    ["NoSuchKey", 404, "absent"],
    ["NotFound", 404, "absent"],
    ["NoSuchBucket", 404, "unreachable"],
    ["XAdminUserNotFound", 404, "refused"],
    ["AccessDenied", 403, "refused"],
    ["SignatureDoesNotMatch", 403, "refused"],
    ["RequestTimeTooSkewed", 403, "refused"],
    ["SlowDown", 503, "unreachable"],
    ["InternalError", 500, "unreachable"],
    ["TooManyRequests", 429, "unreachable"],
    ["ECONNREFUSED", undefined, "unreachable"],
    ["TimeoutError", undefined, "unreachable"],
    ["CredentialsProviderError", undefined, "refused"],
    ["XMinioStorageFull", 507, "full"],
    ["QuotaExceeded", 403, "full"],
    ["EntityTooLarge", 400, "full"],
    ["PermanentRedirect", 301, "refused"],
  ];
  for (const [name, status, fault] of cases) assert.equal(faultOfAnswer({ name, status }), fault, name);
});
