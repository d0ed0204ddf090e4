import { ask, chapter, create, patch, type Step } from '../step.ts';
import { core, pod } from './objects.ts';

const accounts = `${core}/serviceaccounts`;
const tokenRequest = (spec: object = {}) => ({
  apiVersion: 'authentication.k8s.io/v1',
  kind: 'TokenRequest',
  spec,
});
const authorization = '/apis/authorization.k8s.io/v1';
const authentication = '/apis/authentication.k8s.io/v1';

function tokens(): readonly Step[] {
  const boundTo = (ref: object) => tokenRequest({ boundObjectRef: ref });
  return [
    create(accounts, { metadata: { name: 'robot' } }),
    create(`${core}/pods`, pod('p', { serviceAccountName: 'robot' }), { keep: 'p' }),
    create(`${core}/pods`, pod('other'), { keep: 'other' }),
    create(`${core}/secrets`, { metadata: { name: 's' } }, { keep: 's' }),
    create(`${accounts}/robot/token`, tokenRequest(), { keep: 't' }),
    create(`${accounts}/robot/token`, {}),
    create(`${accounts}/robot/token`, tokenRequest({ expirationSeconds: 599 })),
    create(`${accounts}/robot/token`, tokenRequest({ expirationSeconds: 600 })),
    create(`${accounts}/robot/token`, tokenRequest({ expirationSeconds: 2 ** 33 })),
    create(`${accounts}/robot/token`, tokenRequest({ audiences: ['a', 'b'] }), { keep: 'audience' }),
    create(
      `${accounts}/robot/token`,
      boundTo({ kind: 'Pod', apiVersion: 'v1', name: 'p', uid: '<p.metadata.uid>' }),
      { keep: 'bound' },
    ),
    create(`${accounts}/robot/token`, boundTo({ kind: 'Pod', apiVersion: 'v1', name: 'p' })),
    create(`${accounts}/robot/token`, boundTo({ kind: 'Pod', apiVersion: 'v1', name: 'p', uid: 'other' })),
    create(`${accounts}/robot/token`, boundTo({ kind: 'Pod', apiVersion: 'v1', name: 'not-there' })),
    create(`${accounts}/robot/token`, boundTo({ kind: 'Pod', apiVersion: 'v1', name: 'other' })),
    create(`${accounts}/robot/token`, boundTo({ kind: 'Secret', apiVersion: 'v1', name: 's' })),
    create(`${accounts}/robot/token`, boundTo({ kind: 'ConfigMap', apiVersion: 'v1', name: 's' })),
    create(`${accounts}/robot/token`, boundTo({ kind: 'Pod', apiVersion: 'v2', name: 'p' })),
    create(`${accounts}/robot/token`, boundTo({})),
    create(`${accounts}/robot/token?dryRun=All`, tokenRequest()),
    create(`${accounts}/not-there/token`, tokenRequest()),
    create(`${accounts}/robot/token`, { ...tokenRequest(), metadata: { name: 'other' } }),
  ];
}

function whoAmI(): readonly Step[] {
  const as = { token: '<t.status.token>' };
  const bound = { token: '<bound.status.token>' };
  const self = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const review = (spec: object) => ({ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec });
  return [
    create(`${authentication}/selfsubjectreviews`, self),
    create(`${authentication}/selfsubjectreviews`, self, { as, what: 'self review of an account' }),
    create(`${authentication}/selfsubjectreviews`, self, {
      as: bound,
      what: 'self review of a pod account',
    }),
    create(`${authentication}/selfsubjectreviews`, self, {
      as: { token: '<audience.status.token>' },
      what: 'a token with another audience',
    }),
    create(`${authentication}/selfsubjectreviews`, self, {
      as: 'nobody',
      what: 'self review of an anonymous caller',
    }),
    create(`${authentication}/tokenreviews`, review({ token: '<t.status.token>' })),
    create(`${authentication}/tokenreviews`, review({ token: '<bound.status.token>' }), {
      what: 'a review of a bound token',
    }),
    create(
      `${authentication}/tokenreviews`,
      review({ token: '<audience.status.token>', audiences: ['b', 'c'] }),
    ),
    create(`${authentication}/tokenreviews`, review({ token: '<audience.status.token>', audiences: ['c'] }), {
      what: 'a token review with another audience',
    }),
    create(`${authentication}/tokenreviews`, review({ token: 'nonsense' }), {
      what: 'a token review of an invalid token',
    }),
    create(`${authentication}/tokenreviews`, review({}), { what: 'a token review without a token' }),
    ...['pods', 'secrets', 'serviceaccounts'].flatMap((what) => [
      ask(`GET ${core}/${what}`, { as, what: `an account may not list ${what}` }),
      ask(`GET ${core}/${what}/x`, { as, what: `an account may not get ${what}` }),
    ]),
    ask('GET /api/v1/nodes', { as }),
    ask('GET /api/v1/nodes/n1', { as }),
    create(`${core}/pods`, pod('x'), { as, what: 'an account may not create pods' }),
    patch('merge', `${core}/pods/x`, {}, { as }),
    ask(`DELETE ${core}/pods/x`, { as }),
    ask(`DELETE ${core}/pods`, { as }),
    ask(`GET ${core}/pods/x/log`, { as }),
    create(`${core}/pods/x/eviction`, {}, { as }),
    ask('GET /api/v1/pods?watch=1', { as }),
    ask('GET /apis/coordination.k8s.io/v1/leases', { as }),
    ask('GET /api', { as, compare: () => '' }),
    ask('GET /healthz', { as }),
    ask('GET /metrics', { as, compare: (body) => body }),
    ask('GET /nothing', { as }),
  ];
}

function mayI(): readonly Step[] {
  const may = (kind: string, spec: object, more: object = {}) => ({
    apiVersion: 'authorization.k8s.io/v1',
    kind,
    spec,
    ...more,
  });
  const pods = { verb: 'get', resource: 'pods', namespace: '<ns>' };
  const all = `${authorization}/subjectaccessreviews`;
  const local = `${authorization}/namespaces/<ns>/localsubjectaccessreviews`;
  const reasons = (body: unknown) => {
    const { status = {}, ...rest } = body as { readonly status?: Readonly<Record<string, unknown>> };
    const { reason: _, ...told } = status;
    return { ...rest, status: told };
  };
  const given = { compare: reasons };
  return [
    create(
      `${authorization}/selfsubjectaccessreviews`,
      may('SelfSubjectAccessReview', { resourceAttributes: pods }),
      given,
    ),
    create(
      `${authorization}/selfsubjectaccessreviews`,
      may('SelfSubjectAccessReview', { resourceAttributes: pods }),
      { ...given, as: { token: '<t.status.token>' }, what: 'access review of pods for an account' },
    ),
    create(
      `${authorization}/selfsubjectaccessreviews`,
      may('SelfSubjectAccessReview', { nonResourceAttributes: { path: '/healthz', verb: 'get' } }),
      { ...given, as: { token: '<t.status.token>' }, what: 'access review of health for an account' },
    ),
    create(`${authorization}/selfsubjectaccessreviews`, may('SelfSubjectAccessReview', {}), given),
    create(
      `${authorization}/selfsubjectaccessreviews`,
      may('SelfSubjectAccessReview', { resourceAttributes: pods, nonResourceAttributes: { path: '/' } }),
      given,
    ),
    create(all, may('SubjectAccessReview', { user: 'x', resourceAttributes: pods }), given),
    create(
      all,
      may('SubjectAccessReview', { user: 'x', groups: ['system:masters'], resourceAttributes: pods }),
      given,
    ),
    create(
      all,
      may('SubjectAccessReview', {
        user: 'system:node:n1',
        groups: ['system:nodes'],
        resourceAttributes: { verb: 'get', resource: 'nodes', name: 'n1' },
      }),
      given,
    ),
    create(
      all,
      may('SubjectAccessReview', {
        user: 'system:node:n1',
        groups: ['system:nodes'],
        resourceAttributes: { verb: 'delete', resource: 'namespaces', name: 'x' },
      }),
      given,
    ),
    create(all, may('SubjectAccessReview', { resourceAttributes: pods }), given),
    create(all, may('SubjectAccessReview', { user: 'x' }), given),
    create(local, may('LocalSubjectAccessReview', { user: 'x', resourceAttributes: pods }), given),
    create(
      local,
      may('LocalSubjectAccessReview', { user: 'x', resourceAttributes: { ...pods, namespace: 'other' } }),
      given,
    ),
    create(
      local,
      may('LocalSubjectAccessReview', { user: 'x', nonResourceAttributes: { path: '/', verb: 'get' } }),
      given,
    ),
    create(`${authorization}/selfsubjectrulesreviews`, may('SelfSubjectRulesReview', { namespace: '<ns>' }), {
      compare: () => '',
    }),
    create(`${authorization}/selfsubjectrulesreviews`, may('SelfSubjectRulesReview', {}), {
      compare: () => '',
    }),
  ];
}

function ends(): readonly Step[] {
  const self = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' };
  const isRefused = ({ code }: { readonly code: number }) => code === 401;
  return [
    ask(`DELETE ${core}/pods/p`, { what: 'the pod of a token is deleted' }),
    create(`${authentication}/selfsubjectreviews`, self, {
      as: { token: '<bound.status.token>' },
      until: isRefused,
      what: 'its token becomes invalid',
    }),
    ask(`DELETE ${accounts}/robot`),
    create(`${authentication}/selfsubjectreviews`, self, {
      as: { token: '<t.status.token>' },
      until: isRefused,
      what: 'tokens become invalid with their account',
    }),
    ask(`DELETE ${accounts}/default`),
    ask(`GET ${accounts}/default`, {
      until: ({ code }) => code === 200,
      what: 'the default account is recreated',
    }),
  ];
}

export const access = chapter('access', [...tokens(), ...whoAmI(), ...mayI(), ...ends()]);
