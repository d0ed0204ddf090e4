import { isJsonObject, type JsonObject } from '../../api/index.ts';
import type { ResourceAttributes, SubjectAccessReviewSpec, TokenReviewSpec } from '../../kinds/index.ts';
import { apiTime } from '../../lib/index.ts';
import type { AccessJudge, TokenDesk } from '../api/auth-types.ts';
import {
  type AccessAttributes,
  type ActOn,
  type ApiCall,
  type ApiUser,
  badRequest,
  type FieldCause,
  invalidAs,
  type KindRules,
  resourceAccess,
  type TokenVerdict,
} from '../api/index.ts';
import { invalid } from '../validation/causes.ts';

/** Questions that are answered and kept nowhere: who is this, and may they do that. */

function answering(act: ActOn): KindRules {
  return { act: { '': act } };
}

function bodyOf({ body }: ApiCall): JsonObject {
  return isJsonObject(body) ? body : {};
}

function specOf<T>(call: ApiCall): T {
  return (bodyOf(call)['spec'] ?? {}) as T;
}

/** The question with the answer in it. */
function answered(call: ApiCall, status: JsonObject, metadata: JsonObject = {}): JsonObject {
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

export function tokenReviewRules(desk: TokenDesk): KindRules {
  return answering((call) => {
    const { token = '', audiences = [] } = specOf<TokenReviewSpec>(call);
    if (token === '') throw badRequest('token is required for TokenReview in authentication');
    return answered(call, statusOf(desk.verify(token, audiences)));
  });
}

/** Of somebody who is not known nothing is told but why. */
function statusOf(verdict: TokenVerdict): JsonObject {
  if (verdict.authenticated) return verdict;
  return { user: {}, ...(verdict.error === undefined ? {} : { error: verdict.error }) };
}

export function selfSubjectReviewRules(): KindRules {
  return answering((call, { clock }) => {
    const { name, uid, groups, extra } = call.user;
    const userInfo = {
      username: name,
      ...(uid === undefined ? {} : { uid }),
      groups,
      ...(extra === undefined ? {} : { extra }),
    };
    const metadata = { creationTimestamp: apiTime(clock.now()) };
    const { spec: _, ...review } = answered(call, { userInfo }, metadata);
    return review;
  });
}

export function selfSubjectRulesReviewRules(judge: AccessJudge): KindRules {
  return answering((call) => {
    const { namespace = '' } = specOf<{ readonly namespace?: string }>(call);
    if (namespace === '') throw badRequest('no namespace on request');
    return { ...answered(call, judge.rulesOf(call.user, namespace)), spec: {} };
  });
}

type Review = Omit<SubjectAccessReviewSpec, 'extra'> & { readonly extra?: ApiUser['extra'] };

export function selfSubjectAccessReviewRules(judge: AccessJudge): KindRules {
  return answering((call) => {
    const spec = specOf<Review>(call);
    refuse(call, [...attributeCauses(spec), ...emptyMeta(call, [])]);
    return answered(call, judge.judge(call.user, attributesOf(spec)));
  });
}

export function subjectAccessReviewRules(judge: AccessJudge): KindRules {
  return answering((call) => {
    const spec = specOf<Review>(call);
    refuse(call, [...attributeCauses(spec), ...subjectCauses(spec), ...emptyMeta(call, [])]);
    return answered(call, judge.judge(subjectOf(spec), attributesOf(spec)));
  });
}

export function localSubjectAccessReviewRules(judge: AccessJudge): KindRules {
  return answering((call) => {
    const spec = specOf<Review>(call);
    refuse(call, [
      ...attributeCauses(spec),
      ...subjectCauses(spec),
      ...emptyMeta(call, ['namespace']),
      ...localCauses(spec, call.namespace ?? ''),
    ]);
    const metadata = { namespace: call.namespace };
    return answered(call, judge.judge(subjectOf(spec), attributesOf(spec)), metadata);
  });
}

function refuse({ entry }: ApiCall, causes: readonly FieldCause[]): void {
  // The kind is left out there, and always was.
  if (causes.length > 0) throw invalidAs({ kind: '', group: entry.resource.group, name: '' }, causes);
}

function attributeCauses({ resourceAttributes, nonResourceAttributes }: Review): readonly FieldCause[] {
  if (resourceAttributes !== undefined && nonResourceAttributes !== undefined)
    return [
      invalid(
        'spec.nonResourceAttributes',
        pathAsTold(nonResourceAttributes),
        'cannot be specified in combination with resourceAttributes',
      ),
    ];
  if (resourceAttributes !== undefined || nonResourceAttributes !== undefined) return [];
  const detail = 'exactly one of nonResourceAttributes or resourceAttributes must be specified';
  return [invalid('spec.resourceAttributes', null, detail)];
}

function pathAsTold({ path = '', verb = '' }: NonNullable<Review['nonResourceAttributes']>) {
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
            pathAsTold(nonResourceAttributes),
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

/** Only what narrows by values is told; leaving something out asks for more, never for less. */
function selectorText(
  selector: Selector | undefined,
  told: (requirement: readonly [key: string, values: readonly string[]]) => string,
): string | undefined {
  if (selector?.rawSelector !== undefined && selector.rawSelector !== '') return selector.rawSelector;
  const narrowing = (selector?.requirements ?? []).filter(({ operator }) => operator === 'In');
  return narrowing.length === 0
    ? undefined
    : narrowing.map(({ key, values = [] }) => told([key, values])).join(',');
}
