import type { JsonObject } from '../../api/index.ts';
import type { ApiRequest } from './request.ts';
import { overTheWire } from './stored-object.ts';

/** Who a token stands for, as `status` of a TokenReview. */
export interface TokenVerdict extends JsonObject {
  readonly authenticated: boolean;
  readonly user?: {
    readonly username: string;
    readonly uid?: string;
    readonly groups?: readonly string[];
    readonly extra?: Readonly<Record<string, readonly string[]>>;
  };
  readonly audiences?: readonly string[];
  readonly error?: string;
}

/** As `status` of a SubjectAccessReview. */
export interface AccessVerdict extends JsonObject {
  readonly allowed: boolean;
  readonly denied?: boolean;
  readonly reason?: string;
  readonly evaluationError?: string;
}

export interface Reviewers {
  /** Nobody is known unless given. */
  readonly reviewToken?: ((spec: JsonObject) => TokenVerdict) | undefined;
  /** Nothing is allowed unless given. */
  readonly reviewAccess?: ((spec: JsonObject) => AccessVerdict) | undefined;
}

/** The answer to a review, which is stored nowhere; undefined when the request is none. */
export function reviewed(request: ApiRequest, body: unknown, reviewers: Reviewers): JsonObject | undefined {
  const verdict = verdictOn(request.resource.plural, overTheWire(body), reviewers);
  return verdict && { ...overTheWire(body), status: verdict };
}

function verdictOn(plural: string, review: JsonObject, reviewers: Reviewers): JsonObject | undefined {
  const spec = (review['spec'] ?? {}) as JsonObject;
  if (plural === 'tokenreviews') return reviewers.reviewToken?.(spec) ?? { authenticated: false };
  if (plural === 'subjectaccessreviews') return reviewers.reviewAccess?.(spec) ?? { allowed: false };
  return undefined;
}
