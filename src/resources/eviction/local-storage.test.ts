import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aPod, type PodParts } from '../../../test/fakes/pods.ts';
import type { PodResourceUsage } from './eviction-stats.ts';
import { hasStorageLimits, overStorageLimit } from './local-storage.ts';

const mebi = 1024 ** 2;

function measured(parts: {
  readonly volumes?: Readonly<Record<string, number>>;
  readonly rootfs?: number;
  readonly logs?: number;
  readonly others?: number;
}): PodResourceUsage {
  const { volumes = {}, rootfs = 0, logs = 0, others } = parts;
  return {
    memoryBytes: 0,
    processes: 0,
    containers: [
      {
        name: 'main',
        memoryBytes: 0,
        rootfs: { bytes: rootfs, inodes: 0 },
        logs: { bytes: logs, inodes: 0 },
      },
    ],
    volumes: new Map(Object.entries(volumes).map(([name, bytes]) => [name, { bytes, inodes: 0 }])),
    others: others === undefined ? undefined : { bytes: others, inodes: 0 },
  };
}

const withSpec = (spec: NonNullable<PodParts['spec']>) => aPod({ spec });
const limited = withSpec({ volumes: [{ name: 'v', emptyDir: { sizeLimit: '1Mi' } }] });
const holding = (limit: string) =>
  withSpec({
    containers: [{ name: 'main', resources: { limits: { 'ephemeral-storage': limit } } }],
    volumes: [
      { name: 'v', emptyDir: {} },
      { name: 'm', emptyDir: { medium: 'Memory' } },
    ],
  });

describe('overStorageLimit', () => {
  it('enforces the sizeLimit of an emptyDir', () => {
    assert.equal(overStorageLimit(limited, measured({ volumes: { v: mebi } })), undefined);
    assert.deepEqual(overStorageLimit(limited, measured({ volumes: { v: mebi + 1 } })), {
      signal: 'emptydirfs.limit',
      message: 'Usage of EmptyDir volume "v" exceeds the limit "1Mi". ',
    });
    assert.equal(overStorageLimit(limited, measured({})), undefined, 'unknown usage is no violation');
  });

  it('limits the storage usage of a pod, including disk-backed volumes, to the sum of the storage limits of its containers', () => {
    const [pod, bytes] = [holding('1Mi'), mebi / 4];
    const over = measured({ rootfs: bytes, logs: bytes, others: bytes, volumes: { v: bytes + 1, m: mebi } });
    assert.deepEqual(overStorageLimit(pod, over), {
      signal: 'ephemeralpodfs.limit',
      message: 'Pod ephemeral local storage usage exceeds the total limit of containers 1Mi. ',
    });
    const within = measured({ rootfs: bytes, logs: bytes, others: bytes, volumes: { v: bytes, m: mebi } });
    assert.equal(overStorageLimit(pod, within), undefined);
  });

  it('enforces the storage limit of a container for its writable layer and logs', () => {
    const pod = withSpec({
      containers: [
        { name: 'main', resources: { limits: { 'ephemeral-storage': '1Mi' } } },
        { name: 'other', resources: { limits: { 'ephemeral-storage': '1Gi' } } },
      ],
    });
    assert.deepEqual(overStorageLimit(pod, measured({ rootfs: mebi, logs: 1 })), {
      signal: 'ephemeralcontainerfs.limit',
      message: 'Container main exceeded its local ephemeral storage limit "1Mi". ',
    });
    assert.equal(overStorageLimit(pod, measured({ rootfs: mebi - 1, logs: 1 })), undefined);
  });

  it('detects whether a pod has storage limits', () => {
    assert.deepEqual(
      [
        limited,
        holding('1Mi'),
        aPod(),
        withSpec({ volumes: [{ name: 'v', emptyDir: { sizeLimit: '0' } }] }),
        withSpec({ volumes: [{ name: 'v', emptyDir: {} }] }),
      ].map(hasStorageLimits),
      [true, true, false, false, false],
    );
  });
});
