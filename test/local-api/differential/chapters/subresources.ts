import { ask, chapter, create, patch, type Step } from '../step.ts';
import { boundPod, core, pod } from './objects.ts';

const pods = `${core}/pods`;
const binding = (name: string, target: object, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Binding',
  metadata: { name, ...metadata },
  target,
});
const node = { kind: 'Node', name: 'nowhere' };

function bindings(): readonly Step[] {
  return [
    create(pods, pod('b'), { keep: 'b' }),
    create(`${pods}/b/binding`, binding('b', {})),
    create(`${pods}/b/binding`, binding('b', { kind: 'Pod', name: 'x' })),
    create(`${pods}/b/binding`, binding('other', node)),
    create(`${pods}/b/binding`, binding('b', node, { uid: 'other' })),
    create(`${pods}/b/binding?dryRun=All`, binding('b', node)),
    create(
      `${pods}/b/binding`,
      binding('b', node, { uid: '<b.metadata.uid>', labels: { l: 'm' }, annotations: { a: 'n' } }),
    ),
    ask(`GET ${pods}/b`),
    create(`${pods}/b/binding`, binding('b', node), { what: 'bound again' }),
    create(`${pods}/not-there/binding`, binding('not-there', node)),
    create(pods, pod('legacy')),
    create(`${core}/bindings`, binding('legacy', node), { what: 'by the older path' }),
    ask(`GET ${pods}/legacy`),
    create(`${core}/bindings`, binding('legacy', node), { what: 'by the older path, again' }),
    create(`${core}/bindings`, binding('not-there', node), { what: 'by the older path, of nothing' }),
    ask(`GET ${core}/bindings`),
    create(pods, pod('gated', { schedulingGates: [{ name: 'example.org/g' }] })),
    create(`${pods}/gated/binding`, binding('gated', node)),
    patch('json', `${pods}/gated`, [{ op: 'remove', path: '/spec/schedulingGates' }]),
    create(`${pods}/gated/binding`, binding('gated', node), { what: 'bound when the gates are removed' }),
    create(pods, pod('held', {}, { finalizers: ['example.org/f'] })),
    ask(`DELETE ${pods}/held`),
    create(`${pods}/held/binding`, binding('held', node), { what: 'a pod that is being deleted' }),
    patch('merge', `${pods}/held`, { metadata: { finalizers: null } }),
  ];
}

function evictions(): readonly Step[] {
  const eviction = (name: string, more: object = {}) => ({
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name },
    ...more,
  });
  return [
    create(pods, boundPod('e'), { keep: 'e' }),
    create(`${pods}/e/eviction`, eviction('other')),
    create(`${pods}/e/eviction`, eviction('e', { deleteOptions: { dryRun: ['All'] } })),
    create(`${pods}/e/eviction?dryRun=All`, eviction('e')),
    create(`${pods}/e/eviction`, eviction('e', { deleteOptions: { preconditions: { uid: 'other' } } })),
    create(`${pods}/e/eviction`, eviction('e')),
    ask(`GET ${pods}/e`),
    create(`${pods}/e/eviction`, eviction('e'), { what: 'evicted again' }),
    create(`${pods}/not-there/eviction`, eviction('not-there')),
    create(pods, boundPod('old')),
    create(`${pods}/old/eviction`, { ...eviction('old'), apiVersion: 'policy/v1beta1' }),
    create(pods, boundPod('wrong')),
    create(`${pods}/wrong/eviction`, { ...eviction('wrong'), apiVersion: 'v1', kind: 'Pod' }),
    create(pods, boundPod('done', { restartPolicy: 'Never' })),
    patch('merge', `${pods}/done/status`, { status: { phase: 'Succeeded' } }),
    create(`${pods}/done/eviction`, eviction('done')),
    ask(`GET ${pods}/done`),
    create(`${pods}/wrong/eviction`, eviction('wrong', { deleteOptions: { gracePeriodSeconds: 0 } })),
    ask(`GET ${pods}/wrong`),
  ];
}

function containers(): readonly Step[] {
  const at = `${pods}/c`;
  const debug = (more: object = {}) => ({
    spec: { ephemeralContainers: [{ name: 'd', image: 'example.org/d:1', ...more }] },
  });
  const spec = {
    containers: [
      {
        name: 'c',
        image: 'example.org/a:1',
        resources: { requests: { cpu: '100m' }, limits: { cpu: '200m' } },
      },
    ],
  };
  return [
    create(pods, boundPod('c', spec)),
    patch('strategic', `${at}/ephemeralcontainers`, debug({ ports: [{ containerPort: 1 }] })),
    patch('strategic', `${at}/ephemeralcontainers`, debug({ targetContainerName: 'not-there' })),
    patch('strategic', `${at}/ephemeralcontainers`, debug({ name: 'c' })),
    patch('strategic', `${at}/ephemeralcontainers`, debug({ targetContainerName: 'c' })),
    patch('strategic', `${at}/ephemeralcontainers`, debug({ image: 'example.org/d:2' })),
    patch('json', `${at}/ephemeralcontainers`, [{ op: 'remove', path: '/spec/ephemeralContainers/0' }]),
    patch('strategic', `${at}/ephemeralcontainers`, {
      metadata: { labels: { not: 'taken' } },
      spec: { nodeName: 'x' },
    }),
    patch('strategic', at, debug({ name: 'e' }), { what: 'not by a patch of the pod' }),
    ask(`GET ${at}/ephemeralcontainers`),
    patch('strategic', `${pods}/not-there/ephemeralcontainers`, debug()),
    patch('strategic', `${at}/resize`, {
      spec: { containers: [{ name: 'c', resources: { requests: { cpu: '150m' } } }] },
    }),
    patch('strategic', `${at}/resize`, { spec: { containers: [{ name: 'c', image: 'x' }] } }),
    patch('strategic', `${at}/resize`, {
      spec: { containers: [{ name: 'c', resources: { requests: { cpu: '300m' } } }] },
    }),
    patch('strategic', `${at}/resize`, {
      spec: { containers: [{ name: 'c', resources: { limits: { 'example.org/x': '1' } } }] },
    }),
    patch('json', `${at}/resize`, [{ op: 'remove', path: '/spec/containers/0/resources/requests' }]),
    patch('json', `${at}/resize`, [{ op: 'remove', path: '/spec/containers/0/resources' }]),
    ask(`GET ${at}/resize`),
    patch('merge', `${pods}/not-there/resize`, {}),
  ];
}

function others(): readonly Step[] {
  const status = boundPod('st');
  return [
    ask(`GET ${pods}/c/scale`),
    patch('merge', `${pods}/c/scale`, {}),
    create(pods, status, { keep: 'st' }),
    ask(`PUT ${pods}/st/status`, {
      body: {
        ...status,
        status: {
          phase: 'Running',
          conditions: [{ type: 'Ready', status: 'True' }],
          startTime: '2024-01-02T03:04:05Z',
        },
      },
    }),
    ask(`PUT ${pods}/st/status`, {
      body: boundPod('st', { nodeName: 'other' }, { labels: { by: 'status' } }),
      what: 'a status without one',
    }),
    ask(`PUT ${pods}/st/status`, {
      body: boundPod('st', {}, { resourceVersion: '1' }),
      what: 'a status of an old version',
    }),
    ask(`PUT ${pods}/not-there/status`, { body: boundPod('not-there') }),
    ask(`GET ${pods}/st/status`),
    ask(`PUT ${pods}/st`, {
      body: boundPod('st', {}, { labels: { l: 'm' } }),
      what: 'an update of all but the status',
    }),
    ask(`GET ${pods}/c/log`),
    ask(`GET ${pods}/not-there/log`),
    ask(`GET ${pods}/gated/log?container=x`),
    ask(`GET ${pods}/c/log?tailLines=-1`),
    ask(`GET ${pods}/c/log?sinceSeconds=1&sinceTime=2024-01-01T00:00:00Z`),
    ask(`GET ${pods}/c/log?limitBytes=0`),
    ask(`POST ${pods}/c/exec`),
    ask(`POST ${pods}/not-there/exec?command=x&container=c&stdout=true`),
    ask(`DELETE ${pods}/c/status`),
    ask(`POST ${pods}/c/status`, { body: {} }),
  ];
}

export const subresources = chapter('subresources', [
  ...bindings(),
  ...evictions(),
  ...containers(),
  ...others(),
]);
