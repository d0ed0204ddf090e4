import type { Sample, Sampled } from './sample-pods.ts';
import { samplePods } from './sample-pods.ts';

/** Objects whose tables are recorded, by the API path of their collection. */
export type Samples = Readonly<Record<string, readonly Sample[]>>;

export function sampleObjects(nowMs: number, signingRequest: string): Samples {
  const ago = (seconds: number) => `${new Date(nowMs - seconds * 1000).toISOString().slice(0, 19)}Z`;
  return {
    '/api/v1/namespaces/shown/pods': samplePods(ago),
    '/api/v1/nodes': sampleNodes(),
    '/api/v1/namespaces/shown/events': sampleEvents(ago),
    ...smallSamples(),
    ...serviceSamples(),
    ...storageSamples(),
    '/apis/certificates.k8s.io/v1/certificatesigningrequests': requestSamples(signingRequest),
  };
}

function plain(apiVersion: string, kind: string, name: string, more: object = {}): Sampled {
  const { metadata, ...rest } = more as { readonly metadata?: object };
  return { apiVersion, kind, metadata: { name, ...metadata }, ...rest };
}

function sampleNodes(): readonly Sample[] {
  const nodeInfo = {
    architecture: 'amd64',
    bootID: '',
    containerRuntimeVersion: 'containerd://2.1.4',
    kernelVersion: '6.1.0-40-amd64',
    kubeProxyVersion: '',
    kubeletVersion: 'v1.36.4',
    machineID: '',
    operatingSystem: 'linux',
    osImage: 'Example OS 12',
    systemUUID: '',
  };
  const addresses = [
    { type: 'Hostname', address: 'a' },
    { type: 'InternalIP', address: '192.0.2.1' },
    { type: 'InternalIP', address: '2001:db8::1' },
    { type: 'ExternalIP', address: '198.51.100.1' },
  ];
  const ready = (status: string) => [{ type: 'Ready', status, reason: '', message: '' }];
  const roles = {
    'node-role.kubernetes.io/worker': '',
    'node-role.kubernetes.io/control-plane': '',
    'kubernetes.io/role': 'edge',
  };
  return [
    {
      object: plain('v1', 'Node', 'ready', { metadata: { labels: roles } }),
      status: { nodeInfo, addresses, conditions: ready('True') },
    },
    { object: plain('v1', 'Node', 'not-ready'), status: { conditions: ready('False') } },
    { object: plain('v1', 'Node', 'unknown'), status: { conditions: ready('Unknown') } },
    {
      object: plain('v1', 'Node', 'cordoned', { spec: { unschedulable: true } }),
      status: { conditions: ready('True') },
    },
    { object: plain('v1', 'Node', 'new', { spec: { unschedulable: true } }) },
  ];
}

/** Builds events, including ages at which the format of ages changes. */
function sampleEvents(ago: (seconds: number) => string): readonly Sample[] {
  const minute = 60;
  const hour = 3600;
  const day = 24 * hour;
  const year = 365 * day;
  const edges = [2 * minute, 10 * minute, 3 * hour, 8 * hour, 2 * day, 8 * day, 2 * year, 8 * year];
  const ages = edges.flatMap((edge) => [edge - 30, edge + 31, edge + hour + 90, edge + day + hour]);
  const involvedObject = { kind: 'Pod', namespace: 'shown', name: 'running', apiVersion: 'v1' };
  const event = (name: string, more: object): Sample => ({
    object: plain('v1', 'Event', name, { involvedObject, reason: 'Tried', type: 'Normal', ...more }),
  });
  const source = { component: 'kubelet', host: 'node-a' };
  const reporter = { reportingComponent: 'example.test/reporter', reportingInstance: 'r-1', action: 'Try' };
  return [
    ...ages.map((age, at) =>
      event(`age-${at}`, { firstTimestamp: ago(age), lastTimestamp: ago(age), source }),
    ),
    event('future', { firstTimestamp: ago(-600), lastTimestamp: ago(-600), source }),
    event('timeless', {}),
    event('counted', {
      firstTimestamp: ago(700),
      lastTimestamp: ago(30),
      count: 4,
      source,
      type: 'Warning',
      message: '  padded by spaces\n',
      involvedObject: { ...involvedObject, fieldPath: 'spec.containers{a}' },
    }),
    event('nameless', { involvedObject: { kind: 'Pod', namespace: 'shown' }, source: { component: 'x' } }),
    event('single', { ...reporter, eventTime: ago(400).replace('Z', '.123456Z') }),
    event('series', {
      ...reporter,
      eventTime: ago(4000).replace('Z', '.000001Z'),
      series: { count: 9, lastObservedTime: ago(95).replace('Z', '.500000Z') },
    }),
  ];
}

function smallSamples(): Samples {
  return {
    '/api/v1/namespaces': [
      {
        object: plain('v1', 'Namespace', 'leaving', { metadata: { finalizers: ['example.test/x'] } }),
        deleted: true,
      },
    ],
    '/api/v1/namespaces/shown/configmaps': [
      { object: plain('v1', 'ConfigMap', 'empty') },
      { object: plain('v1', 'ConfigMap', 'both', { data: { a: '1', b: '2' }, binaryData: { c: 'AAE=' } }) },
    ],
    '/api/v1/namespaces/shown/secrets': [
      { object: plain('v1', 'Secret', 'opaque', { stringData: { a: '1', b: '2' } }) },
      { object: plain('v1', 'Secret', 'typed', { type: 'example.test/own', data: {} }) },
    ],
    '/api/v1/namespaces/shown/serviceaccounts': [{ object: plain('v1', 'ServiceAccount', 'robot') }],
    '/api/v1/namespaces/shown/limitranges': [
      { object: plain('v1', 'LimitRange', 'range', { spec: { limits: [] } }) },
    ],
    '/api/v1/namespaces/shown/resourcequotas': [
      {
        object: plain('v1', 'ResourceQuota', 'quota', {
          spec: { hard: { pods: '40', 'limits.cpu': '4', 'requests.cpu': '2', 'limits.memory': '1Gi' } },
        }),
        status: {
          hard: { pods: '40', 'limits.cpu': '4', 'requests.cpu': '2', 'limits.memory': '1Gi' },
          used: { pods: '3', 'limits.cpu': '1500m', 'requests.cpu': '1' },
        },
      },
    ],
    '/apis/coordination.k8s.io/v1/namespaces/shown/leases': [
      { object: plain('coordination.k8s.io/v1', 'Lease', 'held', { spec: { holderIdentity: 'node-a' } }) },
      { object: plain('coordination.k8s.io/v1', 'Lease', 'free', { spec: {} }) },
    ],
    '/apis/node.k8s.io/v1/runtimeclasses': [
      { object: plain('node.k8s.io/v1', 'RuntimeClass', 'other', { handler: 'runc-other' }) },
    ],
    '/apis/scheduling.k8s.io/v1/priorityclasses': [
      {
        object: plain('scheduling.k8s.io/v1', 'PriorityClass', 'high', { value: 1000, globalDefault: true }),
      },
      {
        object: plain('scheduling.k8s.io/v1', 'PriorityClass', 'meek', {
          value: -5,
          preemptionPolicy: 'Never',
        }),
      },
    ],
    '/apis/policy/v1/namespaces/shown/poddisruptionbudgets': [
      {
        object: plain('policy/v1', 'PodDisruptionBudget', 'least', {
          spec: { minAvailable: 1, selector: { matchLabels: { a: 'b' } } },
        }),
      },
      { object: plain('policy/v1', 'PodDisruptionBudget', 'most', { spec: { maxUnavailable: '30%' } }) },
    ],
  };
}

function serviceSamples(): Samples {
  const port = { name: 'web', port: 80, targetPort: 8080 };
  const service = (name: string, spec: object, status?: object): Sample => ({
    object: plain('v1', 'Service', name, { spec }),
    ...(status === undefined ? {} : { status }),
  });
  const ips = (...all: readonly string[]) => all.map((ip) => ({ ip }));
  const endpoints = (name: string, subsets: readonly object[]): Sample => ({
    object: plain('v1', 'Endpoints', name, { subsets }),
  });
  return {
    '/api/v1/namespaces/shown/services': [
      service('inside', {
        ports: [port, { name: 'dns', port: 53, protocol: 'UDP' }],
        selector: { b: '2', a: '1' },
      }),
      service('headless', { clusterIP: 'None' }),
      service('nodeport', {
        type: 'NodePort',
        ports: [{ ...port, nodePort: 30123 }],
        externalIPs: ['203.0.113.9'],
      }),
      service('waiting', { type: 'LoadBalancer', ports: [{ ...port, nodePort: 30124 }] }),
      service(
        'balanced',
        { type: 'LoadBalancer', ports: [{ ...port, nodePort: 30125 }], externalIPs: ['203.0.113.8'] },
        { loadBalancer: { ingress: [{ hostname: 'b.example.test' }, { ip: '203.0.113.7' }] } },
      ),
      service('elsewhere', { type: 'ExternalName', externalName: 'a.example.test' }),
    ],
    '/api/v1/namespaces/shown/endpoints': [
      endpoints('none', []),
      endpoints('portless', [{ addresses: ips('10.0.0.1', '10.0.0.2') }]),
      endpoints('many', [
        {
          addresses: ips('10.0.0.1', '10.0.0.2', 'fd00::1'),
          ports: [
            { name: 'a', port: 80 },
            { name: 'b', port: 81 },
          ],
        },
      ]),
    ],
  };
}

function storageSamples(): Samples {
  const size = { storage: '1536Mi' };
  const volumeSpec = {
    capacity: size,
    accessModes: ['ReadWriteMany', 'ReadWriteOnce', 'ReadOnlyMany'],
    hostPath: { path: '/srv/a' },
  };
  const storage = 'storage.k8s.io/v1';
  return {
    '/api/v1/persistentvolumes': [
      { object: plain('v1', 'PersistentVolume', 'free', { spec: volumeSpec }) },
      {
        object: plain('v1', 'PersistentVolume', 'bound', {
          spec: {
            ...volumeSpec,
            accessModes: ['ReadWriteOncePod'],
            persistentVolumeReclaimPolicy: 'Delete',
            storageClassName: 'quick',
            volumeMode: 'Block',
            claimRef: { namespace: 'shown', name: 'bound' },
          },
        }),
        status: { phase: 'Failed', reason: 'Tried' },
      },
    ],
    '/api/v1/namespaces/shown/persistentvolumeclaims': [
      {
        object: plain('v1', 'PersistentVolumeClaim', 'waiting', {
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: size }, storageClassName: 'quick' },
        }),
      },
      {
        object: plain('v1', 'PersistentVolumeClaim', 'given', {
          spec: {
            accessModes: ['ReadWriteOnce'],
            resources: { requests: size },
            storageClassName: '',
            volumeName: 'gone',
          },
        }),
        status: {
          phase: 'Bound',
          accessModes: ['ReadWriteOnce', 'ReadWriteOnce'],
          capacity: { storage: '2Gi' },
        },
      },
    ],
    '/apis/storage.k8s.io/v1/storageclasses': [
      {
        object: plain(storage, 'StorageClass', 'quick', {
          metadata: { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
          provisioner: 'example.test/disk',
        }),
      },
      {
        object: plain(storage, 'StorageClass', 'late', {
          provisioner: 'example.test/disk',
          reclaimPolicy: 'Retain',
          volumeBindingMode: 'WaitForFirstConsumer',
          allowVolumeExpansion: true,
        }),
      },
    ],
    '/apis/storage.k8s.io/v1/volumeattachments': [
      {
        object: plain(storage, 'VolumeAttachment', 'attached', {
          spec: {
            attacher: 'csi.example.test',
            nodeName: 'ready',
            source: { persistentVolumeName: 'bound' },
          },
        }),
        status: { attached: true },
      },
    ],
    '/apis/storage.k8s.io/v1/csinodes': [
      {
        object: plain(storage, 'CSINode', 'ready', {
          spec: { drivers: [{ name: 'csi.example.test', nodeID: 'a', topologyKeys: null }] },
        }),
      },
      { object: plain(storage, 'CSINode', 'bare', { spec: { drivers: [] } }) },
    ],
    '/apis/storage.k8s.io/v1/csidrivers': [
      { object: plain(storage, 'CSIDriver', 'plain.example.test', { spec: {} }) },
      {
        object: plain(storage, 'CSIDriver', 'full.example.test', {
          spec: {
            attachRequired: false,
            podInfoOnMount: true,
            storageCapacity: true,
            requiresRepublish: true,
            tokenRequests: [{ audience: 'x' }, { audience: 'y', expirationSeconds: 600 }],
            volumeLifecycleModes: ['Persistent', 'Ephemeral'],
          },
        }),
      },
    ],
  };
}

function requestSamples(request: string): readonly Sample[] {
  const asked = (name: string, more: object, status?: object): Sample => ({
    object: plain('certificates.k8s.io/v1', 'CertificateSigningRequest', name, {
      spec: { request, signerName: 'example.test/signer', usages: ['client auth'], ...more },
    }),
    ...(status === undefined ? {} : { status }),
  });
  const told = (type: string) => ({ type, status: 'True', reason: 'Tried', message: '' });
  return [
    asked('asked', {}),
    asked('for-a-day', { expirationSeconds: 86_400 }),
    asked('approved', {}, { conditions: [told('Approved')] }),
    asked('denied', {}, { conditions: [told('Denied')] }),
    asked('failed', {}, { conditions: [told('Failed')] }),
  ];
}
