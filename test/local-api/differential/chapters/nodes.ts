import { ask, chapter, create, hear, patch, type Step, watch } from '../step.ts';
import { boundPod, core, pod } from './objects.ts';

const as = 'node' as const;
const own = '/api/v1/nodes/n1';
const pods = `${core}/pods`;
const node = (name: string, metadata: object = {}, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name, ...metadata },
  ...more,
});

function joining(): readonly Step[] {
  const labels = { 'kubernetes.io/hostname': 'n1', 'kubernetes.io/os': 'linux' };
  const status = {
    capacity: { cpu: '2', memory: '4Gi', pods: '10' },
    allocatable: { cpu: '2', memory: '4Gi', pods: '10' },
  };
  return [
    ask(`GET ${own}`, { as }),
    create('/api/v1/nodes', node('n2'), { as, what: 'a node registers as another one' }),
    create('/api/v1/nodes', node('n1', { labels: { 'node-role.kubernetes.io/control-plane': '' } }), {
      as,
      what: 'a node gives itself a role',
    }),
    create('/api/v1/nodes', node('n1', { labels }, { status, spec: { unschedulable: true } }), {
      as,
      keep: 'n1',
      what: 'a node registers',
      compare: withoutTaints,
    }),
    create('/api/v1/nodes', node('n1', { labels }, { status }), { as, what: 'a node registers again' }),
    ask(`GET ${own}`, { as, compare: withoutTaints }),
    patch(
      'strategic',
      `${own}/status`,
      {
        status: {
          conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady' }],
          addresses: [
            { type: 'InternalIP', address: '10.0.0.1' },
            { type: 'Hostname', address: 'n1' },
          ],
        },
      },
      { as, what: 'a node updates its status', compare: withoutTaints },
    ),
    patch(
      'strategic',
      `${own}/status`,
      { status: { addresses: [{ $patch: 'replace' }, { type: 'InternalIP', address: '10.0.0.2' }] } },
      { as, what: 'a node changes its addresses', compare: withoutTaints },
    ),
    patch(
      'strategic',
      `${own}/status`,
      { spec: { podCIDR: '10.1.0.0/24' }, status: { phase: 'Running' } },
      { as, what: 'a status with a spec', compare: withoutTaints },
    ),
    patch(
      'merge',
      own,
      { metadata: { labels: { mine: 'yes' }, annotations: { a: 'b' } } },
      { as, what: 'an allowed label', compare: withoutTaints },
    ),
    patch(
      'merge',
      own,
      { metadata: { labels: { 'node-restriction.kubernetes.io/x': 'y' } } },
      { as, what: 'a protected label' },
    ),
    patch(
      'merge',
      own,
      { metadata: { labels: { 'foo.kubernetes.io/x': 'y' } } },
      { as, what: 'an unknown label' },
    ),
    patch(
      'merge',
      own,
      { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } },
      { as, what: 'a node taints itself' },
    ),
    patch(
      'merge',
      own,
      { spec: { unschedulable: false } },
      { as, what: 'a node is replaced', compare: withoutTaints },
    ),
    patch(
      'merge',
      own,
      { metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'x', uid: 'x' }] } },
      { as, what: 'a node gives itself an owner' },
    ),
    ask(`DELETE ${own}`, { as }),
    ask('GET /api/v1/nodes', { as }),
    ask('GET /api/v1/nodes?fieldSelector=metadata.name=n1', { as, compare: () => '' }),
    ask('GET /api/v1/nodes/n2', { as }),
    patch('merge', '/api/v1/nodes/n2', {}, { as }),
    patch('merge', '/api/v1/nodes/n2/status', {}, { as }),
  ];
}

/**
 * Removes the taints of a node, because the recorded server ran without the controller that removes
 * them.
 */
function withoutTaints(body: unknown): unknown {
  const { spec, status, ...rest } = body as { readonly spec?: object; readonly status?: object };
  const { taints: _, ...others } = { taints: [], ...spec };
  const { daemonEndpoints: __, nodeInfo: ___, ...told } = { daemonEndpoints: 0, nodeInfo: 0, ...status };
  return { ...rest, spec: others, status: told };
}

function adminNodes(): readonly Step[] {
  return [
    create(
      '/api/v1/nodes',
      node('n2', {}, { spec: { podCIDR: '10.2.0.0/24', podCIDRs: ['10.2.0.0/24'], providerID: 'x://1' } }),
      { compare: withoutTaints },
    ),
    patch('merge', '/api/v1/nodes/n2', { spec: { podCIDR: '10.3.0.0/24', podCIDRs: ['10.3.0.0/24'] } }),
    patch('merge', '/api/v1/nodes/n2', { spec: { providerID: 'x://2' } }),
    patch('strategic', '/api/v1/nodes/n2', { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }),
    patch('strategic', '/api/v1/nodes/n2', { spec: { taints: [{ key: 'a', effect: 'Sometimes' }] } }),
    patch('strategic', '/api/v1/nodes/n2', {
      spec: {
        taints: [
          { key: 'a', effect: 'NoSchedule' },
          { key: 'a', effect: 'NoSchedule' },
        ],
      },
    }),
    patch('merge', '/api/v1/nodes/n2/status', { status: { capacity: { cpu: '-1' } } }),
    ask('DELETE /api/v1/nodes/n2'),
  ];
}

function itsPods(): readonly Step[] {
  const mirror = (name: string, metadata: object = {}, spec: object = {}) =>
    boundPod(
      name,
      { nodeName: 'n1', automountServiceAccountToken: undefined, ...spec },
      {
        annotations: { 'kubernetes.io/config.mirror': 'hash' },
        ownerReferences: [
          { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: '<n1.metadata.uid>', controller: true },
        ],
        ...metadata,
      },
    );
  return [
    create(pods, mirror('mirror'), { as, what: 'a mirror pod' }),
    create(pods, mirror('elsewhere', {}, { nodeName: 'n2' }), { as, what: 'a mirror pod of another node' }),
    create(pods, mirror('owned', { ownerReferences: [] }), { as, what: 'a mirror pod without an owner' }),
    create(pods, mirror('secretive', {}, { volumes: [{ name: 's', secret: { secretName: 's' } }] }), {
      as,
      what: 'a mirror pod with a secret',
    }),
    create(pods, mirror('account', {}, { serviceAccountName: 'default' }), {
      as,
      what: 'a mirror pod with an account',
    }),
    create(pods, boundPod('plain', { nodeName: 'n1' }), { as, what: 'a pod without the mirror annotation' }),
    create(`${core}/secrets`, { metadata: { name: 'used' }, stringData: { a: 'b' } }),
    create(`${core}/secrets`, { metadata: { name: 'unused' } }),
    create(`${core}/configmaps`, { metadata: { name: 'used' } }),
    create(
      pods,
      boundPod('mine', {
        nodeName: 'n1',
        volumes: [
          { name: 's', secret: { secretName: 'used' } },
          { name: 'c', configMap: { name: 'used' } },
        ],
      }),
      { keep: 'mine' },
    ),
    create(pods, boundPod('theirs', { nodeName: 'n2' })),
    create(pods, pod('nobodys')),
    ask(`GET ${core}/secrets/used`, { as, until: ({ code }) => code === 200, what: 'a secret of its pod' }),
    ask(`GET ${core}/secrets/unused`, { as }),
    ask(`GET ${core}/secrets`, { as }),
    ask(`GET ${core}/secrets?fieldSelector=metadata.name=used`, { as }),
    ask(`GET ${core}/configmaps/used`, { as }),
    ask(`GET ${pods}/mine`, { as, compare: () => '' }),
    ask(`GET ${pods}/theirs`, { as, compare: (body) => body }),
    ask('GET /api/v1/pods', { as }),
    ask('GET /api/v1/pods?fieldSelector=spec.nodeName=n1', {
      as,
      compare: (body) => (body as { items?: readonly unknown[] }).items?.length,
    }),
    ask('GET /api/v1/pods?fieldSelector=spec.nodeName=n2', { as }),
    watch(
      'pods',
      '/api/v1/pods?watch=1&fieldSelector=spec.nodeName=n1,metadata.name=mine&resourceVersion=0',
      { as },
    ),
    hear('pods', 1),
    patch(
      'strategic',
      `${pods}/mine/status`,
      { metadata: { uid: '<mine.metadata.uid>' }, status: { phase: 'Running' } },
      { as, what: 'the status of its pod' },
    ),
    patch(
      'strategic',
      `${pods}/mine/status`,
      { metadata: { labels: { a: 'b' } } },
      { as, what: 'labels by the status' },
    ),
    patch(
      'strategic',
      `${pods}/theirs/status`,
      { status: { phase: 'Running' } },
      { as, what: 'the status of a pod of another node' },
    ),
    patch(
      'strategic',
      `${pods}/mine`,
      { metadata: { labels: { a: 'b' } } },
      { as, what: 'the labels of its pod' },
    ),
    ask(`DELETE ${pods}/theirs`, { as }),
    ask(`DELETE ${pods}/mine`, {
      as,
      body: {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        gracePeriodSeconds: 0,
        preconditions: { uid: 'other' },
      },
      what: 'another pod of that name',
    }),
    ask(`DELETE ${pods}/mine`, {
      as,
      body: {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        gracePeriodSeconds: 0,
        preconditions: { uid: '<mine.metadata.uid>' },
      },
      what: 'its pod has finished',
    }),
    hear('pods', 3),
  ];
}

function itsThings(): readonly Step[] {
  const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
  const lease = (name: string) => ({
    metadata: { name },
    spec: { holderIdentity: name, leaseDurationSeconds: 40, renewTime: '2024-01-01T00:00:00.000000Z' },
  });
  const csi = '/apis/storage.k8s.io/v1/csinodes';
  const csiNode = (name: string) => ({ metadata: { name }, spec: { drivers: [] } });
  return [
    create(leases, lease('n1'), { as, keep: 'lease' }),
    create(leases, lease('n2'), { as }),
    ask(`PUT ${leases}/n1`, { as, body: lease('n1'), what: 'a lease without a version' }),
    ask(`PUT ${leases}/n1`, {
      as,
      body: {
        metadata: { name: 'n1', resourceVersion: '<lease.metadata.resourceVersion>' },
        spec: { holderIdentity: 'n1', leaseDurationSeconds: 40, renewTime: '2024-01-01T00:00:10.000000Z' },
      },
      what: 'a lease is renewed',
    }),
    ask(`GET ${leases}/n1`, { as }),
    ask(`GET ${leases}/n2`, { as }),
    ask(`GET ${leases}`, { as }),
    create(csi, csiNode('n1'), { as, compare: () => '' }),
    create(csi, csiNode('n2'), { as }),
    ask(`GET ${csi}/n1`, { as, compare: () => '' }),
    ask('GET /api/v1/services', { as, compare: () => '' }),
    ask('GET /apis/node.k8s.io/v1/runtimeclasses', { as, compare: () => '' }),
    ask('GET /apis/storage.k8s.io/v1/csidrivers', { as, compare: () => '' }),
    ask('GET /api/v1/namespaces', { as }),
    ask(`GET ${core}/serviceaccounts`, { as }),
    ask('GET /api/v1/persistentvolumes/x', { as }),
    ask(`GET ${core}/persistentvolumeclaims/x`, { as }),
    create(
      `${core}/events`,
      {
        metadata: { name: 'e' },
        involvedObject: { kind: 'Pod', namespace: '<ns>', name: 'mine' },
        reason: 'R',
        message: 'm',
        type: 'Normal',
      },
      { as },
    ),
    create('/api/v1/namespaces', { metadata: { name: 'by-a-node' } }, { as }),
    create(
      '/apis/authentication.k8s.io/v1/tokenreviews',
      { spec: { token: 'x' } },
      { as, compare: () => '' },
    ),
    create(
      '/apis/authorization.k8s.io/v1/subjectaccessreviews',
      { spec: { user: 'x', resourceAttributes: { verb: 'get', resource: 'nodes', subresource: 'proxy' } } },
      { as, compare: () => '' },
    ),
    create(
      `${core}/serviceaccounts/default/token`,
      { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
      { as },
    ),
    ask('GET /healthz', { as }),
  ];
}

export const nodes = chapter('nodes', [...joining(), ...adminNodes(), ...itsPods(), ...itsThings()]);
