import type { IncomingHttpHeaders } from 'node:http';
import type { Logger } from '../../lib/index.ts';
import { StatusError } from '../api/api-types.ts';
import { type ApiUser, resourceAccess } from '../api/index.ts';
import { forbidden } from '../api/status-errors.ts';
import type { RequestSecurity } from '../http/server-deps.ts';
import type { AccessAuthorizer } from '../kinds/index.ts';
import type { CredentialAuthenticator } from './authenticator.ts';
import { anonymousUser, authenticatedGroup } from './authenticator.ts';

export interface RequestSecurityDeps {
  readonly authenticator: CredentialAuthenticator;
  readonly authorizer: AccessAuthorizer;
  readonly log: Logger;
}

/**
 * Authenticates and authorizes requests for the HTTP server. The reason of a failed authentication
 * is only logged.
 */
export function createRequestSecurity({
  authenticator,
  authorizer,
  log,
}: RequestSecurityDeps): RequestSecurity {
  return {
    authenticate({ certificate, headers, address }) {
      const found = authenticator.authenticate({ certificate, headers });
      if (found.kind !== 'refused') return resolveImpersonation(found.user, headers, authorizer);
      log.v(2)?.info('Authentication failed', { source: address, why: found.why });
      throw unauthorized();
    },
    authorize(user, attributes) {
      const { allowed, reason } = authorizer.authorize(user, attributes);
      return { allowed, ...(reason === undefined ? {} : { reason }) };
    },
  };
}

function unauthorized(): StatusError {
  return new StatusError({ code: 401, reason: 'Unauthorized', message: 'Unauthorized' });
}

const extraPrefix = 'impersonate-extra-';
const accountPrefix = 'system:serviceaccount:';

/** The impersonated user, for example of `kubectl --as`. */
interface ImpersonatedUser {
  readonly name: string;
  readonly groups: readonly string[];
  readonly uid: string | undefined;
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/**
 * Returns the user of the request: the authenticated or the impersonated one. Throws a StatusError.
 */
function resolveImpersonation(
  user: ApiUser,
  headers: IncomingHttpHeaders,
  authorizer: AccessAuthorizer,
): ApiUser {
  const mask = impersonatedUserIn(headers);
  if (mask === undefined) return user;
  for (const [resource, name, group] of requiredPermissions(mask))
    check(user, { resource, name, group }, authorizer);
  const { name, uid, extra } = mask;
  return {
    name,
    groups: groupsOf(mask),
    ...(uid === undefined ? {} : { uid }),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

function impersonatedUserIn(headers: IncomingHttpHeaders): ImpersonatedUser | undefined {
  const name = textsOf(headers['impersonate-user'])[0] ?? '';
  const [uid] = textsOf(headers['impersonate-uid']);
  const groups = textsOf(headers['impersonate-group']);
  const extra = Object.fromEntries(
    Object.entries(headers)
      .filter(([header]) => header.startsWith(extraPrefix))
      .map(([header, value]) => [keyOf(header.slice(extraPrefix.length)), textsOf(value)]),
  );
  const hasMore = uid !== undefined || groups.length > 0 || Object.keys(extra).length > 0;
  if (name !== '') return { name, groups, uid, extra };
  if (!hasMore) return undefined;
  const message = 'requested to impersonate groups, a uid or extra values without impersonating a user';
  throw new StatusError({
    code: 500,
    reason: 'InternalError',
    message: `Internal error occurred: ${message}`,
  });
}

/** node:http joins repeated headers with commas, so group names cannot contain commas. */
function textsOf(value: string | readonly string[] | undefined): readonly string[] {
  const texts = typeof value === 'string' ? value.split(',') : (value ?? []);
  return texts.map((text) => text.trim()).filter((text) => text !== '');
}

function keyOf(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

const authentication = 'authentication.k8s.io';

function requiredPermissions({
  name,
  groups,
  uid,
  extra,
}: ImpersonatedUser): (readonly [resource: string, name: string, group: string])[] {
  const isAccount = name.startsWith(accountPrefix);
  return [
    isAccount ? ['serviceaccounts', name.split(':').at(-1) ?? '', ''] : ['users', name, ''],
    ...groups.map((group) => ['groups', group, ''] as const),
    ...(uid === undefined ? [] : [['uids', uid, authentication] as const]),
    ...Object.values(extra)
      .flat()
      .map((value) => ['userextras', value, authentication] as const),
  ];
}

function check(
  user: ApiUser,
  what: { readonly resource: string; readonly name: string; readonly group: string },
  authorizer: AccessAuthorizer,
): void {
  const decision = authorizer.authorize(
    user,
    resourceAccess({ ...what, verb: 'impersonate', version: 'v1' }),
  );
  if (decision.allowed) return;
  const { resource: plural, name, group } = what;
  const about = { resource: { group, plural, version: 'v1', kind: plural, scope: 'cluster' }, name } as const;
  const why = `cannot impersonate resource "${plural}" in API group "${group}" at the cluster scope`;
  throw forbidden(about, `User "${user.name}" ${why}`);
}

/**
 * An impersonated service account has the groups of service accounts unless the request names
 * groups. Every impersonated user except system:anonymous is in the group system:authenticated.
 */
function groupsOf({ name, groups }: ImpersonatedUser): readonly string[] {
  if (name === anonymousUser.name) return [...new Set([...groups, ...anonymousUser.groups])];
  const [, , namespace] = name.startsWith(accountPrefix) ? name.split(':') : [];
  const own =
    namespace === undefined || groups.length > 0
      ? groups
      : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`];
  return [...new Set([...own, authenticatedGroup])];
}
