import type { JsonObject } from '../../../src/api/index.ts';
import {
  type AccessDecision,
  type ApiRequest,
  type TokenCheckResult,
  toWireObject,
} from '../../../src/local-api/api/index.ts';

export interface Reviewers {
  /** Decides token reviews; by default no token is authenticated. */
  readonly reviewToken?: ((spec: JsonObject) => TokenCheckResult) | undefined;
  /** Decides access reviews; by default no request is allowed. */
  readonly reviewAccess?: ((spec: JsonObject) => AccessDecision) | undefined;
}

/** The response to a token or access review, which is not stored; undefined for other requests. */
export function reviewed(request: ApiRequest, body: unknown, reviewers: Reviewers): JsonObject | undefined {
  const verdict = verdictOn(request.resource.plural, toWireObject(body), reviewers);
  return verdict && { ...toWireObject(body), status: verdict };
}

function verdictOn(plural: string, review: JsonObject, reviewers: Reviewers): JsonObject | undefined {
  const spec = (review['spec'] ?? {}) as JsonObject;
  if (plural === 'tokenreviews') return reviewers.reviewToken?.(spec) ?? { authenticated: false };
  if (plural === 'subjectaccessreviews') return reviewers.reviewAccess?.(spec) ?? { allowed: false };
  return undefined;
}
