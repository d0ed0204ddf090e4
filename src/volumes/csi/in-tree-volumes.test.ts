import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CsiWorld } from '../../../test/fakes/csi-world.ts';
import { podWith } from '../../../test/fakes/payload-world.ts';
import type { PersistentVolume } from '../../kinds/index.ts';
import { sourceOf } from '../claims/bound-volume.ts';
import { CsiPaths } from './csi-paths.ts';
import { inTreeVolume, isOfDriver } from './in-tree-volumes.ts';
import { inlinePaths, inlineVolume } from './inline-volumes.ts';

type Spec = NonNullable<PersistentVolume['spec']>;

const volume = (spec: Spec, metadata: PersistentVolume['metadata'] = {}): PersistentVolume => ({
  metadata: { name: 'pv', ...metadata },
  spec,
});
const zone = 'topology.kubernetes.io/zone';
const gce = { gcePersistentDisk: { pdName: 'd', fsType: 'ext4' } };
const file = { azureFile: { secretName: 's', shareName: 'share', secretNamespace: 'ns' } };

describe('translation of in-tree PersistentVolumes', () => {
  for (const [what, found, driver, handle, attributes] of [
    [
      'of AWS',
      volume({ awsElasticBlockStore: { volumeID: 'aws://us-east-1a/vol-12ab' } }),
      'ebs.csi.aws.com',
      'vol-12ab',
      { partition: '0' },
    ],
    [
      'of AWS by its plain ID',
      volume({ awsElasticBlockStore: { volumeID: 'vol-1', partition: 2 } }),
      'ebs.csi.aws.com',
      'vol-1',
      { partition: '2' },
    ],
    [
      'of an Azure disk',
      volume({ azureDisk: { diskName: 'n', diskURI: '/uri', cachingMode: 'ReadOnly', fsType: 'xfs' } }),
      'disk.csi.azure.com',
      '/uri',
      { kind: 'Managed', cachingmode: 'ReadOnly', fstype: 'xfs' },
    ],
    ['of an Azure file share', volume(file), 'file.csi.azure.com', '#s#share#pv#ns', { sharename: 'share' }],
    [
      'of an Azure file share in the namespace of its claim',
      volume(
        {
          azureFile: { secretName: 'azure-storage-account-acc-secret', shareName: 'f', secretNamespace: '' },
          claimRef: { namespace: 'of-claim' },
        },
        { annotations: { 'kubernetes.io/azure-file-resource-group': 'rg' } },
      ),
      'file.csi.azure.com',
      'rg#acc#f#pv#of-claim',
      { sharename: 'f' },
    ],
    ['of OpenStack', volume({ cinder: { volumeID: 'c' } }), 'cinder.csi.openstack.org', 'c', {}],
    [
      'of GCE without a zone',
      volume(gce),
      'pd.csi.storage.gke.io',
      'projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d',
      { partition: '' },
    ],
    [
      'of GCE in a zone',
      volume(gce, { labels: { [zone]: 'us-east1-b' } }),
      'pd.csi.storage.gke.io',
      'projects/UNSPECIFIED/zones/us-east1-b/disks/d',
      { partition: '' },
    ],
    [
      'of GCE in a region',
      volume(gce, { labels: { [zone]: 'us-east1-b__us-east1-c' } }),
      'pd.csi.storage.gke.io',
      'projects/UNSPECIFIED/regions/us-east1/disks/d',
      { partition: '' },
    ],
    ['of Portworx', volume({ portworxVolume: { volumeID: 'p' } }), 'pxd.portworx.com', 'p', {}],
    [
      'of vSphere',
      volume({ vsphereVolume: { volumePath: '[ds] v.vmdk', storagePolicyName: 'gold' } }),
      'csi.vsphere.vmware.com',
      '[ds] v.vmdk',
      { storagepolicyname: 'gold' },
    ],
  ] as const) {
    it(`an in-tree PersistentVolume is translated for its CSI driver: ${what}`, () => {
      const source = sourceOf(found);
      assert.ok(source?.kind === 'csi');
      assert.deepEqual([source.driver, source.handle, source.attributes], [driver, handle, attributes]);
    });
  }

  it('a translated volume refers to the Secrets that the driver needs', () => {
    assert.deepEqual(inTreeVolume(volume(file))?.nodeStageSecretRef, { name: 's', namespace: 'ns' });
    const annotations = {
      'openstorage.io/auth-secret-name': 'n',
      'openstorage.io/auth-secret-namespace': 'ns',
    };
    const found = inTreeVolume(volume({ portworxVolume: { volumeID: 'p' } }, { annotations }));
    const secret = { name: 'n', namespace: 'ns' };
    assert.deepEqual([found?.nodeStageSecretRef, found?.nodePublishSecretRef], [secret, secret]);
  });

  it('a translated GCE volume is ReadWriteOnce unless it is read-only', () => {
    for (const [accessModes, expected] of [
      [['ReadWriteMany'], 'ReadWriteOnce'],
      [['ReadOnlyMany', 'ReadWriteOnce'], 'ReadWriteOnce'],
      [['ReadOnlyMany'], 'ReadOnlyMany'],
    ] as const) {
      const source = sourceOf(volume({ ...gce, accessModes }));
      assert.equal(source?.kind === 'csi' && source.accessMode, expected);
    }
    const other = sourceOf(volume({ cinder: { volumeID: 'c' }, accessModes: ['ReadWriteMany'] }));
    assert.equal(other?.kind === 'csi' && other.accessMode, 'ReadWriteMany');
  });

  it('an in-tree PersistentVolume that the driver does not support is rejected', () => {
    for (const [found, why] of [
      [
        volume({ awsElasticBlockStore: { volumeID: 'aws://zone/disk' } }),
        'Invalid format for AWS volume (aws://zone/disk)',
      ],
      [
        volume({ azureDisk: { diskName: 'n', diskURI: 'u', kind: 'Dedicated' } }),
        'kind(Dedicated) is not supported in csi migration',
      ],
      [
        volume({ azureFile: { secretName: 's', shareName: 'f', secretNamespace: '' } }),
        'could not find a secret namespace in PersistentVolumeSource or ClaimRef',
      ],
      [
        volume(gce, { labels: { [zone]: 'us-east1-b__eu-west1-c' } }),
        'failed to get region from zones: us-east1-b, eu-west1-c',
      ],
    ] as const)
      assert.throws(() => sourceOf(found), { code: 'VOLUME_UNUSABLE', message: why });
  });

  it('an in-tree PersistentVolume of a type that is not migrated is not translated', () => {
    assert.equal(inTreeVolume(volume({ nfs: { server: 's', path: '/' } })), undefined);
  });
});

describe('in-tree volumes in a pod spec', () => {
  const pod = podWith([]);
  const found = (volume: object) => inlineVolume(pod, { name: 'v', ...volume });
  for (const [volume, name, handle, accessMode] of [
    [
      { awsElasticBlockStore: { volumeID: 'aws://z/vol-1' } },
      'ebs.csi.aws.com-vol-1',
      'vol-1',
      'ReadWriteOnce',
    ],
    [{ azureDisk: { diskName: 'n', diskURI: '/u/r' } }, 'disk.csi.azure.com-n', '/u/r', 'ReadWriteOnce'],
    [
      { azureFile: { secretName: 's', shareName: 'share' } },
      'file.csi.azure.com-share',
      `#s#share#v#${pod.metadata.namespace}`,
      'ReadWriteMany',
    ],
    [{ cinder: { volumeID: 'id' } }, 'cinder.csi.openstack.org-id', 'id', 'ReadWriteOnce'],
    [
      { gcePersistentDisk: { pdName: 'd', readOnly: true } },
      'pd.csi.storage.gke.io-d',
      'projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d',
      'ReadOnlyMany',
    ],
    [{ portworxVolume: { volumeID: 'id' } }, 'pxd.portworx.com-id', 'id', 'ReadWriteMany'],
    [
      { vsphereVolume: { volumePath: '[ds] vols/x.vmdk' } },
      'csi.vsphere.vmware.com-[ds] vols~x.vmdk',
      '[ds] vols/x.vmdk',
      'ReadWriteOnce',
    ],
  ] as const)
    it(`an inline in-tree volume is attached, staged and published by the CSI driver: ${Object.keys(volume)[0]}`, () => {
      const one = found(volume);
      assert.deepEqual(
        [one?.name, one?.handle, one?.accessMode, one?.mode],
        [name, handle, accessMode, 'Persistent'],
      );
      assert.equal(one?.readOnly, 'gcePersistentDisk' in volume);
      assert.equal(isOfDriver({ name: 'v', ...volume }), true);
    });

  it("an inline in-tree volume uses the Secret in the pod's namespace, and unsupported fields are reported", () => {
    const namespace = pod.metadata.namespace;
    assert.deepEqual(found({ azureFile: { secretName: 's', shareName: 'x' } })?.stageSecret, {
      namespace,
      name: 's',
    });
    const shared = { name: 'v', azureDisk: { diskName: 'n', diskURI: 'u', kind: 'Shared' } };
    assert.throws(() => found(shared), {
      code: 'VOLUME_UNUSABLE',
      message: /not supported in csi migration/,
    });
    const paths = new CsiPaths('/root', '/root/pods');
    assert.equal(inlinePaths(paths, pod, shared), undefined);
    assert.equal(isOfDriver({ name: 'v', emptyDir: {} }), false);
  });

  it('an inline in-tree volume is staged, published and unstaged with the migrated label in metrics, also after a restart', async () => {
    const environment = new CsiWorld();
    environment.driver = { spec: {} };
    const spec = { attacher: 'cinder.csi.openstack.org', nodeName: 'n1', source: {} };
    environment.attachment = { spec, status: { attached: true } };
    const { signal } = new AbortController();
    const origins = new Set<string | undefined>();
    const drivers = {
      get: (name: string, origin?: string) => {
        origins.add(origin);
        return { name, client: environment.client, can: environment.can };
      },
    };
    const volumes = environment.volumes({ drivers });
    const described = { name: 'v', cinder: { volumeID: 'id', readOnly: true } };
    await volumes.setUpInline(pod, described, signal);
    assert.equal(environment.calls().join(' '), 'stage publish');
    assert.equal(
      volumes.inline(pod, described)?.hostPath,
      `/root/pods/${pod.metadata.uid}/volumes/kubernetes.io~csi/cinder.csi.openstack.org-id/mount`,
    );
    await environment.ends(environment.volumes({ drivers }), pod.metadata.uid);
    assert.equal(environment.calls().join(' '), 'stage publish unpublish unstage');
    const plugin = 'kubernetes.io/csi:cinder.csi.openstack.org';
    assert.deepEqual(environment.observed, [
      `verify_controller_attached_volume ${plugin} success in-tree`,
      `unmount_device ${plugin} success in-tree`,
    ]);
    assert.deepEqual([...origins], ['in-tree']);
  });
});
