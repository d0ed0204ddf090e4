import { ask, chapter, create, patch, type Step } from '../step.ts';
import { boundPod, configMap, core, pod } from './objects.ts';

const accept =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json';

function things(): readonly Step[] {
  const status = (name: string, body: object) =>
    patch('merge', `${core}/pods/${name}/status`, { status: body });
  const running = {
    name: 'c',
    ready: true,
    started: true,
    restartCount: 2,
    image: 'a',
    imageID: 'b',
    state: { running: { startedAt: '2024-01-01T00:00:00Z' } },
  };
  return [
    create(`${core}/configmaps`, configMap('cm', { a: '1', b: '2' })),
    create(`${core}/secrets`, { metadata: { name: 's' }, stringData: { a: 'b' } }),
    create(`${core}/services`, {
      metadata: { name: 'plain' },
      spec: {
        ports: [
          { port: 80, name: 'a' },
          { port: 53, protocol: 'UDP', name: 'b' },
        ],
        selector: { a: 'b', c: 'd' },
      },
    }),
    create(`${core}/services`, {
      metadata: { name: 'headless' },
      spec: { clusterIP: 'None', ports: [{ port: 80 }] },
    }),
    create(`${core}/services`, {
      metadata: { name: 'external' },
      spec: { type: 'ExternalName', externalName: 'example.org' },
    }),
    create(`${core}/endpoints`, {
      metadata: { name: 'ep' },
      subsets: [
        {
          addresses: ['10.1.0.1', '10.1.0.2', '10.1.0.3', '10.1.0.4'].map((ip) => ({ ip })),
          ports: [{ port: 80 }],
        },
      ],
    }),
    create(`${core}/pods`, pod('waits')),
    create(`${core}/pods`, pod('gated', { schedulingGates: [{ name: 'example.org/g' }] })),
    create(`${core}/pods`, boundPod('runs')),
    status('runs', {
      phase: 'Running',
      podIP: '10.1.0.5',
      podIPs: [{ ip: '10.1.0.5' }],
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [running],
    }),
    create(`${core}/pods`, boundPod('crashes')),
    status('crashes', {
      phase: 'Running',
      containerStatuses: [{ ...running, ready: false, state: { waiting: { reason: 'CrashLoopBackOff' } } }],
    }),
    create(`${core}/pods`, boundPod('starts', { initContainers: [{ name: 'i', image: 'a' }] })),
    status('starts', {
      phase: 'Pending',
      initContainerStatuses: [{ ...running, name: 'i', ready: false, restartCount: 0 }],
    }),
    create(`${core}/pods`, boundPod('done', { restartPolicy: 'Never' })),
    status('done', {
      phase: 'Succeeded',
      containerStatuses: [
        { ...running, ready: false, state: { terminated: { exitCode: 0, reason: 'Completed' } } },
      ],
    }),
    create(`${core}/pods`, boundPod('ends')),
    ask(`DELETE ${core}/pods/ends`),
    create(`${core}/events`, {
      metadata: { name: 'e' },
      involvedObject: { kind: 'Pod', namespace: '<ns>', name: 'runs' },
      reason: 'R',
      message: 'm',
      type: 'Normal',
      count: 3,
      source: { component: 'kubelet', host: 'n' },
    }),
    create(`${core}/persistentvolumeclaims`, {
      metadata: { name: 'pvc' },
      spec: {
        storageClassName: 'tables',
        accessModes: ['ReadWriteOnce', 'ReadOnlyMany'],
        resources: { requests: { storage: '1Gi' } },
      },
    }),
    create('/api/v1/persistentvolumes', {
      metadata: { name: 'tables' },
      spec: {
        storageClassName: 'tables-other',
        capacity: { storage: '2Gi' },
        accessModes: ['ReadWriteMany'],
        hostPath: { path: '/tmp/x' },
      },
    }),
    create('/apis/coordination.k8s.io/v1/namespaces/<ns>/leases', {
      metadata: { name: 'l' },
      spec: { holderIdentity: 'me' },
    }),
    create('/apis/storage.k8s.io/v1/storageclasses', {
      metadata: { name: 'tables' },
      provisioner: 'example.org/p',
    }),
    create('/apis/storage.k8s.io/v1/csidrivers', { metadata: { name: 'tables.example.org' }, spec: {} }),
    create('/apis/storage.k8s.io/v1/csinodes', {
      metadata: { name: 'tables' },
      spec: { drivers: [{ name: 'd', nodeID: 'n' }] },
    }),
    create('/apis/node.k8s.io/v1/runtimeclasses', { metadata: { name: 'tables' }, handler: 'h' }),
    create('/apis/scheduling.k8s.io/v1/priorityclasses', { metadata: { name: 'tables' }, value: 5 }),
    create(`${core}/resourcequotas`, { metadata: { name: 'q' }, spec: { hard: { pods: '100' } } }),
    create(`${core}/limitranges`, {
      metadata: { name: 'lr' },
      spec: { limits: [{ type: 'Pod', max: { cpu: '1' } }] },
    }),
    create('/apis/policy/v1/namespaces/<ns>/poddisruptionbudgets', {
      metadata: { name: 'pdb' },
      spec: { minAvailable: 1, selector: { matchLabels: { a: 'b' } } },
    }),
  ];
}

function shown(): readonly Step[] {
  const rows = [
    ...[
      'configmaps/cm',
      'secrets/s',
      'services',
      'endpoints/ep',
      'pods',
      'pods/runs',
      'events/e',
      'serviceaccounts',
      'persistentvolumeclaims',
      'limitranges/lr',
    ].map((each) => `${core}/${each}`),
    '/api/v1/persistentvolumes/tables',
    '/api/v1/namespaces/<ns>',
    '/apis/coordination.k8s.io/v1/namespaces/<ns>/leases',
    '/apis/events.k8s.io/v1/namespaces/<ns>/events/e',
    '/apis/storage.k8s.io/v1/storageclasses/tables',
    '/apis/storage.k8s.io/v1/csidrivers/tables.example.org',
    '/apis/storage.k8s.io/v1/csinodes/tables',
    '/apis/node.k8s.io/v1/runtimeclasses/tables',
    '/apis/scheduling.k8s.io/v1/priorityclasses/tables',
    '/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical',
    '/apis/policy/v1/namespaces/<ns>/poddisruptionbudgets/pdb',
    `${core}/resourcequotas/q`,
  ];
  return [
    ...rows.map((path) => ask(`GET ${path}`, { accept })),
    ask(`GET ${core}/pods?limit=2`, { accept, keep: 'page' }),
    ask(`GET ${core}/pods?limit=2&continue=<page.metadata.continue>`, { accept }),
    ask(`GET ${core}/pods?fieldSelector=metadata.name=none`, { accept }),
    ask('DELETE /apis/storage.k8s.io/v1/csidrivers/tables.example.org'),
    ask('DELETE /apis/node.k8s.io/v1/runtimeclasses/tables'),
  ];
}

export const tables = chapter('tables', [...things(), ...shown()]);
