import { isJsonObject, type JsonObject } from '../../api/index.ts';
import type { ResourceAttributes, SubjectAccessReviewSpec, TokenReviewSpec } from '../../kinds/index.ts';
import { apiTime } from '../../lib/index.ts';
import type { AccessAuthorizer, TokenIssuer } from '../api/auth-types.ts';
import {
  type AccessAttributes,
  type ApiCall,
  type ApiUser,
  badRequest,
  type FieldCause,
  invalidFields,
  type RequestAction,
  type ResourceStrategy,
  resourceAccess,
  type TokenCheckResult,
} from '../api/index.ts';
import { invalid } from '../validation/causes.ts';

/** Strategies of the virtual review resources. */

function actionStrategy(act: RequestAction): ResourceStrategy {
  return { handlers: { '': act } };
}

function bodyOf({ body }: ApiCall): JsonObject {
  return isJsonObject(body) ? body : {};
}

function specOf<T>(call: ApiCall): T {
  return (bodyOf(call)['spec'] ?? {}) as T;
}

/** The review object with its result. */
function reviewResponse(call: ApiCall, status: JsonObject, metadata: JsonObject = {}): JsonObject {
  const { group, version, kind } = call.entry.resource;
  const { spec } = bodyOf(call);
  return {
    kind,
    apiVersion: `${group}/${version}`,
    metadata,
    ...(spec === undefined ? {} : { spec }),
    status,
  };
}

export function tokenReviewStrategy(issuer: TokenIssuer): ResourceStrategy {
  return actionStrategy((call) => {
    const { token = '', audiences = [] } = specOf<TokenReviewSpec>(call);
    if (token === '') throw badRequest('token is required for TokenReview in authentication');
    return reviewResponse(call, statusOf(issuer.verify(token, audiences)));
  });
}

/** The status of a TokenReview for a rejected token has an empty user and the error. */
function statusOf(result: TokenCheckResult): JsonObject {
  if (result.authenticated) return result;
  return { user: {}, ...(result.error === undefined ? {} : { error: result.error }) };
}

export function selfSubjectReviewStrategy(): ResourceStrategy {
  return actionStrategy((call, { clock }) => {
    const { name, uid, groups, extra } = call.user;
    const userInfo = {
      username: name,
      ...(uid === undefined ? {} : { uid }),
      groups,
      ...(extra === undefined ? {} : { extra }),
    };
    const metadata = { creationTimestamp: apiTime(clock.now()) };
    const { spec: _, ...review } = reviewResponse(call, { userInfo }, metadata);
    return review;
  });
}

export function selfSubjectRulesReviewStrategy(authorizer: AccessAuthorizer): ResourceStrategy {
  return actionStrategy((call) => {
    const { namespace = '' } = specOf<{ readonly namespace?: string }>(call);
    if (namespace === '') throw badRequest('no namespace on request');
    return { ...reviewResponse(call, authorizer.rulesFor(call.user, namespace)), spec: {} };
  });
}

type Review = Omit<SubjectAccessReviewSpec, 'extra'> & { readonly extra?: ApiUser['extra'] };

export function selfSubjectAccessReviewStrategy(authorizer: AccessAuthorizer): ResourceStrategy {
  return actionStrategy((call) => {
    const spec = specOf<Review>(call);
    rejectIfInvalid(call, [...attributeCauses(spec), ...emptyMeta(call, [])]);
    return reviewResponse(call, authorizer.authorize(call.user, attributesOf(spec)));
  });
}

export function subjectAccessReviewStrategy(authorizer: AccessAuthorizer): ResourceStrategy {
  return actionStrategy((call) => {
    const spec = specOf<Review>(call);
    rejectIfInvalid(call, [...attributeCauses(spec), ...subjectCauses(spec), ...emptyMeta(call, [])]);
    return reviewResponse(call, authorizer.authorize(subjectOf(spec), attributesOf(spec)));
  });
}

export function localSubjectAccessReviewStrategy(authorizer: AccessAuthorizer): ResourceStrategy {
  return actionStrategy((call) => {
    const spec = specOf<Review>(call);
    rejectIfInvalid(call, [
      ...attributeCauses(spec),
      ...subjectCauses(spec),
      ...emptyMeta(call, ['namespace']),
      ...localCauses(spec, call.namespace ?? ''),
    ]);
    const metadata = { namespace: call.namespace };
    return reviewResponse(call, authorizer.authorize(subjectOf(spec), attributesOf(spec)), metadata);
  });
}

function rejectIfInvalid({ entry }: ApiCall, causes: readonly FieldCause[]): void {
  // kube-apiserver omits the kind in the Invalid error for a review.
  if (causes.length > 0) throw invalidFields({ kind: '', group: entry.resource.group, name: '' }, causes);
}

function attributeCauses({ resourceAttributes, nonResourceAttributes }: Review): readonly FieldCause[] {
  if (resourceAttributes !== undefined && nonResourceAttributes !== undefined)
    return [
      invalid(
        'spec.nonResourceAttributes',
        pathInGoFields(nonResourceAttributes),
        'cannot be specified in combination with resourceAttributes',
      ),
    ];
  if (resourceAttributes !== undefined || nonResourceAttributes !== undefined) return [];
  const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
  return [invalid('spec.resourceAttributes', null, detail)];
}

function pathInGoFields({ path = '', verb = '' }: NonNullable<Review['nonResourceAttributes']>) {
  return { Path: path, Verb: verb };
}

function subjectCauses({ user = '', groups = [] }: Review): readonly FieldCause[] {
  if (user !== '' || groups.length > 0) return [];
  return [invalid('spec.user', user, 'at least one of user or group must be specified')];
}

function emptyMeta(call: ApiCall, allowed: readonly string[]): readonly FieldCause[] {
  const { managedFields: _, ...meta } = (bodyOf(call)['metadata'] ?? {}) as JsonObject;
  const given = Object.entries(meta).filter(([name, value]) => value !== null && !allowed.includes(name));
  if (given.length === 0) return [];
  const detail = allowed.length === 0 ? 'must be empty' : `must be empty except for ${allowed.join(', ')}`;
  return [invalid('metadata', meta, detail)];
}

function localCauses(
  { resourceAttributes, nonResourceAttributes }: Review,
  namespace: string,
): readonly FieldCause[] {
  const asked = resourceAttributes?.namespace ?? '';
  return [
    ...(resourceAttributes !== undefined && asked !== namespace
      ? [invalid('spec.resourceAttributes.namespace', asked, 'must match metadata.namespace')]
      : []),
    ...(nonResourceAttributes === undefined
      ? []
      : [
          invalid(
            'spec.nonResourceAttributes',
            pathInGoFields(nonResourceAttributes),
            'disallowed on this kind of request',
          ),
        ]),
  ];
}

function subjectOf({ user = '', groups = [], uid, extra }: Review): ApiUser {
  return {
    name: user,
    groups,
    ...(uid === undefined ? {} : { uid }),
    ...(extra === undefined ? {} : { extra }),
  };
}

function attributesOf({ resourceAttributes, nonResourceAttributes }: Review): AccessAttributes {
  if (resourceAttributes !== undefined) return resourceOf(resourceAttributes);
  const { verb = '', path = '' } = nonResourceAttributes ?? {};
  return { to: 'path', verb, path };
}

function resourceOf(attributes: ResourceAttributes): AccessAttributes {
  const fieldSelector = selectorText(
    attributes.fieldSelector,
    ([key, values]) => `${key}=${values[0] ?? ''}`,
  );
  const labelSelector = selectorText(
    attributes.labelSelector,
    ([key, values]) => `${key} in (${values.join(',')})`,
  );
  return resourceAccess({ ...attributes, fieldSelector, labelSelector });
}

interface Selector {
  readonly rawSelector?: string | undefined;
  readonly requirements?:
    | readonly {
        readonly key: string;
        readonly operator: string;
        readonly values?: readonly string[] | undefined;
      }[]
    | undefined;
}

/**
 * The text of a field or label selector in an access review. Only `In` requirements limit the
 * requested access; ignoring other operators can only widen it.
 */
function selectorText(
  selector: Selector | undefined,
  describe: (requirement: readonly [key: string, values: readonly string[]]) => string,
): string | undefined {
  if (selector?.rawSelector !== undefined && selector.rawSelector !== '') return selector.rawSelector;
  const narrowing = (selector?.requirements ?? []).filter(({ operator }) => operator === 'In');
  return narrowing.length === 0
    ? undefined
    : narrowing.map(({ key, values = [] }) => describe([key, values])).join(',');
}
