import { ask, chapter, create, patch, type Step } from '../step.ts';
import { configMap } from './objects.ts';

const all = '/api/v1/namespaces';
const gone = ({ code }: { readonly code: number }) => code === 404;

function making(): readonly Step[] {
  return [
    create(all, { metadata: { name: 'made', labels: { a: 'b' } } }, { keep: 'made' }),
    create(all, { metadata: { name: 'made' } }),
    create(all, { metadata: { name: 'Made' } }),
    create(all, { metadata: { name: 'a.b' } }),
    create(all, { metadata: { name: 'x'.repeat(64) } }),
    create(all, { metadata: { generateName: 'by-chance-' } }),
    create(`${all}?dryRun=All`, {
      metadata: { name: 'dry' },
      spec: { finalizers: ['example.org/x'] },
      status: { phase: 'Terminating' },
    }),
    create(all, { metadata: { name: 'wrong' }, spec: { finalizers: ['x'] } }),
    patch('merge', `${all}/made`, { metadata: { labels: { 'kubernetes.io/metadata.name': 'other' } } }),
    patch('merge', `${all}/made`, { spec: { finalizers: [] } }),
    patch('merge', `${all}/made`, { status: { phase: 'Terminating' } }),
    patch('merge', `${all}/made/status`, { status: { conditions: [{ type: 'X', status: 'True' }] } }),
    ask(`GET ${all}/made`),
    ask(`GET ${all}/made/configmaps/kube-root-ca.crt`, { until: ({ code }) => code === 200 }),
    ask(`GET ${all}/made/serviceaccounts/default`, { until: ({ code }) => code === 200 }),
    ...['default', 'kube-system', 'kube-public'].map((name) => ask(`DELETE ${all}/${name}`)),
    ask(`GET ${all}/kube-node-lease`),
    ask(`PUT ${all}/made/finalize`, {
      body: {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'made' },
        spec: { finalizers: ['kubernetes', 'example.org/x'] },
      },
    }),
    ask(`PUT ${all}/made/finalize`, {
      body: {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'made' },
        spec: { finalizers: ['kubernetes'] },
      },
    }),
    ask(`GET ${all}/made/finalize`),
  ];
}

function ending(): readonly Step[] {
  return [
    create(`${all}/made/configmaps`, configMap('goes')),
    create(`${all}/made/configmaps`, configMap('held', {}, { finalizers: ['example.org/x'] })),
    ask(`DELETE ${all}/not-there`),
    ask(`DELETE ${all}/made?dryRun=All`, { compare: phase }),
    ask(`DELETE ${all}/made`, {
      body: { kind: 'DeleteOptions', apiVersion: 'v1', preconditions: { uid: 'other' } },
    }),
    ask(`DELETE ${all}/made`, { compare: phase }),
    ask(`DELETE ${all}/made`, { compare: phase, what: 'again' }),
    create(`${all}/made/configmaps`, configMap('late')),
    create(`${all}/made/pods`, {
      metadata: { name: 'late' },
      spec: { containers: [{ name: 'c', image: 'a' }] },
    }),
    ask(`GET ${all}/made/configmaps/goes`, { until: gone }),
    ask(`GET ${all}/made`, {
      until: ({ body }) =>
        conditionsOf(body).some(
          ({ type, status }) => type === 'NamespaceFinalizersRemaining' && status === 'True',
        ),
      compare: (body) =>
        conditionsOf(body)
          .map(({ type, status, reason }) => ({ type, status, reason }))
          .toSorted((a, b) => String(a.type).localeCompare(String(b.type))),
      what: 'conditions report the remaining content',
    }),
    patch('merge', `${all}/made/configmaps/held`, { metadata: { finalizers: null } }),
    ask(`GET ${all}/made`, { until: gone, what: 'it is deleted without finalizers' }),
    create(all, { metadata: { name: 'made' } }, { what: 'and can be created again' }),
    ask(`DELETE ${all}/made`, { compare: phase }),
    ask(`GET ${all}/made`, { until: gone }),
  ];
}

interface Condition {
  readonly type?: string;
  readonly status?: string;
  readonly reason?: string;
}

function conditionsOf(body: unknown): readonly Condition[] {
  return (
    (body as { readonly status?: { readonly conditions?: readonly Condition[] } }).status?.conditions ?? []
  );
}

/** Reduces a namespace to its phase, because its conditions are added one by one. */
function phase(body: unknown): unknown {
  const { kind, status } = body as { readonly kind?: string; readonly status?: { readonly phase?: string } };
  return { kind, phase: status?.phase };
}

export const namespaces = chapter('namespaces', [...making(), ...ending()]);
