import { ask, chapter, create, patch, type Step } from '../step.ts';
import { boundPod, core } from './objects.ts';

const claims = `${core}/persistentvolumeclaims`;
const volumes = '/api/v1/persistentvolumes';
const storage = '/apis/storage.k8s.io/v1';
const claim = (name: string, spec: object = {}) => ({
  metadata: { name },
  spec: {
    storageClassName: 'storage-none',
    accessModes: ['ReadWriteOnce'],
    resources: { requests: { storage: '1Gi' } },
    ...spec,
  },
});
const volume = (name: string, spec: object = {}) => ({
  metadata: { name },
  spec: {
    storageClassName: 'storage-none',
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    hostPath: { path: '/tmp/x' },
    ...spec,
  },
});

function claiming(): readonly Step[] {
  const bound = ({ body }: { readonly body: unknown }) =>
    (body as { readonly status?: { readonly phase?: string } }).status?.phase === 'Bound';
  return [
    create(claims, claim('c')),
    create(claims, claim('none', { accessModes: [] })),
    create(claims, claim('mode', { accessModes: ['Sometimes'] })),
    create(claims, claim('size', { resources: {} })),
    create(claims, claim('negative', { resources: { requests: { storage: '-1' } } })),
    create(claims, claim('volume-mode', { volumeMode: 'Tape' })),
    create(
      claims,
      claim('from', {
        storageClassName: 'storage-from',
        dataSource: { kind: 'PersistentVolumeClaim', name: 'c' },
      }),
    ),
    patch('merge', `${claims}/c`, { spec: { accessModes: ['ReadOnlyMany'] } }),
    patch('merge', `${claims}/c`, { spec: { resources: { requests: { storage: '2Gi' } } } }),
    patch('merge', `${claims}/c/status`, { status: { conditions: [{ type: 'Resizing', status: 'True' }] } }),
    create(volumes, volume('storage-v'), { keep: 'v' }),
    ask(`GET ${claims}/c`, { until: bound, compare: withoutStatus, what: 'the claim is bound' }),
    ask(`GET ${volumes}/storage-v`, { until: bound, compare: withoutStatus, what: 'the volume is bound' }),
    ask(`DELETE ${volumes}/storage-v`, { compare: withoutStatus, what: 'a volume in use is kept' }),
    create(
      `${core}/pods`,
      boundPod('uses', { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] }),
    ),
    ask(`DELETE ${claims}/c`, { compare: withoutStatus, what: 'a claim in use is kept' }),
    ask(`GET ${claims}/c`, { compare: withoutStatus }),
    ask(`DELETE ${core}/pods/uses?gracePeriodSeconds=0`),
    ask(`GET ${claims}/c`, { until: ({ code }) => code === 404, what: 'an unused claim is deleted' }),
    ask(`GET ${volumes}/storage-v`, { until: ({ code }) => code === 404, what: 'and its volume with it' }),
  ];
}

/** Removes the resource version, which a controller changes periodically. */
function withoutStatus(body: unknown): unknown {
  const { metadata, ...rest } = body as { readonly metadata?: object };
  const { resourceVersion: _, ...meta } = { resourceVersion: '', ...metadata };
  return { ...rest, metadata: meta };
}

function volumesThemselves(): readonly Step[] {
  return [
    create(volumes, volume('storage-a')),
    create(volumes, volume('storage-two', { nfs: { server: 's', path: '/' } })),
    create(volumes, { metadata: { name: 'storage-none' }, spec: {} }),
    create(volumes, volume('storage-path', { hostPath: { path: '/a/../b' } })),
    create(volumes, volume('storage-policy', { persistentVolumeReclaimPolicy: 'Sometimes' })),
    create(volumes, volume('storage-local', { hostPath: undefined, local: { path: '/x' } })),
    patch('merge', `${volumes}/storage-a`, { spec: { hostPath: { path: '/other' } } }),
    patch('merge', `${volumes}/storage-a`, { spec: { persistentVolumeReclaimPolicy: 'Retain' } }),
    patch(
      'merge',
      `${volumes}/storage-a/status`,
      { status: { phase: 'Failed', message: 'm' } },
      { compare: withoutStatus },
    ),
    ask(`DELETE ${volumes}/storage-a`, { compare: () => '' }),
  ];
}

function classes(): readonly Step[] {
  const csi = `${storage}/csinodes`;
  const attachments = `${storage}/volumeattachments`;
  const attachment = {
    metadata: { name: 'storage-att' },
    spec: { attacher: 'example.org', nodeName: 'n', source: { persistentVolumeName: 'p' } },
  };
  return [
    create(`${storage}/storageclasses`, { metadata: { name: 'storage-a' }, provisioner: 'example.org/p' }),
    create(`${storage}/storageclasses`, { metadata: { name: 'storage-b' } }),
    create(`${storage}/storageclasses`, {
      metadata: { name: 'storage-c' },
      provisioner: 'example.org/p',
      reclaimPolicy: 'X',
      volumeBindingMode: 'Y',
    }),
    patch('merge', `${storage}/storageclasses/storage-a`, { provisioner: 'other' }),
    patch('merge', `${storage}/storageclasses/storage-a`, { allowVolumeExpansion: true }),
    ask(`DELETE ${storage}/storageclasses/storage-a`),
    create(
      csi,
      {
        metadata: { name: 'storage-n' },
        spec: { drivers: [{ name: 'd.example.org', nodeID: 'i', topologyKeys: ['a'] }] },
      },
      { keep: 'csi' },
    ),
    create(csi, {
      metadata: { name: 'storage-m' },
      spec: {
        drivers: [
          { name: 'D', nodeID: '' },
          { name: 'x', nodeID: 'y' },
          { name: 'x', nodeID: 'y' },
        ],
      },
    }),
    ask(`PUT ${csi}/storage-n`, {
      body: { metadata: { name: 'storage-n' }, spec: { drivers: [{ name: 'd.example.org', nodeID: 'i' }] } },
      what: 'a CSINode without a version',
    }),
    ask(`PUT ${csi}/storage-n`, {
      body: {
        metadata: { name: 'storage-n', resourceVersion: '<csi.metadata.resourceVersion>' },
        spec: { drivers: [{ name: 'd.example.org', nodeID: 'j' }] },
      },
      what: 'a driver that changes',
    }),
    patch('strategic', `${csi}/storage-n`, { spec: { drivers: [{ name: 'e.example.org', nodeID: 'k' }] } }),
    ask(`DELETE ${csi}/storage-n`),
    create(
      `${storage}/csidrivers`,
      {
        metadata: { name: 'storage.example.org' },
        spec: { attachRequired: false, tokenRequests: [{ audience: 'a' }] },
      },
      { keep: 'driver' },
    ),
    create(`${storage}/csidrivers`, {
      metadata: { name: 'Storage' },
      spec: { fsGroupPolicy: 'X', volumeLifecycleModes: ['Y'] },
    }),
    patch('merge', `${storage}/csidrivers/storage.example.org`, { spec: { attachRequired: true } }),
    patch('merge', `${storage}/csidrivers/storage.example.org`, { spec: { podInfoOnMount: true } }),
    ask(`DELETE ${storage}/csidrivers/storage.example.org`),
    create(attachments, attachment),
    create(attachments, { ...attachment, metadata: { name: 'storage-bad' }, spec: {} }),
    patch('merge', `${attachments}/storage-att`, { spec: { nodeName: 'm' } }),
    patch('merge', `${attachments}/storage-att/status`, { status: { attached: true } }),
    ask(`DELETE ${attachments}/storage-att`),
  ];
}

export const storageKinds = chapter('storage', [...claiming(), ...volumesThemselves(), ...classes()]);
