import { nodeNameOfUser } from '../api/api-types.ts';
import type { AccessDecision, ApiUser, ObjectReader, PathAccess, ResourceAccess } from '../api/index.ts';
import type { AccessAuthorizer, AccessRules } from '../kinds/index.ts';
import { authorizeNodeRequest } from '../node-access/node-authorizer.ts';
import { authenticatedGroup } from './authenticator.ts';
import { clusterScopedRules, type Grant, type PathRule, type ResourceRule, roleRules } from './roles.ts';

export interface AuthorizerDeps {
  readonly objects: Pick<ObjectReader, 'get' | 'all'>;
  /** Roles of service accounts. */
  readonly grants?: readonly Grant[] | undefined;
}

const mastersGroup = 'system:masters';
const everything: AccessRules = {
  resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
  nonResourceRules: [{ verbs: ['*'], nonResourceURLs: ['*'] }],
  incomplete: false,
};

/** Paths that unauthenticated clients may read. */
const publicPaths = ['/healthz', '/livez', '/readyz', '/version', '/version/'];
/** Paths that authenticated users may read: discovery and token issuer documents. */
const authenticatedPaths = [
  ...publicPaths,
  '/api',
  '/api/*',
  '/apis',
  '/apis/*',
  '/openapi',
  '/openapi/*',
  '/.well-known/openid-configuration',
  '/openid/v1/jwks',
  '/openid/v1/jwks/',
];
const selfReviewRules: readonly ResourceRule[] = [
  {
    verbs: ['create'],
    apiGroups: ['authorization.k8s.io'],
    resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
  },
  { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
];

/** An authorizer that denies every request that no rule allows. */
export function createAuthorizer({ objects, grants = [] }: AuthorizerDeps): AccessAuthorizer {
  return {
    authorize(user, attributes) {
      if (user.groups.includes(mastersGroup)) return { allowed: true };
      if (attributes.to === 'path') return decision(isPathAllowed(pathRules(user), attributes));
      const isOwn = selfReviewRules.some((rule) => ruleMatches(rule, attributes)) && isAuthenticated(user);
      if (
        isOwn ||
        resourceRules(user, grants, attributes.namespace).some((rule) => ruleMatches(rule, attributes))
      )
        return { allowed: true };
      const node = nodeNameOfUser(user);
      return node === undefined ? { allowed: false } : nodeDecision(node, attributes, objects);
    },
    rulesFor(user, namespace) {
      if (user.groups.includes(mastersGroup)) return everything;
      const own = isAuthenticated(user) ? selfReviewRules : [];
      return {
        resourceRules: [...own, ...resourceRules(user, grants, namespace)],
        nonResourceRules: pathRules(user),
        // The permissions of a node depend on its pods, which rules cannot express.
        incomplete: nodeNameOfUser(user) !== undefined,
      };
    },
  };
}

function decision(allowed: boolean): AccessDecision {
  return { allowed };
}

function isAuthenticated({ groups }: ApiUser): boolean {
  return groups.includes(authenticatedGroup);
}

function nodeDecision(
  node: string,
  access: ResourceAccess,
  objects: AuthorizerDeps['objects'],
): AccessDecision {
  const { verb, group, resource, subresource, namespace, name, fieldSelector } = access;
  const decision = authorizeNodeRequest(
    node,
    {
      verb,
      resource: { group, plural: resource },
      subresource: subresource || undefined,
      namespace: namespace || undefined,
      name: name || undefined,
      fieldSelector,
    },
    objects,
  );
  if (decision.may === 'yes') return { allowed: true };
  return decision.why === '' ? { allowed: false } : { allowed: false, reason: decision.why };
}

function pathRules(user: ApiUser): readonly PathRule[] {
  return [{ verbs: ['get'], nonResourceURLs: isAuthenticated(user) ? authenticatedPaths : publicPaths }];
}

function isPathAllowed(rules: readonly PathRule[], { verb, path }: PathAccess): boolean {
  const isBelow = (pattern: string) =>
    pattern.endsWith('*') ? path.startsWith(pattern.slice(0, -1)) : path === pattern;
  // A rule that allows GET also allows HEAD.
  const requestedVerb = verb === 'head' ? 'get' : verb;
  return rules.some(
    ({ verbs, nonResourceURLs }) => verbs.includes(requestedVerb) && nonResourceURLs.some(isBelow),
  );
}

/** A role in a namespace grants nothing for requests across namespaces. */
function resourceRules(user: ApiUser, grants: readonly Grant[], namespace: string): readonly ResourceRule[] {
  const granted = grants.filter(({ to }) => to === user.name || user.groups.includes(to));
  return granted
    .filter((grant) => grant.namespace === undefined || grant.namespace === namespace)
    .flatMap((grant) => [
      ...roleRules[grant.role],
      ...(grant.namespace === undefined ? clusterScopedRules : []),
    ]);
}

function ruleMatches({ verbs, apiGroups, resources }: ResourceRule, access: ResourceAccess): boolean {
  const target = access.subresource === '' ? access.resource : `${access.resource}/${access.subresource}`;
  return verbs.includes(access.verb) && apiGroups.includes(access.group) && resources.includes(target);
}
