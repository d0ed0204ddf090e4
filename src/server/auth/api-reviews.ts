import { type ApiClient, type ApiObject, apiResources, apiVersionOf } from '../../api/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { User } from './identity.ts';
import type { AccessReviewer, AccessReviewResult, TokenReviewer, TokenReviewResult } from './reviews.ts';

interface WireUser {
  readonly username?: string;
  readonly uid?: string;
  readonly groups?: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

interface TokenReview extends ApiObject {
  readonly status?: { readonly authenticated?: boolean; readonly user?: WireUser; readonly error?: string };
}

interface SubjectAccessReview extends ApiObject {
  readonly status?: { readonly allowed?: boolean; readonly denied?: boolean; readonly reason?: string };
}

/** Posts TokenReviews and SubjectAccessReviews to the API server. */
export function apiReviews(api: Pick<ApiClient, 'create'>): TokenReviewer & AccessReviewer {
  return {
    async tokenReview(token, signal): Promise<TokenReviewResult> {
      const review = await post<TokenReview>(api, apiResources.tokenReviews, { token }, signal);
      const { authenticated = false, user, error } = statusOf(review, 'a token');
      return { authenticated, user: user === undefined ? undefined : userOf(user), error };
    },
    async subjectAccessReview({ user, verb, subresource, name }, signal): Promise<AccessReviewResult> {
      const spec = {
        resourceAttributes: { group: '', version: 'v1', resource: 'nodes', verb, subresource, name },
        user: user.name,
        uid: user.uid,
        groups: user.groups,
        extra: user.extra,
      };
      const review = await post<SubjectAccessReview>(api, apiResources.subjectAccessReviews, spec, signal);
      const { allowed = false, denied = false, reason } = statusOf(review, 'the permissions of a user');
      return { allowed, denied, reason };
    },
  };
}

type ReviewResource = typeof apiResources.tokenReviews | typeof apiResources.subjectAccessReviews;

function post<T extends ApiObject>(
  api: Pick<ApiClient, 'create'>,
  resource: ReviewResource,
  spec: unknown,
  signal: AbortSignal,
): Promise<T> {
  const question = { apiVersion: apiVersionOf(resource), kind: resource.kind, metadata: {}, spec };
  return api.create<T>({ resource }, question, signal);
}

function statusOf<S>({ status }: { readonly status?: S }, of: string): S {
  if (status !== undefined) return status;
  throw new KubelingError(
    'API_BAD_ANSWER',
    `Cannot use the API server's response on ${of}: it has no status`,
  );
}

function userOf({ username = '', uid, groups = [], extra }: WireUser): User {
  return { name: username, uid, groups, extra };
}
